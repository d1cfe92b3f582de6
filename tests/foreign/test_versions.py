"""A version of a table is read whatever has become of its log and its checkpoints since."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.pipeline_folder import PipelineFolder

VERSIONS = 12


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "theirs"
    for number in range(VERSIONS):
        write_deltalake(path, pa.table({"k": [number]}), mode="append")
    return path


def read(folder: PipelineFolder, source: str) -> list[int]:
    """The keys that a batch query finds, and, of a whole table, a stream as well."""
    folder.write("batch.sql", f"CREATE MATERIALIZED VIEW batch AS SELECT * FROM {source}")
    if "VERSION" not in source:
        text = f"CREATE STREAMING TABLE stream AS SELECT * FROM STREAM {source}"
        folder.write("stream.sql", text)
    result = folder.run()
    assert not result.problems, result.problems
    assert [flow.error for flow in result.flows if flow.error is not None] == []
    found = sorted(k for (k,) in folder.rows("batch"))
    if "VERSION" not in source:
        assert sorted(k for (k,) in folder.rows("stream")) == found
    return found


def test_a_version_before_the_newest_checkpoint_is_read(
    folder: PipelineFolder, table: Path
) -> None:
    DeltaTable(table).create_checkpoint()
    assert read(folder, f"delta.`{table}` VERSION AS OF 3") == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "hint",
    [b"\x00\x01", b"", b'{"version": 4, "size": 3}', b'{"version": 99, "size": 3}', None],
    ids=["garbage", "empty", "of a checkpoint that is gone", "of the future", "missing"],
)
def test_what_says_which_checkpoint_is_the_last_may_be_anything(
    folder: PipelineFolder, table: Path, hint: bytes | None
) -> None:
    DeltaTable(table).create_checkpoint()
    last = table / "_delta_log" / "_last_checkpoint"
    last.unlink()
    if hint is not None:
        last.write_bytes(hint)
    assert read(folder, f"delta.`{table}`") == list(range(VERSIONS))


def test_a_damaged_checkpoint_is_passed_over_while_the_log_is_whole(
    folder: PipelineFolder, table: Path
) -> None:
    DeltaTable(table).create_checkpoint()
    (checkpoint,) = (table / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(b"PAR1")
    assert read(folder, f"delta.`{table}`") == list(range(VERSIONS))


def test_a_table_of_thousands_of_commits_whose_first_were_cleaned_up_is_read(
    folder: PipelineFolder, table: Path
) -> None:
    DeltaTable(table).create_checkpoint()
    log = table / "_delta_log"
    for version in range(VERSIONS - 1):
        (log / f"{version:020}.json").unlink()
    for version in range(VERSIONS, 3000):
        info = {"commitInfo": {"operation": "WRITE", "timestamp": version}}
        (log / f"{version:020}.json").write_text(json.dumps(info))
    assert read(folder, f"delta.`{table}`") == list(range(VERSIONS))
