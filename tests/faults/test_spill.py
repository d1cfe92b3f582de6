"""Work that outgrows the memory and finds no room on the disk costs its flow the batch, in words."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager

import duckdb
import pyarrow as pa
import pytest

from millpond.delta import shared_connection
from millpond.delta.duckdb_connection import DEFAULT_MEMORY_LIMIT
from millpond.errors.runner import FlowOutOfMemoryError, StorageNotWritableError
from millpond.events import UpdateState
from millpond.runner.embedded import flow_run

ROWS = 300_000


@contextmanager
def little_room(memory="30MB"):
    """Let DuckDB have little memory, and less room on the disk."""
    with shared_connection.cursor() as connection:
        connection.execute(f"SET GLOBAL memory_limit = '{memory}'")
        connection.execute("SET GLOBAL max_temp_directory_size = '1MB'")
        try:
            yield
        finally:
            connection.execute(f"SET GLOBAL memory_limit = '{DEFAULT_MEMORY_LIMIT}'")
            connection.execute("RESET GLOBAL max_temp_directory_size")


@pytest.fixture
def pipeline(folder):
    folder.write(
        "p.sql",
        "CREATE STREAMING TABLE t FLOW REPLACE USING (k) SEQUENCE BY s BY NAME "
        "SELECT k, s FROM STREAM(landing)",
    )
    keys = pa.array([f"{number:040}" for number in range(ROWS)])
    folder.feed("landing", pa.table({"k": keys, "s": pa.array(range(ROWS), pa.int64())}))
    return folder


def test_rows_that_find_room_neither_in_memory_nor_on_disk_come_with_the_next_update(pipeline):
    with little_room():
        (flow,) = pipeline.run().flows
    # DuckDB says either, by what it was at.
    assert isinstance(flow.error, (StorageNotWritableError, FlowOutOfMemoryError))
    assert tempfile.gettempdir() in str(flow.error)
    assert "TMPDIR" in str(flow.error)
    assert "p.sql:1" in str(flow.error)
    assert pipeline.run().state is UpdateState.COMPLETED
    assert len(pipeline.rows("t")) == ROWS


def test_rows_that_need_more_memory_than_there_is_are_not_told_to_be_the_disks_fault(pipeline):
    with little_room("300kB"):
        (flow,) = pipeline.run().flows
    assert isinstance(flow.error, FlowOutOfMemoryError)
    assert DEFAULT_MEMORY_LIMIT in str(flow.error)
    assert "maxFilesPerTrigger" in flow.error.hint
    assert "could not take the rest" not in str(flow.error)
    assert pipeline.run().state is UpdateState.COMPLETED
    assert len(pipeline.rows("t")) == ROWS


@pytest.mark.parametrize("words", ["failed to offload data block", "'max_temp_directory_size'"])
def test_a_folder_for_temporary_files_that_is_full_is_told_to_be(pipeline, monkeypatch, words):
    def fail(*_arguments, **_options):
        raise duckdb.OutOfMemoryException(f"Out of Memory Error: {words}")

    monkeypatch.setattr(flow_run.flows, "replace_using", fail)
    (flow,) = pipeline.run().flows
    assert isinstance(flow.error, StorageNotWritableError)
    assert "could not take the rest" in str(flow.error)
