"""The DuckDB that flows and operators with state compute in: one a process, in memory.

Sharing it keeps one limit on memory however many flows run side by side. Each batch works on a
cursor of its own, whose temporary tables no other cursor sees. Large batches take turns: each alone
spills to disk what does not fit, but what several of them need at once can exceed the limit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from millpond import interruptible
from millpond.delta.duckdb_connection import connect
from millpond.storage import new_scratch_folder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LARGE_BATCH_BYTES = 32 * 1024 * 1024

_lock = threading.Lock()
_turn = threading.Lock()
_database: DuckDBPyConnection | None = None


@contextmanager
def cursor(files: Sequence[Path] = ()) -> Iterator[DuckDBPyConnection]:
    """A connection to the shared database, with temporary tables of its own.

    Args:
        files: The files that the batch it is for was computed into.
    """
    is_large = sum(file.stat().st_size for file in files) > LARGE_BATCH_BYTES
    with _turn if is_large else nullcontext(), closing(_open()) as connection:
        yield connection


def _open() -> DuckDBPyConnection:
    global _database  # noqa: PLW0603 - one database a process is the point
    with _lock:
        if _database is None:
            # For work that outgrows the memory; readable by its owner only, as the tables may be.
            _database = connect(temporary_folder=new_scratch_folder("spill"))
        opened = _database.cursor()
    interruptible.register(opened)
    return opened
