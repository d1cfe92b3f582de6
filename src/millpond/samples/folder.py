"""Writes sample tables to disk, one process at a time: a table is there whole or not at all.

Samples can be made again at any time; they are no part of what a pipeline's exactly-once promise
covers, so they are written here and not through a `Store`.
"""

from __future__ import annotations

import fcntl
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake import DeltaTable, write_deltalake

from millpond.samples.wanderbricks.generate import generate
from millpond.storage import LocalStore

DESCRIPTION = "Sample data made by millpond: a simulated marketplace of holiday homes."


def bring_up_to(folder: Path, table: str, *, bookings: int, slices: int, lock: Path) -> None:
    """Make the table if it is not there, and append the slices that it lacks, a commit each."""
    with _only_one(lock):
        if not folder.exists():
            _create(folder, table, bookings=bookings)
        for slice_number in range(DeltaTable(folder).version() + 2, slices + 1):
            rows = generate(table, bookings=bookings, slice_number=slice_number)
            write_deltalake(folder, rows, mode="append")


def _create(folder: Path, table: str, *, bookings: int) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left_behind in folder.parent.glob(f".{folder.name}.*.tmp"):
        shutil.rmtree(left_behind)
    temporary = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.tmp")
    write_deltalake(
        temporary,
        generate(table, bookings=bookings, slice_number=1),
        name=table,
        description=DESCRIPTION,
    )
    LocalStore().sync(path for path in temporary.rglob("*") if path.is_file())
    temporary.rename(folder)


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Hold the lock file; the system frees it when the process ends, however it ends."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
