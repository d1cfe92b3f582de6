"""Fewer and larger files of rows: which runs are merged when, and how.

Runs of about the same size are merged once there are several: a row is written again only when its
run grows to several times the size, so a number of times that is logarithmic in the state's size,
and so is the number of runs. A merge leaves out dead rows; a file of which about half the rows are
dead is written again by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.delta import quote
from millpond.state.row_files import (
    HASH_COLUMN,
    ROW_ID_COLUMN,
    hash_sql,
    rows_sql,
    write_row_file,
    write_row_files,
)
from millpond.state.version import RowFile, StoredRows

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Run = tuple[RowFile, ...]

RUNS_MERGED = 8
# Smaller runs are all of the first size.
_SMALL_BYTES = 256 * 1024
# A merge sorts and writes about so much at a time, which bounds the memory that it takes.
_FILE_BYTES = 32 * 1024 * 1024
_HASH_END = 1 << 63


def compact(connection: DuckDBPyConnection, stored: StoredRows, *, stem: Path) -> StoredRows:
    """The same rows in fewer files, where that pays; the old files are left alone.

    Args:
        connection: Does the sorting.
        stored: The rows.
        stem: Folder and beginning of the name of new files.
    """
    merged = runs_to_merge(stored.runs)
    if merged:
        files = [file for run in merged for file in run]
        kept = [run for run in stored.runs if run not in merged]
        run = tuple(_merge(connection, stored, files, stem=stem))
        stored = replace(stored, runs=tuple(kept) + ((run,) if run else ()))
    runs = (tuple(_without_dead(connection, stored, run, stem=stem)) for run in stored.runs)
    return replace(stored, runs=tuple(run for run in runs if run))


def runs_to_merge(runs: Sequence[Run]) -> list[Run]:
    """Which runs to make one of: those of a size of which there are enough.

    Where the result is of the next size and makes that one full, too, they are merged at once.
    """
    tiers: dict[int, list[Run]] = {}
    for run in runs:
        tiers.setdefault(_tier(_size_bytes(run)), []).append(run)
    chosen: list[Run] = []
    for tier in sorted(tiers):
        arrives = bool(chosen) and _tier(sum(map(_size_bytes, chosen))) == tier
        if len(tiers[tier]) + arrives >= RUNS_MERGED:
            chosen += tiers[tier]
    return chosen


def rehash(connection: DuckDBPyConnection, stored: StoredRows, *, stem: Path) -> StoredRows:
    """The same rows with the hashes that this DuckDB computes, should they be others."""
    import duckdb

    files = stored.files
    computed = hash_sql(quote(key) for key in stored.keys)
    rows = rows_sql(stored, files, folder=stem.parent, with_hash=True)
    (others,) = connection.execute(
        f"SELECT count(*) FROM ({rows}) AS stored WHERE {HASH_COLUMN} <> {computed}"
    ).fetchall()[0]
    if others:
        rows = f"SELECT {computed} AS {HASH_COLUMN}, * EXCLUDE ({HASH_COLUMN}) FROM ({rows})"
        written = write_row_files(connection, rows, stored=stored, stem=stem)
        stored = replace(stored, runs=tuple((file,) for file in written))
    return replace(stored, hashed_by=duckdb.__version__)


def _tier(size_bytes: int) -> int:
    tier = 0
    while size_bytes > _SMALL_BYTES:
        size_bytes //= RUNS_MERGED
        tier += 1
    return tier


def _size_bytes(run: Run) -> int:
    return sum(file.size_bytes for file in run)


def _merge(
    connection: DuckDBPyConnection, stored: StoredRows, files: Sequence[RowFile], *, stem: Path
) -> Iterator[RowFile]:
    """One run of files by range of hashes, each range by itself."""
    ranges = -(-sum(file.size_bytes for file in files) // _FILE_BYTES)
    for number in range(ranges):
        first, end = (_HASH_END * bound // ranges for bound in (number, number + 1))
        yield from _merge_range(connection, stored, files, first=first, end=end, stem=stem)


def _merge_range(
    connection: DuckDBPyConnection,
    stored: StoredRows,
    files: Sequence[RowFile],
    *,
    first: int,
    end: int,
    stem: Path,
) -> Iterator[RowFile]:
    import duckdb

    inside = [file for file in files if file.hash_min < end and file.hash_max >= first]
    if not inside:
        return
    first = max(first, min(file.hash_min for file in inside))
    end = min(end, max(file.hash_max for file in inside) + 1)
    rows = rows_sql(stored, inside, folder=stem.parent, with_hash=True)
    select = f"SELECT * FROM ({rows}) WHERE {HASH_COLUMN} BETWEEN {first} AND {end - 1}"
    if end - first == 1:
        yield from _merge_hash(connection, stored, select, stem=stem)
        return
    try:
        written = write_row_file(connection, select, stored=stored, stem=stem)
    except duckdb.OutOfMemoryException:
        middle = (first + end) // 2
        for half in ((first, middle), (middle, end)):
            yield from _merge_range(
                connection, stored, inside, first=half[0], end=half[1], stem=stem
            )
    else:
        if written is not None:
            yield written


def _merge_hash(
    connection: DuckDBPyConnection, stored: StoredRows, select: str, *, stem: Path
) -> Iterator[RowFile]:
    """Files of the rows of one hash, of which each is as good as sorted."""
    import duckdb

    try:
        written = write_row_file(connection, select, stored=stored, stem=stem, is_sorted=True)
    except duckdb.OutOfMemoryException:
        first, last = connection.execute(
            f"SELECT min({ROW_ID_COLUMN}), max({ROW_ID_COLUMN}) FROM ({select})"
        ).fetchall()[0]
        if first == last:
            raise
        middle = (first + last) // 2
        for half in (f"{ROW_ID_COLUMN} <= {middle}", f"{ROW_ID_COLUMN} > {middle}"):
            part = f"SELECT * FROM ({select}) WHERE {half}"
            yield from _merge_hash(connection, stored, part, stem=stem)
    else:
        if written is not None:
            yield written


def _without_dead(
    connection: DuckDBPyConnection, stored: StoredRows, run: Run, *, stem: Path
) -> Iterator[RowFile]:
    for file in run:
        if file.due_half is None or stored.floor_us is None or file.due_half > stored.floor_us:
            yield file
            continue
        yield from _merge(connection, stored, [file], stem=stem)
