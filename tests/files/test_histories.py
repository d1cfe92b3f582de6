"""Whatever happens to a folder of files, and whenever an update dies: the newest versions stand.

A few histories are enough to find what is broken by mistake. For the 200 that were promised, which
take two minutes: `MILLPOND_FILE_HISTORIES=200 pytest -n 2 tests/files/test_histories.py`.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from millpond.engine.embedded import EmbeddedEngine
from millpond.runner import Project, run_update
from millpond.streaming import file_source
from tests.files.histories import History
from tests.files.shared_engine import Died, DyingStore, on_engine
from tests.pipeline_folder import SPEC, PipelineFolder

HISTORIES = int(os.environ.get("MILLPOND_FILE_HISTORIES", "24"))
ROUNDS = 5
GROUPS = 8
PIPELINE = """
CREATE OR REFRESH STREAMING TABLE prices
TBLPROPERTIES ('millpond.replaceUsing.emptyFiles' = '{setting}')
FLOW REPLACE USING (source_file) SEQUENCE BY sent_at BY NAME
SELECT v, _metadata.file_name AS source_file, _metadata.file_modification_time AS sent_at
FROM STREAM read_files('{folder}', format => 'csv', header => true, schema => 'v INT',
  allowOverwrites => true, maxFilesPerTrigger => {max_files})
"""


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("group", range(GROUPS))
def test_the_table_holds_the_newest_version_of_every_file(tmp_path, shared_engine, group):
    for number in range(group, HISTORIES, GROUPS):
        folder = tmp_path / str(number)
        folder.mkdir()
        live(folder, shared_engine, random.Random(number))


def live(folder: Path, engine: EmbeddedEngine, choices: random.Random) -> None:
    """One history from its beginning to its end, the table checked after each update."""
    removes = choices.random() < 0.5
    suppliers = folder / "suppliers"
    suppliers.mkdir()
    pipeline = PipelineFolder(folder)
    (folder / "spark-pipeline.yml").write_text(SPEC)
    setting = "replaceAndRemove" if removes else "replace"
    text = PIPELINE.format(setting=setting, folder=suppliers, max_files=choices.randint(1, 3))
    pipeline.write("prices.sql", text)
    project = on_engine(pipeline.project(), engine)
    history = History(suppliers, choices)
    for _ in range(ROUNDS):
        history.change()
        with mock.patch.object(file_source, "now_ns", side_effect=lambda: history.now_ns):
            while choices.random() < 0.3:
                history.seen()
                dies(replace(project, store=DyingStore(choices.randint(0, 25))))
                if choices.random() < 0.5:
                    history.change(only_newer=True)
            history.seen()
            result = run_update(project)
        assert not result.problems
        assert [flow.error for flow in result.flows] == [None]
        found = Counter((name, v) for v, name, _ in pipeline.rows("prices"))
        assert found == history.expected(removes=removes)


def dies(project: Project) -> None:
    """An update in which the process dies at some write, or that comes to its end before."""
    with suppress(Died):
        run_update(project)
