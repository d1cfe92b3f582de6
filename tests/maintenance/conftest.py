"""Tables made of many small files, what they hold to every reader, and times gone by."""

import os
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StringType

from millpond.delta import Table
from millpond.maintenance import RowOrder, Upkeep
from tests.delta.tables import append, columns, create, sorted_rows
from tests.readers import READERS

K_V = columns(k=LongType(), v=StringType())
DAY_S = 24 * 3600


def scattered(path: Path, *, files: int = 12, rows: int = 50, **properties: str) -> Table:
    """A table of small files, each over the whole range of keys."""
    table = create(path, K_V, **properties)
    for number in range(files):
        append(
            table, f"SELECT range * {files} + {number} AS k, 'v' || range AS v FROM range({rows})"
        )
    return table


def upkeep(table: Table, *keys: str) -> Upkeep:
    return Upkeep(table, RowOrder(keys=keys), marker=table.path.parent / "cleaned.json")


def seen_by_all(path: Path):
    """The rows of a table, which all readers must agree on."""
    seen = {name: sorted_rows(read(path)) for name, read in READERS.items()}
    for name, found in seen.items():
        assert found == seen["delta-rs"], name
    return seen["delta-rs"]


def data_files(path: Path) -> set[str]:
    """Data files and deletion vectors on disk."""
    return {
        file.relative_to(path).as_posix()
        for file in path.rglob("*")
        if file.is_file() and "_delta_log" not in file.parts
    }


def make_older(folder: Path, *, days: float) -> None:
    """Let all files, the log's entries among them, be from earlier."""
    for file in folder.rglob("*"):
        if file.is_file():
            status = file.stat()
            times = [time - days * DAY_S for time in (status.st_atime, status.st_mtime)]
            os.utime(file, times=tuple(times))


@pytest.fixture
def table(tmp_path):
    return scattered(tmp_path / "t")
