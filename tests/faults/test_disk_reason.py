"""What the operating system said is told, and not how Python, DuckDB and the engine wrap it."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

import duckdb
import pytest

from millpond.delta import Table, write_checkpoint
from millpond.engine.embedded import open_files
from millpond.errors.disk_reason import disk_reason, disk_remedy, engine_disk_reason
from millpond.errors.engine_start import EngineStartError
from millpond.errors.runner import StorageNotWritableError
from millpond.storage import Disk, LocalStore

FULL = os.strerror(errno.ENOSPC)


def full(*names: str) -> OSError:
    return OSError(errno.ENOSPC, FULL, *names)


def test_an_error_of_the_system_is_told_with_the_file():
    assert disk_reason(full()) == FULL
    assert disk_reason(full("/a")) == f"{FULL}: /a"


def test_of_a_link_the_file_that_could_not_be_made_is_told():
    error = OSError(errno.ENOSPC, FULL, "/there", None, "/new")
    assert disk_reason(error) == f"{FULL}: /new"


def test_of_duckdb_the_system_error_in_it_is_told():
    wrapped = '{"exception_type":"IO","exception_message":"Could not write file: No space"}'
    assert disk_reason(duckdb.IOException(f"IO Error: Async write: {wrapped}")) == (
        "Could not write file: No space"
    )
    assert disk_reason(duckdb.IOException("IO Error: no.\nmore")) == "IO Error: no"
    assert disk_reason(duckdb.IOException("")) == "IOException"


def test_of_the_engine_only_what_is_the_disks_fault_is_told():
    text = "Unable to copy data to file: x (os error {})"
    assert engine_disk_reason(text.format(errno.ENOSPC)) == FULL
    assert engine_disk_reason(text.format(errno.EMFILE)) == os.strerror(errno.EMFILE)
    assert engine_disk_reason(text.format(errno.ENOENT)) is None
    assert engine_disk_reason("division by zero") is None


def test_whoever_has_too_many_files_open_is_not_told_to_make_space():
    many = OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/a")
    assert "ulimit -n" in disk_remedy(many)
    assert "space" in disk_remedy(full("/a"))


def test_a_write_that_fails_says_which_file(tmp_path):
    """An error of an open file has no name in it."""
    with (
        Path("/dev/full").open("wb", buffering=0) as file,
        pytest.raises(OSError, match=FULL) as no,
    ):
        file.write(b"x")
    assert no.value.filename is None
    (tmp_path / "file").symlink_to("/dev/full")
    with pytest.raises(OSError, match=FULL) as found:
        Disk().append(tmp_path / "file", b"x")
    assert found.value.filename == str(tmp_path / "file")


def test_an_engine_that_can_open_too_few_files_is_not_started(monkeypatch):
    """gRPC ends the process where it can't have what it needs."""
    monkeypatch.setattr(open_files, "_NEEDED", 2**20)
    with pytest.raises(EngineStartError, match="ulimit -n"):
        open_files.make_room()


def test_a_log_without_a_new_checkpoint_is_told_in_words(folder, caplog):
    class FullStore(LocalStore):
        def list(self, folder):
            raise full(str(folder))

    folder.feed("t", [{"k": 1}])
    snapshot = Table(folder.table("t")).snapshot()
    with caplog.at_level(logging.WARNING):
        assert not write_checkpoint(snapshot, FullStore())
    assert f"{folder.table('t')} got no checkpoint" in caplog.text
    assert f": {FULL}: " in caplog.text


def test_an_update_that_can_not_write_says_what_became_of_it():
    error = StorageNotWritableError.from_update(full("/a"))
    assert f"{FULL}: /a. What it committed before is in the tables." in str(error)
