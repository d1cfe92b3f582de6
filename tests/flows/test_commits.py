"""Which failures of an attempt are tried again at the newest version, and which are told at once."""

from __future__ import annotations

import errno
import os

import duckdb
import pytest

from millpond.errors.delta import DataFileMissingError, DataFileUnreadableError
from millpond.flows import BatchResult
from millpond.flows.commits import commit_changes
from tests.flows.conftest import as_row

ROW = ("east", "ann", 1, 1)


@pytest.fixture
def attempts(sales):
    """Count the attempts of a change that fails with an error while others write, and then ends."""

    def attempts(error):
        tried = []

        def attempt(transaction):
            tried.append(transaction.snapshot.version)
            if len(tried) == 1:
                sales.insert_by_hand([as_row(ROW)])
                raise error
            return BatchResult(version=transaction.snapshot.version, committed=False)

        try:
            commit_changes(sales.context(0), attempt, operation="WRITE")
        except (duckdb.Error, DataFileUnreadableError) as told:
            return len(tried), told
        return len(tried), None

    return attempts


@pytest.mark.parametrize(
    "error",
    [
        DataFileMissingError.of("/a"),
        duckdb.IOException('IO Error: Cannot open file "/a": No such file or directory'),
        duckdb.IOException('IO Error: No files found that match the pattern "/a"'),
    ],
)
def test_a_file_that_a_vacuum_took_is_looked_for_anew(attempts, error):
    assert attempts(error) == (2, None)


@pytest.mark.parametrize("kind", ["ENOSPC", "EDQUOT", "EFBIG", "EIO"])
def test_a_disk_that_fails_is_told_at_once(attempts, kind):
    error = duckdb.IOException(f'Could not write "/a": {os.strerror(getattr(errno, kind))}')
    assert attempts(error) == (1, error)


@pytest.mark.parametrize(
    "error",
    [
        duckdb.Error("TProtocolException: Invalid data"),
        duckdb.InvalidInputException("Failed to read file"),
        duckdb.IOException('IO Error: Could not read enough bytes from file "/a": attempted 8'),
    ],
)
def test_what_is_damaged_in_the_table_is_told_as_that(attempts, error):
    count, told = attempts(error)
    assert count == 1
    assert isinstance(told, DataFileUnreadableError)


def test_memory_and_values_are_no_damage(attempts):
    for error in (duckdb.OutOfMemoryException("no"), duckdb.ConversionException("no")):
        assert attempts(error) == (1, error)
