"""The DuckDB that flows compute in: one in-memory database a process, shared by all threads.

Sharing it keeps one limit on memory however many flows run side by side. Each batch works on a
cursor of its own, whose temporary tables no other cursor sees.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.delta import connect

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_lock = threading.Lock()
_database: DuckDBPyConnection | None = None


def cursor() -> DuckDBPyConnection:
    """A connection to the shared database. Close it to let its temporary tables go."""
    global _database  # noqa: PLW0603 - one database a process is the point
    with _lock:
        if _database is None:
            # For work that outgrows the memory; readable by its owner only, as the tables may be.
            spill = Path(tempfile.mkdtemp(prefix="millpond-spill-"))
            atexit.register(shutil.rmtree, spill, ignore_errors=True)
            _database = connect(temporary_folder=spill)
        return _database.cursor()
