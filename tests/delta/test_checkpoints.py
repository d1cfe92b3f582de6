"""Checkpoints: a table is the same whether its log is read from a checkpoint or from the start."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from datetime import UTC, datetime

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql.types import DecimalType, LongType, TimestampType

from millpond.delta import ColumnRange, Table, files_overlapping
from millpond.errors.delta import CorruptLogError
from tests.delta.tables import (
    append,
    columns,
    create,
    delete_where,
    entry,
    log_files,
    rows,
    sorted_rows,
)

HALF_PAST = datetime(2026, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)

# In a process of its own: delta-rs keeps what it has started.
WITHOUT_FILES = """
import os, resource, sys
from pathlib import Path
import deltalake
from millpond.delta import Table, write_checkpoint
from millpond.storage import LocalStore

snapshot = Table(Path(sys.argv[1])).snapshot()
limit = len(os.listdir("/dev/fd")) + 2
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
print(write_checkpoint(snapshot, LocalStore()))
"""


@pytest.fixture
def table(tmp_path):
    """Version 4: five rows less one, deletion vectors and an application's version."""
    table = create(tmp_path / "t")
    append(table, "SELECT range AS k, 'a' AS v FROM range(5)")
    transaction = table.begin()
    transaction.set_app_version("flow/1", 3)
    transaction.commit("WRITE")
    delete_where(table, "k = 1")
    append(table, "SELECT 9 AS k, 'z' AS v")
    return table


LEFT = [(0, "a"), (2, "a"), (3, "a"), (4, "a"), (9, "z")]


def drop_entries(table, versions):
    for version in versions:
        entry(table, version).unlink()


def checkpoint_path(table, version=4):
    return table.path / "_delta_log" / f"{version:020}.checkpoint.parquet"


def assert_same(table, before):
    after = Table(table.path).snapshot()
    assert after.version == before.version
    assert after.metadata == before.metadata
    assert after.protocol == before.protocol
    assert dict(after.app_versions) == dict(before.app_versions)
    assert after.files.keys() == before.files.keys()
    for path, file in after.files.items():
        assert file.deletion_vector == before.files[path].deletion_vector
        assert file.stats == before.files[path].stats
    assert sorted_rows(rows(after)) == LEFT


def test_a_restart_from_a_checkpoint_gives_the_same_table(table):
    before = table.snapshot()
    DeltaTable(table.path).create_checkpoint()
    drop_entries(table, range(5))
    assert_same(table, before)


def test_entries_after_a_checkpoint_are_applied(table):
    DeltaTable(table.path).create_checkpoint()
    delete_where(table, "k = 9")
    drop_entries(table, range(4))
    snapshot = Table(table.path).snapshot()
    assert (snapshot.version, sorted_rows(rows(snapshot))) == (5, LEFT[:-1])


def test_a_checkpoint_is_written_every_few_commits(tmp_path):
    table = create(tmp_path / "t", checkpointInterval="2")
    for number in range(5):
        append(table, f"SELECT {number} AS k, 'a' AS v")
    found = [name for name in log_files(table) if "checkpoint.parquet" in name]
    assert found == [f"{version:020}.checkpoint.parquet" for version in (2, 4)]
    drop_entries(table, range(4))
    assert len(rows(Table(table.path).snapshot())) == 5


def test_a_checkpoint_that_fails_does_not_fail_the_commit(tmp_path, monkeypatch, caplog):
    table = create(tmp_path / "t", checkpointInterval="1")

    def fail(self):
        raise OSError("the disk is full")

    monkeypatch.setattr(DeltaTable, "create_checkpoint", fail)
    assert append(table, "SELECT 1 AS k, 'a' AS v").version == 1
    assert "the disk is full" in caplog.text


def test_a_damaged_checkpoint_is_passed_over_while_the_log_is_whole(table):
    DeltaTable(table.path).create_checkpoint()
    checkpoint_path(table).write_bytes(b"PAR1 not really")
    assert sorted_rows(rows(Table(table.path).snapshot())) == LEFT


@pytest.mark.parametrize("data", [b"", b"PAR1", b"garbage" * 100])
def test_a_damaged_checkpoint_that_is_needed_is_an_error_that_names_it(table, data):
    DeltaTable(table.path).create_checkpoint()
    drop_entries(table, range(3))
    checkpoint_path(table).write_bytes(data)
    with pytest.raises(CorruptLogError, match=checkpoint_path(table).name):
        Table(table.path).snapshot()


def test_multi_part_checkpoints_are_read_once_complete(table):
    before = table.snapshot()
    DeltaTable(table.path).create_checkpoint()
    whole = pq.read_table(checkpoint_path(table))
    checkpoint_path(table).unlink()
    parts = []
    for number, start in enumerate((0, 3), start=1):
        name = f"{4:020}.checkpoint.{number:010}.{2:010}.parquet"
        parts.append(table.path / "_delta_log" / name)
        pq.write_table(whole.slice(start, 3 if number == 1 else None), parts[-1])
    second = parts[1].read_bytes()
    parts[1].unlink()
    assert_same(table, before)  # by the entries, as half a checkpoint is none
    parts[1].write_bytes(second)
    drop_entries(table, range(5))
    assert_same(table, before)


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_checkpoints_with_sidecars_are_read(table, form):
    before = table.snapshot()
    DeltaTable(table.path).create_checkpoint()
    log = table.path / "_delta_log"
    whole = str(log / "whole.parquet")
    checkpoint_path(table).rename(whole)
    (log / "_sidecars").mkdir()
    files = log / "_sidecars" / "files.parquet"
    path = log / f"{4:020}.checkpoint.{uuid.uuid4()}.{form}"
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE actions AS SELECT protocol, metaData, txn, add, remove "
            f"FROM read_parquet('{whole}')"
        )
        connection.execute(
            "COPY (SELECT add, remove FROM actions WHERE add IS NOT NULL OR remove IS NOT NULL) "
            f"TO '{files}' (FORMAT parquet)"
        )
        connection.execute(
            "COPY (SELECT protocol, metaData, txn FROM actions WHERE add IS NULL AND remove IS NULL"
            " UNION ALL BY NAME SELECT {'path': 'files.parquet', 'sizeInBytes': 1, "
            f"'modificationTime': 1}} AS sidecar) TO '{path}' (FORMAT {form})"
        )
    drop_entries(table, range(5))
    assert_same(table, before)


def test_statistics_in_columns_of_a_checkpoint_are_taken_as_those_of_its_entries(tmp_path):
    schema = columns(x=DecimalType(15, 3), at=TimestampType(), s=columns(n=LongType()))
    table = create(tmp_path / "t", schema)
    append(
        table,
        "SELECT unnest([0.5, 1.5]) AS x, TIMESTAMPTZ '2026-01-31 12:00:00.5+00' AS at, "
        "{'n': 7} AS s",
    )
    before = table.snapshot()
    DeltaTable(table.path).create_checkpoint()
    whole = checkpoint_path(table, 1).rename(tmp_path / "whole.parquet")
    bounds = (
        "{{'x': {x}::DECIMAL(15, 3), 'at': TIMESTAMPTZ '2026-01-31 12:00:00.5+00', "
        "'s': {{'n': 7::BIGINT}}}}"
    )
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT * REPLACE (CASE WHEN add IS NOT NULL THEN {'path': add.path, "
            "'partitionValues': add.partitionValues, 'size': add.size, "
            "'modificationTime': add.modificationTime, 'dataChange': add.dataChange, "
            "'stats_parsed': {'numRecords': 2::BIGINT, 'tightBounds': true, "
            f"'minValues': {bounds.format(x=0.5)}, 'maxValues': {bounds.format(x=1.5)}, "
            "'nullCount': {'x': 0::BIGINT, 'at': 0::BIGINT, 's': {'n': 0::BIGINT}}}} END AS add) "
            f"FROM read_parquet('{whole}')) TO '{checkpoint_path(table, 1)}' (FORMAT parquet)"
        )
    drop_entries(table, range(2))
    reader = Table(table.path)
    assert reader.snapshot().row_count == 2
    after = delete_where(reader, "x = 0.5")
    (old,), (new,) = before.files.values(), after.files.values()
    assert json.loads(new.stats_text)["minValues"]["x"] == 0.5
    assert new.stats.max_values["x"] == old.stats.max_values["x"]
    assert (new.stats.null_count, new.num_rows) == (old.stats.null_count, 1)
    assert files_overlapping(after, {"at": ColumnRange(HALF_PAST, HALF_PAST)})
    assert not files_overlapping(after, {"x": ColumnRange(2, 2)})


def test_what_delta_rs_compacts_and_vacuums_reads_the_same(table):
    reader = Table(table.path)
    reader.snapshot()
    for number in range(4):
        append(table, f"SELECT {20 + number} AS k, 'n' AS v")
    expected = sorted_rows(rows(reader.snapshot()))
    delta_rs = DeltaTable(table.path)
    delta_rs.optimize.compact()
    delta_rs.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert sorted_rows(rows(reader.snapshot())) == expected
    assert sorted_rows(rows(Table(table.path).snapshot())) == expected
    count = QueryBuilder().register("t", DeltaTable(table.path)).execute("SELECT count(*) c FROM t")
    assert pa.table(count)["c"].to_pylist() == [len(expected)]
    delete_where(table, "k = 21")
    assert len(rows(table.snapshot())) == len(expected) - 1


def test_a_checkpoint_for_which_delta_rs_has_no_open_files_left_is_none_and_no_end(table):
    """delta-rs panics then, which is no `Exception`."""
    command = [sys.executable, "-c", WITHOUT_FILES, table.path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
    assert f"the log of {table.path} got no checkpoint" in done.stderr
    assert "Too many open files" in done.stderr
