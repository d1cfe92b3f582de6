"""Work that outgrows the memory and finds no room on the disk costs its flow the batch, in words."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager

import pyarrow as pa
import pytest

from millpond.delta import shared_connection
from millpond.delta.duckdb_connection import DEFAULT_MEMORY_LIMIT
from millpond.errors.runner import StorageNotWritableError
from millpond.events import UpdateState

ROWS = 300_000


@contextmanager
def little_room():
    """Let DuckDB have little memory, and less room on the disk."""
    with shared_connection.cursor() as connection:
        connection.execute("SET GLOBAL memory_limit = '30MB'")
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
    assert isinstance(flow.error, StorageNotWritableError)
    assert tempfile.gettempdir() in str(flow.error)
    assert "TMPDIR" in str(flow.error)
    assert "p.sql:1" in str(flow.error)
    assert pipeline.run().state is UpdateState.COMPLETED
    assert len(pipeline.rows("t")) == ROWS
