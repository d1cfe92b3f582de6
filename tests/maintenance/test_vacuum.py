"""Files go once no version within the retention time names them, and not before."""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import LongType, StringType

from millpond.delta import Table
from millpond.errors.delta import CorruptLogError
from millpond.maintenance.settings import DAY_MS, HOUR_MS
from millpond.maintenance.vacuum import unneeded_files, vacuum
from tests.delta.tables import append, columns, create, delete_where, rows, sorted_rows
from tests.maintenance.conftest import (
    DAY_S,
    K_V,
    data_files,
    make_older,
    scattered,
    seen_by_all,
    upkeep,
)

WEEK_MS = 7 * DAY_MS


def now_ms():
    return time.time_ns() // 1_000_000


def clean(table, *, retention_ms=WEEK_MS, later_ms=0):
    table = Table(table.path, table.store)
    return vacuum(table, table.snapshot(), retention_ms=retention_ms, now_ms=now_ms() + later_ms)


def compact(table):
    report = upkeep(table, "k").by_hand()
    assert report.files_compacted
    assert not report.files_removed


def test_files_that_were_compacted_stay_for_the_retention_time_and_then_go(table):
    before = data_files(table.path)
    compact(table)
    assert clean(table, later_ms=WEEK_MS - HOUR_MS).files_removed == 0
    rows_before = seen_by_all(table.path)
    report = clean(table, later_ms=WEEK_MS + HOUR_MS)
    assert report.files_removed == 12
    assert report.bytes_removed > 0
    assert not before & data_files(table.path)
    assert seen_by_all(table.path) == rows_before


def test_every_version_within_the_retention_time_can_still_be_read(tmp_path):
    """Also by a reader that is not millpond, and with the rows that it had."""
    table = create(tmp_path / "t", K_V)
    for number in range(6):
        append(table, f"SELECT range AS k, 'v{number}' AS v FROM range(20)")
    delete_where(table, "k < 5")
    make_older(table.path, days=6.9)
    versions = table.snapshot().version
    seen = {
        version: sorted_rows(rows(Table(table.path).snapshot_at(version)))
        for version in range(versions + 1)
    }
    delete_where(Table(table.path), "k < 9")
    compact(Table(table.path))
    clean(table)
    for version, found in seen.items():
        snapshot = Table(table.path).snapshot_at(version)
        assert sorted_rows(rows(snapshot)) == found, version
        if version:
            data = DeltaTable(table.path, version=version)
            assert all(Path(uri).exists() for uri in data.file_uris())


def test_deletion_vectors_in_use_stay_and_replaced_ones_go(tmp_path):
    table = create(tmp_path / "t", K_V)
    append(table, "SELECT range AS k, 'v' AS v FROM range(100)")
    delete_where(table, "k < 10")
    delete_where(table, "k < 20")
    report = clean(table, later_ms=8 * DAY_MS)
    assert report.files_removed == 1
    assert len(list(table.path.rglob("deletion_vector_*.bin"))) == 1
    assert len(seen_by_all(table.path)) == 80


def test_the_end_of_a_file_is_known_from_the_checkpoint_too(tmp_path):
    """Also that of a deletion vector: both can be read again for a week."""
    table = create(tmp_path / "t", K_V)
    append(table, "SELECT range AS k, 'v' AS v FROM range(100)")
    delete_where(table, "k < 10")
    delete_where(table, "k < 20")
    for number in range(20):
        append(table, f"SELECT {number} AS k, 'w' AS v")
    upkeep(table, "k").by_hand()
    while table.checkpoints()[-1].version < table.snapshot().version:
        append(table, "SELECT 0 AS k, 'x' AS v")
    ended = {file.path for file, _ in table.tombstones()}
    assert len(ended) == 21
    vectors = {file.deletion_vector_id for file, _ in table.tombstones() if file.deletion_vector}
    assert len(vectors) == 2
    # The files are old, what ended them is not.
    for file in table.path.rglob("*"):
        if file.is_file() and file.parent.name != "_delta_log":
            os.utime(file, times=(time.time() - 30 * DAY_S,) * 2)
    assert clean(table).files_removed == 0


def test_tables_of_other_writers_keep_what_they_need(tmp_path):
    path = tmp_path / "t"
    for number in range(12):
        write_deltalake(
            path, pa.table({"k": [number], "p": ["a b"]}), mode="append", partition_by=["p"]
        )
    DeltaTable(path).optimize.compact()
    assert clean(Table(path), later_ms=8 * DAY_MS).files_removed == 12
    assert sorted(k for k, _ in seen_by_all(path)) == list(range(12))


def test_files_of_partitions_with_odd_names_are_known(tmp_path):
    table = create(tmp_path / "t", columns(_p=StringType(), k=LongType()), partitioned_by=["_p"])
    for value in ("'a b/c=%'", "'ü'", "NULL", "'.x'"):
        append(table, f"SELECT {value} AS _p, 1 AS k")
        append(table, f"SELECT {value} AS _p, 2 AS k")
    upkeep(table, "k").by_hand()
    assert clean(table, later_ms=8 * DAY_MS).files_removed == 8
    assert len(seen_by_all(table.path)) == 8
    assert len(data_files(table.path)) == 4


def test_what_no_commit_named_stays_an_hour_at_least(table):
    stray = table.path / "part-stray.parquet"
    shutil.copy(next(table.path.glob("*.parquet")), stray)
    os.utime(stray)
    assert clean(table, retention_ms=0, later_ms=HOUR_MS // 2).files_removed == 0
    assert clean(table, retention_ms=0, later_ms=2 * HOUR_MS).files_removed == 1
    assert not stray.exists()


def test_what_ended_goes_at_once_where_the_table_keeps_nothing(table):
    compact(table)
    assert clean(table, retention_ms=0, later_ms=1).files_removed == 12


def test_temporary_files_of_killed_writes_go_after_an_hour(table):
    log = table.path / "_delta_log"
    torn = log / f".{13:020}.json.{'0' * 32}.tmp"
    vector = table.path / f".deletion_vector_x.bin.{'f' * 32}.tmp"
    for file in (torn, vector):
        file.write_bytes(b"{")
    assert clean(table).files_removed == 0
    assert clean(table, later_ms=2 * HOUR_MS).files_removed == 2


def test_what_other_programs_keep_beside_the_data_stays(table):
    kept = [
        table.path / "_delta_index" / "bloom.parquet",
        table.path / ".hidden.parquet",
        table.path / "_delta_log" / "note.txt",
    ]
    for file in kept:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"x")
    assert clean(table, later_ms=100 * DAY_MS).files_removed == 0
    assert all(file.exists() for file in kept)


def test_nothing_is_removed_where_the_log_cannot_be_read(table):
    compact(table)
    checkpoint = next((table.path / "_delta_log").glob("*.checkpoint.parquet"))
    checkpoint.write_bytes(b"torn")
    before = data_files(table.path)
    with pytest.raises(CorruptLogError):
        clean(table, later_ms=100 * DAY_MS)
    assert data_files(table.path) == before


def test_it_ends_with_its_time_and_goes_on_the_next_time(table):
    compact(table)
    later = now_ms() + 100 * DAY_MS
    snapshot = table.snapshot()
    report = vacuum(table, snapshot, retention_ms=WEEK_MS, now_ms=later, deadline_s=0.0)
    assert report.files_removed == 1
    assert len(list(unneeded_files(table, snapshot, retention_ms=WEEK_MS, now_ms=later))) == 11


def test_by_itself_it_runs_once_a_day(tmp_path):
    table = scattered(tmp_path / "t", deletedFileRetentionDuration="interval 1 day")
    stray = table.path / "part-stray.parquet"
    stray.write_bytes(b"x")
    os.utime(stray, times=(0, 0))

    def finish():
        work = upkeep(Table(table.path), "k")
        work.finish()
        assert work.problem is None
        return work

    # Nothing of a new table can be old.
    assert not finish().marker.exists()
    assert stray.exists()
    created_earlier(table, days=2)
    assert finish().report.files_removed == 1
    assert not stray.exists()

    stray.write_bytes(b"x")
    os.utime(stray, times=(0, 0))
    marker = finish().marker
    assert stray.exists()
    marker.write_text(f'{{"cleaned_ms": {now_ms() - 2 * DAY_MS}}}')
    assert finish().report.files_removed == 1


def created_earlier(table, *, days):
    transaction = table.begin()
    metadata = transaction.snapshot.metadata
    created_ms = metadata.created_time_ms - int(days * DAY_MS)
    transaction.set_metadata(replace(metadata, created_time_ms=created_ms))
    transaction.commit("SET TBLPROPERTIES")
