"""The log keeps what is needed to read any version within its retention time, and no more."""

import os
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from millpond.delta import Table
from millpond.errors.delta import CommitsExpiredError
from millpond.maintenance.log_cleanup import clean_log, expired_log_files
from millpond.maintenance.settings import DAY_MS, HOUR_MS
from tests.delta.tables import append, create, entry, log_files, rows, sorted_rows
from tests.maintenance.conftest import K_V, make_older, seen_by_all

MONTH_MS = 30 * DAY_MS


@pytest.fixture
def table(tmp_path):
    """Versions 0 to 35, with checkpoints 10, 20 and 30 and a batch's number; a month old to 25."""
    table = create(tmp_path / "t", K_V)
    for number in range(35):
        append(table, f"SELECT {number} AS k, 'v' AS v")
        if number == 3:
            transaction = table.begin()
            transaction.set_app_version("flow/1", 3)
            transaction.commit("WRITE")
    for version in range(26):
        set_age(table, version, days=31 + (26 - version) / 100)
    return Table(table.path)


def set_age(table, version, *, days):
    os.utime(entry(table, version), times=(time.time() - days * 24 * 3600,) * 2)


def clean(table, *, retention_ms=MONTH_MS):
    now_ms = time.time_ns() // 1_000_000
    return clean_log(table, table.snapshot(), retention_ms=retention_ms, now_ms=now_ms)


def test_entries_before_the_last_checkpoint_that_is_old_go(table):
    before = table.snapshot()
    assert clean(table).log_files_removed == 21
    names = log_files(table)
    assert names[0] == f"{20:020}.checkpoint.parquet"
    assert f"{20:020}.json" in names
    after = Table(table.path).snapshot()
    assert after == before
    assert after.app_versions == {"flow/1": 3}
    assert len(seen_by_all(table.path)) == 35


def test_versions_within_the_retention_time_can_be_read_and_older_ones_say_why_not(table):
    seen = {v: sorted_rows(rows(table.snapshot_at(v))) for v in range(20, 37)}
    clean(table)
    for version, found in seen.items():
        assert sorted_rows(rows(Table(table.path).snapshot_at(version))) == found
        assert DeltaTable(table.path, version=version).version() == version
    with pytest.raises(CommitsExpiredError):
        Table(table.path).snapshot_at(19)


def test_a_log_that_is_young_keeps_all(table):
    make = log_files(table)
    assert clean(table, retention_ms=40 * DAY_MS).log_files_removed == 0
    assert log_files(table) == make


def test_without_a_checkpoint_nothing_goes(tmp_path):
    table = create(tmp_path / "t", K_V, checkpointInterval="1000")
    for number in range(12):
        append(table, f"SELECT {number} AS k, 'v' AS v")
    make_older(table.path, days=100)
    assert clean(Table(table.path)).log_files_removed == 0


def test_nothing_goes_where_the_newest_checkpoint_does_not_give_the_tables_state(table):
    """Here it lost which batches the table holds."""
    path = table.path / "_delta_log" / f"{30:020}.checkpoint.parquet"
    data = pq.read_table(path)
    kept = [action for action in data.to_pylist() if action["txn"] is None]
    pq.write_table(pa.Table.from_pylist(kept, schema=data.schema), path)
    known = table.snapshot()
    assert known.app_versions == {}
    assert Table(table.path).snapshot_at(29).app_versions == {"flow/1": 3}
    healthy = Table(table.path).state_from(table.checkpoints()[1])
    now_ms = time.time_ns() // 1_000_000
    assert expired_log_files(table, healthy, retention_ms=MONTH_MS, now_ms=now_ms) == []


def test_times_are_those_of_the_entries_where_these_say_them(tmp_path):
    table = create(tmp_path / "t", K_V, enableInCommitTimestamps="true")
    for number in range(25):
        append(table, f"SELECT {number} AS k, 'v' AS v")
    make_older(table.path, days=100)
    assert clean(Table(table.path)).log_files_removed == 0


def test_a_clock_that_went_back_makes_no_entry_old(table):
    set_age(table, 2, days=1)
    assert clean(table).log_files_removed == 0


def test_a_retention_below_a_day_counts_to_the_hour(table):
    for version in range(26):
        set_age(table, version, days=0.25)
    assert clean(table, retention_ms=12 * HOUR_MS).log_files_removed == 0
    assert clean(table, retention_ms=4 * HOUR_MS).log_files_removed == 21


def test_logs_of_other_writers_are_cleaned_as_well(tmp_path):
    path = tmp_path / "t"
    for number in range(25):
        write_deltalake(path, pa.table({"k": [number]}), mode="append")
        if number == 20:
            DeltaTable(path).create_checkpoint()
    make_older(path, days=40)
    assert clean(Table(path)).log_files_removed == 20
    assert sorted(k for (k,) in seen_by_all(path)) == list(range(25))
