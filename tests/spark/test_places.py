"""Where checkpoints are found on a server's storage."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from millpond.errors.spark import StorageNotSharedError
from millpond.options import SPARK_STORAGE
from millpond.runner.spark.places import Places
from millpond.storage import Layout
from tests.pipeline_folder import PipelineFolder
from tests.spark.server import SparkServer
from tests.spark.test_server_errors import engine_at


def test_a_checkpoint_is_found_below_a_folder_whose_name_looks_like_a_pattern(
    spark_server: SparkServer, tmp_path: Path
) -> None:
    layout = Layout(tmp_path / "a[1]{b,c}*?")
    places = Places(str(layout.root), layout, has_tables=True, sees_this_machine=True)
    folder = Path(places.checkpoint("f", "spark-1"))
    folder.mkdir(parents=True)
    (folder / "metadata").write_text(json.dumps({"id": "of-the-query"}), encoding="utf-8")
    with closing(engine_at(spark_server.url)) as engine:
        assert places.query_of("f", "spark-1", engine) == "of-the-query"
        assert places.query_of("f", "spark-2", engine) is None


def test_a_server_that_does_not_see_the_storage_is_elsewhere_whatever_its_address(
    folder: PipelineFolder, spark_server: SparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The same name for another folder in each process, as on another machine.
    layout = Layout(Path("/proc/self/cwd/storage"))
    monkeypatch.chdir(folder.root)
    named = folder.project(**{SPARK_STORAGE.key: "/shared"}).spec
    with closing(engine_at(spark_server.url)) as engine:
        places = Places.of(folder.project().spec, layout, engine.url)
        with pytest.raises(StorageNotSharedError, match="tunnel"):
            places.proven(folder.project().spec, engine)
        assert not places.proven(named, engine).sees_this_machine
        here = Places.of(named, folder.layout, engine.url)
        assert here.proven(named, engine).sees_this_machine
    assert [path.name for path in folder.root.iterdir() if "seen" in path.name] == []
