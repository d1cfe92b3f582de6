"""A stream over a Delta table gives each row once: what is there first, then what is added."""

import json
import shutil

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from millpond.delta import Table
from millpond.engine.protocol import EmptyInput, ParquetInput
from millpond.errors.delta import (
    CommitsExpiredError,
    DataFileMissingError,
    DeltaTableNotFoundError,
)
from millpond.errors.streaming import (
    CheckpointSourceChangedError,
    StreamSourceChangedError,
    StreamSourceWentBackError,
    StreamStartNotFoundError,
)
from millpond.streaming import DataSize, DeltaSource
from tests.streaming.toy_flow import append, expected, read_rows


def test_the_whole_table_first_then_only_what_is_added(stream, table):
    append(table, range(5))
    append(table, range(5, 8))
    assert [batch.number for batch in stream.run()] == [0]
    assert stream.target.rows() == expected(range(8))
    assert stream.run() == []
    append(table, [8])
    append(table, [9])
    assert [batch.number for batch in stream.run()] == [1]
    assert stream.target.batches()[1] == [(8, "row 8"), (9, "row 9")]


def test_an_empty_table_gives_no_batch(stream, table):
    write_deltalake(table, pa.table({"id": pa.array([], pa.int64())}))
    assert stream.run() == []
    append(table, [1], schema_mode="merge")
    stream.run()
    assert stream.target.rows() == expected([1])


def test_a_missing_table_is_named(stream, table):
    with pytest.raises(DeltaTableNotFoundError, match="source"):
        stream.run()


def test_batches_are_bounded_by_the_number_of_files(stream, table):
    for number in range(7):
        append(table, [number])
    batches = stream.run(maxFilesPerTrigger="3")
    assert [batch.size.files for batch in batches] == [3, 3, 1]
    assert [batch.backlog_size.files for batch in batches] == [4, 1, 0]
    for number in range(7, 12):
        append(table, [number])
    assert [batch.size.files for batch in stream.run(maxFilesPerTrigger="3")] == [3, 2]
    assert stream.target.rows() == expected(range(12))


def test_the_initial_snapshot_is_read_in_the_order_of_modification_time(stream, table):
    for number in range(5):
        append(table, [number])
    stream.run(maxFilesPerTrigger="2")
    assert [[row[0] for row in batch] for batch in stream.target.batches()] == [[0, 1], [2, 3], [4]]


def test_one_commit_with_many_files_is_cut_into_batches(stream, table):
    append(table, [0])
    stream.run()
    rows = pa.table(
        {"id": pa.array(range(1, 8), pa.int64()), "text": [f"row {n}" for n in range(1, 8)]}
    )
    write_deltalake(table, rows.slice(0, 0), mode="append")
    append_many_files(table, [[number] for number in range(1, 8)])
    batches = stream.run(maxFilesPerTrigger="3")
    assert [batch.size.files for batch in batches] == [3, 3, 1]
    assert stream.target.rows() == expected(range(8))


def append_many_files(table, groups):
    """One commit with a file for each group, by joining the entries of several commits."""
    first = DeltaTable(table).version() + 1
    for ids in groups:
        append(table, ids)
    log = table / "_delta_log"
    entries = [log / f"{first + number:020}.json" for number in range(len(groups))]
    actions = [line for entry in entries for line in entry.read_text().splitlines()]
    for entry in entries:
        entry.unlink()
    adds = [line for line in actions if '"add"' in line]
    infos = [line for line in actions if '"commitInfo"' in line]
    entries[0].write_text("\n".join([*adds, infos[0]]) + "\n")


def test_batches_are_bounded_by_bytes_and_always_hold_one_file(stream, table):
    for number in range(5):
        append(table, [number])
    size = next(table.glob("*.parquet")).stat().st_size
    batches = stream.run(maxBytesPerTrigger=str(2 * size + size // 2))
    assert [batch.size.files for batch in batches] == [2, 2, 1]
    assert sum((batch.size for batch in batches), DataSize()).size_bytes == sum(
        path.stat().st_size for path in table.glob("*.parquet")
    )
    append(table, [5])
    append(table, [6])
    assert [batch.size.files for batch in stream.run(maxBytesPerTrigger="1")] == [1, 1]
    assert stream.target.rows() == expected(range(7))


def test_plain_files_are_read_where_they_lie(table, tmp_path):
    append(table, range(3))
    source = DeltaSource(Table(table))
    end = source.latest_offset()
    given = source.input(source.first_offset(end), end, folder=tmp_path / "staging")
    assert isinstance(given, ParquetInput)
    assert given.files == tuple(str(path) for path in table.glob("*.parquet"))
    assert not (tmp_path / "staging").exists()


def test_an_empty_range_has_the_columns_and_no_rows(table, tmp_path):
    append(table, range(3))
    source = DeltaSource(Table(table))
    end = source.latest_offset()
    given = source.input(end, end, folder=tmp_path / "staging")
    assert isinstance(given, EmptyInput)
    assert given.schema.names == ["id", "text"]


def test_commits_that_only_move_rows_are_empty(stream, table):
    for number in range(4):
        append(table, [number])
    stream.run()
    append(table, [4])
    DeltaTable(table).optimize.compact()
    append(table, [5])
    stream.run()
    assert stream.target.rows() == expected(range(6))
    DeltaTable(table).optimize.compact()
    assert stream.run() == []


def test_the_initial_snapshot_stays_the_same_while_the_table_is_compacted(stream, table):
    for number in range(6):
        append(table, [number])
    steps = stream.steps(maxFilesPerTrigger="2")
    next(steps)
    steps.close()
    DeltaTable(table).optimize.compact()
    append(table, [6])
    stream.run(maxFilesPerTrigger="2")
    assert stream.target.rows() == expected(range(7))


def test_many_commits_without_rows_are_passed_once(stream, table):
    append(table, [0])
    stream.run()
    for _ in range(49):
        write_deltalake(table, DeltaTable(table).to_pyarrow_table().slice(0, 0), mode="append")
    assert stream.run() == []
    write_deltalake(table, DeltaTable(table).to_pyarrow_table().slice(0, 0), mode="append")
    assert [batch.size.files for batch in stream.run()] == [0]
    assert stream.run() == []


@pytest.fixture
def changed(stream, table):
    """A table of which 0 to 3 were read; then 4 is added, 1 deleted, 5 added."""
    append(table, range(4))
    stream.run()
    append(table, [4])
    DeltaTable(table).delete("id = 1")
    append(table, [5])
    return stream


def test_a_delete_stops_the_stream_after_the_rows_before_it(changed):
    with pytest.raises(StreamSourceChangedError) as stopped:
        changed.run()
    assert "version 2" in str(stopped.value)
    assert "DELETE" in str(stopped.value)
    assert "main.shop.source" in str(stopped.value)
    assert "skipChangeCommits" in (stopped.value.hint or "")
    assert changed.target.rows() == expected(range(5))
    with pytest.raises(StreamSourceChangedError):
        changed.run()
    assert changed.target.rows() == expected(range(5))


def test_skip_change_commits_leaves_out_the_whole_commit(changed):
    changed.run(skipChangeCommits="true")
    assert changed.target.rows() == expected(range(6))


def test_ignore_deletes_does_not_allow_a_delete_that_rewrites_files(changed):
    with pytest.raises(StreamSourceChangedError):
        changed.run(ignoreDeletes="true")


def test_ignore_changes_reads_rewritten_files_again(changed):
    changed.run(ignoreChanges="true")
    assert changed.target.rows() == expected([0, 0, 1, 2, 2, 3, 3, 4, 5])


def test_ignore_deletes_takes_the_removal_of_whole_files_for_nothing(stream, table):
    append(table, [1])
    append(table, [2])
    stream.run()
    DeltaTable(table).delete("id = 1")
    append(table, [3])
    with pytest.raises(StreamSourceChangedError, match="removed rows") as stopped:
        stream.run()
    assert "ignoreDeletes" in (stopped.value.hint or "")
    stream.run(ignoreDeletes="true")
    assert stream.target.rows() == expected([1, 2, 3])


def test_an_overwrite_stops_the_stream(stream, table):
    append(table, [1])
    stream.run()
    write_deltalake(table, DeltaTable(table).to_pyarrow_table(), mode="overwrite")
    with pytest.raises(StreamSourceChangedError, match="WRITE"):
        stream.run()


def test_starting_version_leaves_out_what_was_there_before(stream, table):
    for number in range(4):
        append(table, [number])
    stream.run(startingVersion="2")
    assert stream.target.rows() == expected([2, 3])
    append(table, [4])
    stream.run(startingVersion="0")
    assert stream.target.rows() == expected([2, 3, 4])


def test_starting_version_zero_reads_every_commit(stream, table):
    append(table, [0])
    append(table, [1])
    assert len(stream.run(startingVersion="0", maxFilesPerTrigger="1")) == 2
    assert stream.target.rows() == expected([0, 1])


def test_starting_at_latest_reads_only_what_comes_later(stream, table):
    append(table, [0])
    assert [batch.size.files for batch in stream.run(startingVersion="latest")] == [0]
    assert stream.run(startingVersion="latest") == []
    append(table, [1])
    stream.run(startingVersion="latest")
    assert stream.target.rows() == expected([1])


def test_a_starting_version_in_the_future_is_refused(stream, table):
    append(table, [0])
    with pytest.raises(StreamStartNotFoundError, match="versions 0 to 0"):
        stream.run(startingVersion="1")


def test_a_starting_version_that_was_cleaned_up_is_refused(stream, table):
    for number in range(6):
        append(table, [number])
    clean_up(table, until=3)
    with pytest.raises(StreamStartNotFoundError, match="versions 3 to 5"):
        stream.run(startingVersion="2")
    stream.run(startingVersion="3")
    assert stream.target.rows() == expected([3, 4, 5])


def clean_up(table, *, until):
    """Write a checkpoint of the log and remove the entries before a version."""
    DeltaTable(table, version=until).create_checkpoint()
    for version in range(until):
        (table / "_delta_log" / f"{version:020}.json").unlink()


def set_times(table, times_ms):
    """Set when each commit was made, in its entry and as its file's time."""
    for version, time_ms in enumerate(times_ms):
        entry = table / "_delta_log" / f"{version:020}.json"
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] = time_ms
        entry.write_text("".join(json.dumps(action) + "\n" for action in actions))
        import os

        os.utime(entry, ns=(time_ms * 1_000_000, time_ms * 1_000_000))


NOON_MS = 1_767_268_800_000  # 2026-01-01T12:00:00Z


@pytest.mark.parametrize(
    ("time", "rows"),
    [
        ("2026-01-01T12:00:00Z", [0, 1, 2]),
        ("2025-01-01", [0, 1, 2]),
        ("2026-01-01T12:00:30Z", [1, 2]),
        ("2026-01-01 12:01:00", [1, 2]),
        ("2026-01-01T14:02:00+02:00", [2]),
    ],
)
def test_starting_timestamp_begins_with_the_first_commit_not_before_it(stream, table, time, rows):
    for number in range(3):
        append(table, [number])
    set_times(table, [NOON_MS, NOON_MS + 60_000, NOON_MS + 120_000])
    stream.run(startingTimestamp=time)
    assert stream.target.rows() == expected(rows)


def test_a_starting_timestamp_after_the_last_commit_is_refused(stream, table):
    append(table, [0])
    set_times(table, [NOON_MS])
    with pytest.raises(StreamStartNotFoundError, match="2026-01-01T12:00:00"):
        stream.run(startingTimestamp="2026-01-01T12:00:01Z")


def test_a_starting_timestamp_before_what_is_left_of_the_log_is_refused(stream, table):
    for number in range(4):
        append(table, [number])
    set_times(table, [NOON_MS + number * 60_000 for number in range(4)])
    clean_up(table, until=2)
    with pytest.raises(StreamStartNotFoundError):
        stream.run(startingTimestamp="2026-01-01T12:01:30Z")
    stream.run(startingTimestamp="2026-01-01T12:02:00Z")
    assert stream.target.rows() == expected([2, 3])


def test_commits_removed_before_they_were_read_stop_the_stream(stream, table):
    append(table, [0])
    stream.run()
    for number in range(1, 6):
        append(table, [number])
    clean_up(table, until=4)
    with pytest.raises(CommitsExpiredError, match="oldest entry is 4"):
        stream.run()
    assert stream.target.rows() == expected([0])


def test_an_initial_snapshot_that_is_gone_from_the_log_stops_the_stream(stream, table):
    for number in range(4):
        append(table, [number])
    steps = stream.steps(maxFilesPerTrigger="2")
    next(steps)
    steps.close()
    for number in range(4, 8):
        append(table, [number])
    clean_up(table, until=6)
    with pytest.raises(CommitsExpiredError):
        stream.run()
    assert stream.target.rows() == expected([0, 1])


def test_data_files_removed_before_they_were_read_stop_the_stream(stream, table):
    for number in range(3):
        append(table, [number])
    next(table.glob("*.parquet")).unlink()
    with pytest.raises(DataFileMissingError):
        stream.run()
    assert stream.target.rows() == []


def test_a_table_made_anew_is_not_taken_for_the_old_one(stream, table):
    append(table, range(3))
    stream.run()
    shutil.rmtree(table)
    append(table, range(3))
    append(table, [3])
    with pytest.raises(CheckpointSourceChangedError, match="no longer what"):
        stream.run()
    assert stream.target.rows() == expected(range(3))


def test_an_older_copy_of_the_table_stops_the_stream(stream, table, tmp_path):
    append(table, [0])
    shutil.copytree(table, tmp_path / "backup")
    append(table, [1])
    append(table, [2])
    stream.run()
    shutil.rmtree(table)
    shutil.copytree(tmp_path / "backup", table)
    with pytest.raises(StreamSourceWentBackError, match="read version 2") as stopped:
        stream.run()
    assert "newest version is 0" in str(stopped.value)


def test_reading_the_same_range_again_gives_the_same_rows(table, tmp_path):
    for number in range(6):
        append(table, [number])
    first = DeltaSource(Table(table), {"maxFilesPerTrigger": "4"})
    end = first.latest_offset()
    start = first.first_offset(end)
    stop = first.next_offset(start, end)
    assert stop is not None
    before = read_rows(first.input(start, stop, folder=tmp_path))
    append(table, [6])
    DeltaTable(table).optimize.compact()
    later = DeltaSource(Table(table))
    later.latest_offset()
    assert read_rows(later.input(start, stop, folder=tmp_path)) == before
    assert later.size(start, stop).files == 4
