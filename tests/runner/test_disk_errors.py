"""A disk that fails now and then costs an update, in plain words, and no more than that."""

from __future__ import annotations

import dataclasses
import errno
import os
import sys

import duckdb
import pytest

from millpond.errors.events import EventLogWriteError
from millpond.errors.runner import StorageNotWritableError
from millpond.events import FlowStatus, UpdateState
from millpond.runner import run_update
from millpond.storage import LocalStore

PIPELINE = """
CREATE STREAMING TABLE bronze AS SELECT * FROM STREAM(landing);
CREATE STREAMING TABLE silver AS SELECT * FROM STREAM(bronze);
"""


class FailingStore(LocalStore):
    """Fails to do a thing to files of which the path holds a text."""

    def __init__(self, name, text):
        super().__init__()
        self.failing = (name, text)

    def _do(self, name, path, *arguments):
        if name == self.failing[0] and self.failing[1] in str(path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return getattr(LocalStore, name)(self, path, *arguments)

    def list(self, folder):
        return self._do("list", folder)

    def put_if_absent(self, path, data):
        self._do("put_if_absent", path, data)

    def exists(self, path):
        return self._do("exists", path)


@pytest.fixture
def filled(folder):
    folder.write("pipeline.sql", PIPELINE)
    folder.feed("landing", [{"k": 1}])
    assert folder.run().state is UpdateState.COMPLETED
    return folder


def run(folder, store, **selection):
    return run_update(dataclasses.replace(folder.project(), store=store), **selection)


def test_a_table_that_can_not_be_set_up_fails_in_plain_words(folder):
    folder.write("pipeline.sql", PIPELINE)
    folder.feed("landing", [{"k": 1}])
    result = run(folder, FailingStore("put_if_absent", "bronze/_delta_log"))
    errors = {flow.name: flow.error for flow in result.flows}
    assert isinstance(errors["main.sales.bronze"], StorageNotWritableError)
    assert str(folder.table("bronze")) in str(errors["main.sales.bronze"])
    folder.run()
    assert folder.rows("silver") == [(1,)]


def test_a_source_is_not_cleared_where_its_reader_could_not_be(filled):
    """The reader's stream would be lost: its source would have lost rows that it has read."""
    result = run(
        filled,
        FailingStore("put_if_absent", "silver/_delta_log"),
        full_refresh=["bronze", "silver"],
    )
    assert {flow.name: flow.status for flow in result.flows} == {
        "main.sales.bronze": FlowStatus.SKIPPED,
        "main.sales.silver": FlowStatus.FAILED,
    }
    filled.feed("landing", [{"k": 2}])
    assert filled.run().state is UpdateState.COMPLETED
    assert filled.rows("bronze") == filled.rows("silver") == [(1,), (2,)]


def test_old_checkpoints_that_can_not_be_looked_for_wait_for_the_next_update(filled):
    assert run(filled, FailingClean()).state is UpdateState.COMPLETED


class FailingClean(LocalStore):
    """Can't list the folder that holds all checkpoints of a flow."""

    def list(self, folder):
        if folder.parent.name == "checkpoints":
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(folder))
        return super().list(folder)


def test_an_event_log_for_which_there_is_no_space_is_a_problem_of_its_own(filled, monkeypatch):
    def fail(*_arguments, **_options):
        raise duckdb.IOException("Could not write file: No space left on device")

    monkeypatch.setattr(sys.modules["millpond.events.table"], "write_data_files", fail)
    filled.feed("landing", [{"k": 2}])
    result = filled.run()
    assert result.state is UpdateState.COMPLETED
    assert [type(problem) for problem in result.problems] == [EventLogWriteError]
    assert filled.rows("silver") == [(1,), (2,)]


def test_an_event_log_that_can_not_be_looked_at_is_a_problem_of_its_own(filled):
    filled.feed("landing", [{"k": 2}])
    result = run(filled, FailingStore("exists", "storage/events/_delta_log"))
    assert result.state is UpdateState.COMPLETED
    assert [type(problem) for problem in result.problems] == [EventLogWriteError]
    assert filled.rows("silver") == [(1,), (2,)]
