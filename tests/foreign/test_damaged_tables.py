"""What is wrong with a table is said in words, whoever reads or writes it, and nothing is written."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from millpond.delta import Table, check_data_files, connect, damage_told, live_rows_sql
from millpond.errors import MillpondError
from millpond.errors.delta import DataFileUnreadableError
from tests.pipeline_folder import PipelineFolder

NEWEST = 4
SOURCES = """\
CREATE MATERIALIZED VIEW batch AS SELECT * FROM delta.`{path}`;
CREATE STREAMING TABLE stream AS SELECT * FROM STREAM delta.`{path}`;
"""
TARGET = (
    "CREATE STREAMING TABLE target FLOW REPLACE USING (k) SEQUENCE BY k BY NAME "
    "SELECT * FROM STREAM(source)"
)


def entry(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020}.json"


def cut_off(table: Path) -> None:
    newest = entry(table, NEWEST)
    newest.write_bytes(newest.read_bytes()[:-30])


def emptied(table: Path) -> None:
    entry(table, NEWEST).write_bytes(b"")


def zeroed(table: Path) -> None:
    newest = entry(table, NEWEST)
    newest.write_bytes(bytes(newest.stat().st_size))


def gap(table: Path) -> None:
    entry(table, 2).unlink()


def without_a_file(table: Path) -> None:
    next(table.glob("*.parquet")).unlink()


def with_a_torn_file(table: Path) -> None:
    file = next(table.glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-40])


def with_a_broken_footer(table: Path) -> None:
    file = next(table.glob("*.parquet"))
    data = bytearray(file.read_bytes())
    length = int.from_bytes(data[-8:-4], "little")
    data[-8 - length : -8] = b"\xff" * length
    file.write_bytes(data)


def with_broken_pages(table: Path) -> None:
    file = next(table.glob("*.parquet"))
    data = bytearray(file.read_bytes())
    size = len(data) - 12 - int.from_bytes(data[-8:-4], "little")
    data[4 : 4 + size] = b"\xff" * size
    file.write_bytes(data)


def with_a_pipe(table: Path) -> None:
    file = next(table.glob("*.parquet"))
    file.unlink()
    os.mkfifo(file)


def holding(text: str) -> Callable[[Path], None]:
    def change(table: Path) -> None:
        entry(table, NEWEST + 1).write_text(text + "\n")

    return change


def needs(reader: int, writer: int, *features: str) -> Callable[[Path], None]:
    def change(table: Path) -> None:
        protocol = {"minReaderVersion": reader, "minWriterVersion": writer}
        if reader >= 3:
            protocol["readerFeatures"] = [*features]
        if writer >= 7:
            protocol["writerFeatures"] = [*features]
        entry(table, NEWEST + 1).write_text(json.dumps({"protocol": protocol}) + "\n")

    return change


DAMAGES = {
    "a newest entry that is cut off": (cut_off, "DELTA_LOG_CORRUPT.*4.json.*line 2"),
    "a newest entry that is empty": (emptied, "DELTA_LOG_CORRUPT.*4.json.*empty"),
    "a newest entry of zeros": (zeroed, "DELTA_LOG_CORRUPT.*4.json.*nothing but zeros"),
    "a commit that is missing": (gap, "DELTA_LOG_CORRUPT.*is not complete"),
    "a file without a name": (
        holding('{"add": {"path": null, "size": 1}}'),
        "DELTA_LOG_CORRUPT.*5.json.*path is None",
    ),
    "a size that is no number": (
        holding('{"add": {"path": "a.parquet", "size": "1"}}'),
        "DELTA_LOG_CORRUPT.*5.json.*size is '1'",
    ),
    "a version of the protocol that is no number": (
        holding('{"protocol": {"minReaderVersion": "x", "minWriterVersion": 2}}'),
        "DELTA_LOG_CORRUPT.*5.json.*minReaderVersion is 'x'",
    ),
    "an entry of nothing but brackets": (
        holding('{"add": ' + "[" * 100_000),
        "DELTA_LOG_CORRUPT.*5.json",
    ),
    "a data file that is gone": (without_a_file, "DELTA_DATA_FILE_MISSING.*parquet"),
    "a data file that is torn": (with_a_torn_file, "FILE_UNREADABLE.*parquet"),
    "a data file with a broken footer": (with_a_broken_footer, "FILE_UNREADABLE"),
    "a data file with broken pages": (with_broken_pages, "FILE_UNREADABLE"),
    "a reader's feature that nobody knows": (
        needs(3, 7, "starCrossed"),
        "UNSUPPORTED_TABLE_FEATURE.*can't be read.*starCrossed",
    ),
    "a reader's version that nobody knows": (
        needs(4, 7),
        "UNSUPPORTED_TABLE_FEATURE.*can't be read.*reader version 4",
    ),
    "commits that a catalog keeps": (
        needs(3, 7, "catalogManaged", "inCommitTimestamp"),
        "UNSUPPORTED_TABLE_FEATURE.*can't be read.*catalogManaged",
    ),
}
# What nobody writes into a table of a pipeline's own by mistake.
FOREIGN = {"a pipe for a data file": (with_a_pipe, "FILE_UNREADABLE.*parquet is no file")}
# Such tables are read, and not written.
UNWRITABLE = {
    "a writer's feature that nobody knows": (
        needs(1, 7, "starCrossed"),
        "UNSUPPORTED_TABLE_FEATURE.*can't be written to.*starCrossed",
    ),
    "a writer's version that nobody knows": (
        needs(1, 8),
        "UNSUPPORTED_TABLE_FEATURE.*can't be written to.*writer version 8",
    ),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> PipelineFolder:
    """A pipeline whose target has five versions, the last one by another program."""
    folder = PipelineFolder.made(tmp_path_factory.mktemp("original") / "p")
    folder.configure({"millpond.maxFilesPerTrigger": "1"})
    folder.write("target.sql", TARGET)
    for number in range(3):
        folder.feed("source", [{"k": number}])
    errors = errors_of(folder)
    assert not errors, errors
    target = folder.table("target")
    write_deltalake(target, pa.table({"k": [9]}), mode="append")
    assert DeltaTable(target).version() == NEWEST
    return folder


@pytest.fixture
def copied(original: PipelineFolder, tmp_path: Path) -> PipelineFolder:
    shutil.copytree(original.root, tmp_path / "copied")
    return PipelineFolder(tmp_path / "copied")


def errors_of(folder: PipelineFolder) -> list[str]:
    try:
        result = folder.run()
    except MillpondError as error:
        return [str(error)]
    errors = [*result.problems, *(flow.error for flow in result.flows if flow.error is not None)]
    return [str(error) for error in errors]


def matches(error: str, pattern: str) -> bool:
    return re.search(pattern, error, re.DOTALL) is not None


@pytest.mark.timeout(120)
@pytest.mark.parametrize("damage", [*DAMAGES, *FOREIGN])
def test_a_damaged_source_is_named_to_batches_and_to_streams(
    folder: PipelineFolder, tmp_path: Path, damage: str
) -> None:
    change, pattern = (DAMAGES | FOREIGN)[damage]
    table = tmp_path / "theirs"
    for number in range(NEWEST + 1):
        # Of one value, the engine takes what the log says.
        write_deltalake(table, pa.table({"k": [number, -number - 1]}), mode="append")
    change(table)
    folder.write("sources.sql", SOURCES.format(path=table))
    errors = errors_of(folder)
    assert len(errors) == 2
    assert all(matches(error, pattern) for error in errors), errors


@pytest.mark.parametrize("damage", [*DAMAGES, *UNWRITABLE])
def test_a_damaged_target_is_named_and_left_as_it_is(copied: PipelineFolder, damage: str) -> None:
    change, pattern = (DAMAGES | UNWRITABLE)[damage]
    target = copied.table("target")
    change(target)
    before = {path: path.stat().st_mtime_ns for path in target.rglob("*")}
    copied.feed("source", [{"k": 0}, {"k": 1}, {"k": 2}, {"k": 9}])
    (error,) = errors_of(copied)
    assert matches(error, pattern), error
    after = {path: path.stat().st_mtime_ns for path in target.rglob("*")}
    assert after == before


@pytest.mark.parametrize("kind", ["EACCES", "EMFILE", "EIO", "ESTALE"])
def test_a_file_that_can_not_be_read_for_now_is_not_told_to_be_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    write_deltalake(tmp_path / "t", pa.table({"k": [1]}))
    snapshot = Table(tmp_path / "t").snapshot()
    (file,) = snapshot.files.values()
    number = getattr(errno, kind)
    place = snapshot.file_path(file)

    stat = Path.stat

    def fail(path: Path, **options: bool) -> os.stat_result:
        if path == place:
            raise OSError(number, os.strerror(number), str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", fail)
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        check_data_files(snapshot)
    assert caught.value.errno == number


@pytest.mark.parametrize("at", range(0, 200, 7))
def test_any_byte_of_a_footer_that_is_another_leaves_rows_or_damage(
    tmp_path: Path, at: int
) -> None:
    write_deltalake(tmp_path / "t", pa.table({"k": [1, 2], "v": ["a", "b"]}))
    snapshot = Table(tmp_path / "t").snapshot()
    path = next((tmp_path / "t").glob("*.parquet"))
    data = bytearray(path.read_bytes())
    data[-9 - at % int.from_bytes(data[-8:-4], "little")] ^= 0xFF
    path.write_bytes(data)
    with (
        connect() as connection,
        suppress(DataFileUnreadableError, duckdb.ConversionException),
        damage_told(snapshot.path),
    ):
        rows = live_rows_sql(connection, snapshot, snapshot.files.values())
        connection.execute(rows).fetchall()


def test_a_file_that_is_not_as_long_as_the_log_says_is_looked_into(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"k": [1]}))
    snapshot = Table(tmp_path / "t").snapshot()
    (file,) = snapshot.files.values()
    path = snapshot.file_path(file)
    check_data_files(snapshot)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataFileUnreadableError, match=path.name):
        check_data_files(snapshot)
    other = replace(file, size_bytes=path.stat().st_size + 7)
    write_deltalake(tmp_path / "whole", pa.table({"k": [1]}))
    shutil.copy(next((tmp_path / "whole").glob("*.parquet")), path)
    check_data_files(replace(snapshot, files={other.path: other}))


ALTERED = {
    "checkConstraints": lambda table: table.alter.add_constraint({"positive": "k > -1"}),
    "changeDataFeed": lambda table: table.alter.set_table_properties(
        {"delta.enableChangeDataFeed": "true"}
    ),
    "rowTracking": lambda table: _add_feature(table, "RowTracking"),
    "icebergCompatV1": lambda table: _add_feature(table, "IcebergCompatV1"),
    "the property delta.setTransactionRetentionDuration": lambda table: (
        table.alter.set_table_properties(
            {"delta.setTransactionRetentionDuration": "interval 1 days"}, raise_if_not_exists=False
        )
    ),
}


def _add_feature(table: DeltaTable, name: str) -> None:
    from deltalake import TableFeatures

    feature = getattr(TableFeatures, name)
    table.alter.add_feature(feature, allow_protocol_versions_increase=True)


@pytest.mark.parametrize("named", ALTERED)
def test_a_target_that_another_program_gave_a_feature_is_refused_by_its_name(
    copied: PipelineFolder, named: str
) -> None:
    target = copied.table("target")
    ALTERED[named](DeltaTable(target))
    before = set(target.rglob("*"))
    copied.feed("source", [{"k": 0}])
    (error,) = errors_of(copied)
    assert matches(error, f"UNSUPPORTED_TABLE_FEATURE.*{named}"), error
    assert set(target.rglob("*")) == before


def test_a_table_that_no_pipeline_made_is_no_target(copied: PipelineFolder) -> None:
    target = copied.table("target")
    shutil.rmtree(target)
    write_deltalake(target, pa.table({"k": [1]}))
    before = set(target.rglob("*"))
    (error,) = errors_of(copied)
    assert "TABLE_NOT_FROM_PIPELINE" in error
    assert set(target.rglob("*")) == before
