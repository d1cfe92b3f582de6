"""Files that millpond writes outlive a loss of power, with the names of all folders they lie in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StringType

from millpond.runner.lock import update_lock
from millpond.storage import LocalStore
from tests.delta.tables import append, columns, create


@pytest.fixture
def synced(monkeypatch) -> set[Path]:
    """The files and folders that were synced, as the system call was given them."""
    found: set[Path] = set()
    fsync = os.fsync

    def record(descriptor: int) -> None:
        found.add(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    return found


@pytest.mark.parametrize("call", ["put", "put_if_absent"])
def test_a_new_file_is_durable_with_each_folder_made_for_it(tmp_path, synced, call):
    getattr(LocalStore(), call)(tmp_path / "a" / "b" / "c" / "file", b"data")
    assert {tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"} <= synced


def test_a_folder_that_holds_something_already_is_not_synced_from_above(tmp_path, synced):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "other").touch()
    LocalStore().put(tmp_path / "a" / "b" / "file", b"data")
    assert tmp_path / "a" / "b" in synced
    assert not {tmp_path, tmp_path / "a"} & synced


@pytest.mark.parametrize("call", ["put", "put_if_absent"])
def test_a_folder_whose_maker_died_before_its_name_was_durable_is_synced_from_above(
    tmp_path, synced, call
):
    (tmp_path / "a" / "b").mkdir(parents=True)
    getattr(LocalStore(), call)(tmp_path / "a" / "b" / "file", b"data")
    assert tmp_path / "a" in synced


def test_the_storage_folder_is_durable_once_it_is_locked(tmp_path, synced):
    with update_lock(tmp_path / "deep" / "storage" / "update.lock"):
        assert {tmp_path, tmp_path / "deep"} <= synced
    assert (tmp_path / "deep" / "storage").stat().st_mode & 0o777 == 0o700


def test_data_files_are_durable_with_each_partition_folder_made_for_them(tmp_path, synced):
    table = create(
        tmp_path / "t",
        columns(p=StringType(), q=LongType(), v=LongType()),
        partitioned_by=["p", "q"],
    )
    synced.clear()
    (file,) = append(table, "SELECT 'x' AS p, 1 AS q, 2 AS v").files.values()
    written = table.path / file.decoded_path
    assert {written, *list(written.parents)[:3]} <= synced
    assert table.path in synced
