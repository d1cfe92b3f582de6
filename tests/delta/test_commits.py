"""Commits: each is one log entry, written whole or not at all, and never over another's."""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import replace

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import LongType, StringType

from millpond.delta import Metadata, Table
from millpond.errors.delta import (
    AppendOnlyTableError,
    CommitConflictError,
    DeltaTableExistsError,
    DeltaTableNotFoundError,
)
from tests.delta.tables import (
    KEY_VALUE,
    TABLE_ID,
    append,
    columns,
    create,
    delete_where,
    entry,
    log_files,
    rows,
    sorted_rows,
    write,
)


def test_a_new_table_is_empty_and_takes_deletion_vectors(tmp_path):
    table = create(tmp_path / "t")
    snapshot = table.snapshot()
    assert (snapshot.version, dict(snapshot.files)) == (0, {})
    assert snapshot.metadata.schema == KEY_VALUE
    assert snapshot.protocol.reader_features == {"deletionVectors"}
    assert DeltaTable(table.path).version() == 0


def test_a_table_without_deletion_vectors_stays_open_to_old_readers(tmp_path):
    table = create(tmp_path / "t", enableDeletionVectors="false")
    protocol = table.snapshot().protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)


def test_a_table_is_never_created_over_another(tmp_path):
    table = create(tmp_path / "t")
    append(table, "SELECT 1 AS k, 'a' AS v")
    with pytest.raises(DeltaTableExistsError):
        create(tmp_path / "t")
    assert len(rows(Table(table.path).snapshot())) == 1


def test_a_table_of_which_only_a_checkpoint_is_left_still_exists(tmp_path):
    table = create(tmp_path / "t", checkpointInterval="1")
    append(table, "SELECT 1 AS k, 'a' AS v")
    entry(table, 0).unlink()
    with pytest.raises(DeltaTableExistsError):
        create(tmp_path / "t")


def test_a_folder_without_a_log_is_no_table(tmp_path):
    assert not Table(tmp_path).exists()
    with pytest.raises(DeltaTableNotFoundError):
        Table(tmp_path).snapshot()


def test_a_commit_carries_rows_application_version_and_provenance(tmp_path):
    table = create(tmp_path / "t")
    transaction = table.begin()
    for file in write(table, "SELECT range AS k, 'a' AS v FROM range(3)"):
        transaction.add(file)
    transaction.set_app_version("flow/1", 7)
    snapshot = transaction.commit(
        "STREAMING UPDATE", parameters={"keys": ["k"]}, metrics={"numOutputRows": 3}
    )
    assert snapshot.app_versions == {"flow/1": 7}
    assert DeltaTable(table.path).transaction_version("flow/1") == 7
    info = json.loads(entry(table, 1).read_text().splitlines()[0])["commitInfo"]
    assert info["operation"] == "STREAMING UPDATE"
    assert info["operationParameters"] == {"keys": '["k"]'}
    assert info["operationMetrics"] == {"numOutputRows": "3"}
    assert info["engineInfo"].startswith("millpond/")


def test_of_two_writers_from_one_version_the_second_conflicts_and_changes_nothing(tmp_path):
    first = create(tmp_path / "t")
    second = Table(first.path)
    slow = second.begin()
    append(first, "SELECT 1 AS k, 'first' AS v")
    for file in write(second, "SELECT 2 AS k, 'second' AS v"):
        slow.add(file)
    with pytest.raises(CommitConflictError):
        slow.commit("WRITE")
    assert sorted_rows(rows(second.snapshot())) == [(1, "first")]
    append(second, "SELECT 2 AS k, 'second' AS v")
    assert sorted_rows(rows(first.snapshot())) == [(1, "first"), (2, "second")]


def test_a_foreign_append_between_begin_and_commit_conflicts(tmp_path):
    import pyarrow as pa

    table = create(tmp_path / "t", enableDeletionVectors="false")
    transaction = table.begin()
    write_deltalake(table.path, pa.table({"k": [5], "v": ["theirs"]}), mode="append")
    with pytest.raises(CommitConflictError):
        transaction.commit("WRITE")
    assert sorted_rows(rows(table.snapshot())) == [(5, "theirs")]


def test_of_many_writers_at_once_each_version_has_one(tmp_path):
    create(tmp_path / "t")
    done: list[int] = []

    def work(number: int) -> None:
        table = Table(tmp_path / "t")
        while True:
            transaction = table.begin()
            transaction.set_app_version(f"writer {number}", number)
            try:
                done.append(transaction.commit("WRITE").version)
            except CommitConflictError:
                continue
            return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(1, 9))
    assert len(Table(tmp_path / "t").snapshot().app_versions) == 8


def test_a_commit_to_a_table_that_was_removed_creates_nothing(tmp_path):
    table = create(tmp_path / "t")
    transaction = table.begin()
    shutil.rmtree(table.path)
    with pytest.raises(CommitConflictError):
        transaction.commit("WRITE")
    assert not table.path.exists()


def test_a_table_replaced_by_another_is_noticed(tmp_path):
    table = create(tmp_path / "t")
    append(table, "SELECT 1 AS k, 'old' AS v")
    transaction = table.begin()
    shutil.rmtree(table.path)
    other = create(tmp_path / "t")
    append(other, "SELECT 2 AS k, 'new' AS v")
    with pytest.raises(CommitConflictError):
        transaction.commit("WRITE")
    assert sorted_rows(rows(table.snapshot())) == [(2, "new")]


def test_no_row_is_removed_from_an_append_only_table(tmp_path):
    table = create(tmp_path / "t", appendOnly="true")
    append(table, "SELECT 1 AS k, 'a' AS v")
    with pytest.raises(AppendOnlyTableError):
        delete_where(table, "k = 1")
    assert len(rows(table.snapshot())) == 1


def test_an_append_only_table_may_be_rearranged(tmp_path):
    table = create(tmp_path / "t", appendOnly="true")
    append(table, "SELECT 1 AS k, 'a' AS v")
    transaction = table.begin()
    for file in transaction.snapshot.files.values():
        transaction.remove(file, data_change=False)
    for file in write(table, "SELECT 1 AS k, 'a' AS v"):
        transaction.add(file)
    assert len(rows(transaction.commit("OPTIMIZE"))) == 1


def test_only_files_of_the_snapshot_can_be_removed(tmp_path):
    table = create(tmp_path / "t")
    (file,) = write(table, "SELECT 1 AS k, 'a' AS v")
    with pytest.raises(ValueError, match="is no file of version 0"):
        table.begin().remove(file)


def test_a_file_is_not_added_over_itself(tmp_path):
    table = create(tmp_path / "t")
    snapshot = append(table, "SELECT 1 AS k, 'a' AS v")
    transaction = table.begin()
    transaction.add(next(iter(snapshot.files.values())))
    with pytest.raises(ValueError, match="is not removed"):
        transaction.commit("WRITE")


def test_one_commit_can_empty_a_table_and_give_it_another_schema(tmp_path):
    table = create(tmp_path / "t")
    append(table, "SELECT 1 AS k, 'a' AS v")
    transaction = table.begin()
    for file in transaction.snapshot.files.values():
        transaction.remove(file)
    new = columns(name=StringType(), n=LongType())
    transaction.set_metadata(Metadata(TABLE_ID, new, (), {"millpond.checkpoint.f": "abc"}))
    snapshot = transaction.commit("FULL REFRESH")
    assert not snapshot.files
    assert Table(table.path).snapshot().metadata.configuration == {"millpond.checkpoint.f": "abc"}
    assert DeltaTable(table.path).schema().to_arrow().names == ["name", "n"]


def test_turning_deletion_vectors_on_later_raises_the_protocol(tmp_path):
    table = create(tmp_path / "t", enableDeletionVectors="false")
    transaction = table.begin()
    transaction.set_metadata(
        Metadata(TABLE_ID, KEY_VALUE, (), {"delta.enableDeletionVectors": "true"})
    )
    transaction.commit("SET TBLPROPERTIES")
    append(table, "SELECT range AS k, 'a' AS v FROM range(3)")
    delete_where(table, "k = 1")
    assert DeltaTable(table.path).protocol().reader_features == ["deletionVectors"]
    assert sorted_rows(rows(Table(table.path).snapshot())) == [(0, "a"), (2, "a")]


def test_in_commit_timestamps_rise_and_come_first(tmp_path):
    table = create(tmp_path / "t", enableInCommitTimestamps="true")
    for number in range(3):
        append(table, f"SELECT {number} AS k, 'a' AS v")
    stamps = []
    for version in range(4):
        first = json.loads(entry(table, version).read_text().splitlines()[0])
        stamps.append(first["commitInfo"]["inCommitTimestamp"])
    assert stamps == sorted(set(stamps))
    assert [c.timestamp_ms for c in table.commits(-1, 3)] == stamps


def test_nothing_is_left_in_the_log_but_entries(tmp_path):
    table = create(tmp_path / "t")
    append(table, "SELECT 1 AS k, 'a' AS v")
    assert log_files(table) == ["00000000000000000000.json", "00000000000000000001.json"]


def test_an_unchanged_table_costs_no_reading(tmp_path):
    class Counting:
        def __init__(self, inner):
            self.inner, self.calls = inner, []

        def __getattr__(self, name):
            def call(*arguments):
                self.calls.append(name)
                return getattr(self.inner, name)(*arguments)

            return call

    table = create(tmp_path / "t")
    store = Counting(table.store)
    reader = Table(table.path, store)
    reader.snapshot()
    store.calls.clear()
    assert reader.snapshot() is reader.snapshot()
    assert store.calls == ["exists", "exists"]


def test_a_table_says_since_when_it_has_timestamps_in_commits_even_after_a_full_refresh(tmp_path):
    table = create(tmp_path / "t")

    def set_properties(**properties):
        transaction = table.begin()
        configuration = {"delta.enableDeletionVectors": "true", **properties}
        transaction.set_metadata(
            replace(transaction.snapshot.metadata, configuration=configuration)
        )
        return transaction.commit("SET PROPERTIES")

    enabled = {"delta.enableInCommitTimestamps": "true"}
    first = set_properties(**enabled)
    again = set_properties(**enabled, other="x")
    since = "delta.inCommitTimestampEnablementVersion"
    assert first.metadata.configuration[since] == "1"
    assert again.metadata.configuration == {**first.metadata.configuration, "other": "x"}
    assert DeltaTable(table.path).metadata().configuration[since] == "1"
