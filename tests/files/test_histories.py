"""Whatever happens to a folder of files, and whenever an update dies: the newest versions stand."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from millpond.engine.embedded import EmbeddedEngine
from millpond.runner import Project, run_update
from millpond.storage import LocalStore
from millpond.streaming import file_source
from tests.files.histories import History
from tests.pipeline_folder import SPEC, PipelineFolder

HISTORIES = 200
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
_WRITES = ("put", "put_if_absent", "append", "sync", "remove")


class Died(BaseException):
    """The process is gone: whatever is asked of the store from here on does not happen."""


class DyingStore(LocalStore):
    """Does nothing any more from the n-th write on."""

    def __init__(self, writes_left: int) -> None:
        self.writes_left = writes_left

    def _write(self, name: str, *arguments: Any) -> None:
        self.writes_left -= 1
        if self.writes_left < 0:
            raise Died
        getattr(LocalStore, name)(self, *arguments)

    def put(self, *arguments: Any) -> None:
        self._write("put", *arguments)

    def put_if_absent(self, *arguments: Any) -> None:
        self._write("put_if_absent", *arguments)

    def append(self, *arguments: Any) -> None:
        self._write("append", *arguments)

    def sync(self, *arguments: Any) -> None:
        self._write("sync", *arguments)

    def remove(self, *arguments: Any) -> None:
        self._write("remove", *arguments)


class SharedEngine:
    """An engine that several updates use in turn."""

    def __init__(self, engine: EmbeddedEngine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def close(self) -> None:
        """It is closed by who made it."""


@dataclass(frozen=True)
class ProjectOnEngine(Project):
    """A project whose updates share an engine."""

    engine: Any = None

    def start_engine(self) -> Any:
        return SharedEngine(self.engine)


@pytest.fixture(scope="module")
def engine():
    found = EmbeddedEngine(catalog="main", schema="sales")
    yield found
    found.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("group", range(GROUPS))
def test_the_table_holds_the_newest_version_of_every_file(tmp_path, engine, group):
    for number in range(group, HISTORIES, GROUPS):
        folder = tmp_path / str(number)
        folder.mkdir()
        live(folder, engine, random.Random(number))


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
    opened = pipeline.project()
    project = ProjectOnEngine(opened.spec, opened.layout, opened.store, engine)
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
