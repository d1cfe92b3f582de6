"""The Parquet files that hold rows of state: written sorted by the hash of their key, and read.

The hash is a column of its own, and files have an index of small pages, so that a lookup reads, by
the bounds of pages and row groups, only those that can hold one of its keys.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.delta import literal, quote
from millpond.state.batch_rows import files_sql
from millpond.state.version import RowFile, StoredRows

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

HASH_COLUMN = "__hash"
ROW_ID_COLUMN = "row_id"

# Of hashes; a page of a wider column has fewer rows.
ROWS_OF_PAGE = 2048
_FORMAT = (
    "FORMAT parquet, PARQUET_VERSION v2, COMPRESSION lz4_raw, WRITE_PAGE_INDEX true, "
    f"DATA_PAGE_SIZE_LIMIT {8 * ROWS_OF_PAGE}, RETURN_STATS true"
)
# Row groups are held in memory to be written, so they are small where rows are long.
_ROW_GROUPS = "ROW_GROUP_SIZE 32768, ROW_GROUP_SIZE_BYTES '16MB'"
# Of smaller files nobody asks how many of their rows are dead: they are soon merged.
_ROWS_WORTH_HALVING = 10_000
_NEVER_US = (1 << 63) - 1


def hash_sql(values: Iterable[str]) -> str:
    """SQL for the hash of a key, the same for keys that are the same.

    Null is the same as null, NaN as NaN, -0.0 as 0.0, inside structs and arrays, too. One of the 64
    bits is given away for a signed integer, on whose bounds all readers of Parquet agree.
    """
    listed = ", ".join(values)
    return f"CAST(hash({listed}) >> 1 AS BIGINT)" if listed else "CAST(0 AS BIGINT)"


def write_row_files(
    connection: DuckDBPyConnection, select: str, *, stored: StoredRows, stem: Path
) -> list[RowFile]:
    """Write rows to new files, each sorted by hash: to one, or to more if they outgrow the memory.

    Args:
        connection: Sorts them, and spills what does not fit into memory.
        select: Gives `HASH_COLUMN`, the columns of `stored` and `ROW_ID_COLUMN`. It is run again
            where the rows outgrow the memory.
        stored: What the rows belong to.
        stem: Folder and beginning of the names of the files.
    """
    import duckdb

    try:
        files = [write_row_file(connection, select, stored=stored, stem=stem)]
    except duckdb.OutOfMemoryException:
        # DuckDB sorts more than the memory holds, but not if rows are long. What is left of a file,
        # and of these unsorted ones, is removed with all that no version names.
        pattern = f"{stem.name}-{uuid.uuid4().hex}-{{uuid}}"
        unsorted = connection.execute(
            f"COPY ({select}) TO {literal(str(stem.parent))} ({_FORMAT}, {_ROW_GROUPS}, "
            f"APPEND true, FILENAME_PATTERN {literal(pattern)}, ROW_GROUPS_PER_FILE 1)"
        ).fetchall()
        parts = [f"SELECT * FROM {files_sql([Path(name)])}" for name, *_ in unsorted]
        files = [write_row_file(connection, part, stored=stored, stem=stem) for part in parts]
    return [file for file in files if file is not None]


def write_row_file(
    connection: DuckDBPyConnection,
    select: str,
    *,
    stored: StoredRows,
    stem: Path,
    is_sorted: bool = False,
) -> RowFile | None:
    """Write rows to one file, sorted by hash unless they are already; `None` if there are none."""
    path = stem.with_name(f"{stem.name}-{uuid.uuid4().hex}.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    order = "" if is_sorted else f" ORDER BY {HASH_COLUMN}"
    _, rows, size_bytes, _, statistics, *_ = connection.execute(
        f"COPY (SELECT * FROM ({select}) AS given{order}) TO {literal(str(path))} "
        f"({_FORMAT}, {_ROW_GROUPS})"
    ).fetchall()[0]
    if rows == 0:
        # A file that no version names is removed with the rest of them.
        return None
    hashes = statistics[quote(HASH_COLUMN)]
    due = {} if stored.due is None else statistics[quote(stored.due)]
    never = int(due["null_count"]) if due else rows
    return RowFile(
        name=path.name,
        rows=rows,
        size_bytes=size_bytes,
        hash_min=int(hashes["min"]),
        hash_max=int(hashes["max"]),
        due_min=int(due["min"]) if never < rows else None,
        due_max=int(due["max"]) if never < rows else None,
        due_half=_half_of_due(connection, path, stored=stored, rows=rows),
        has_lasting=never > 0,
    )


def rows_sql(
    stored: StoredRows, files: Sequence[RowFile], *, folder: Path, with_hash: bool = False
) -> str:
    """A SELECT of the live rows of some files: the columns of `stored`, and last `ROW_ID_COLUMN`.

    Args:
        stored: What the files belong to.
        files: May be none.
        folder: That they lie in.
        with_hash: Whether to give `HASH_COLUMN`, first.
    """
    names = [HASH_COLUMN] if with_hash else []
    names += [name for name, _ in stored.columns] + [ROW_ID_COLUMN]
    if not files:
        kinds = {**dict(stored.columns), HASH_COLUMN: "BIGINT", ROW_ID_COLUMN: "BIGINT"}
        nothing = (f"CAST(NULL AS {kinds[name]}) AS {quote(name)}" for name in names)
        return f"SELECT {', '.join(nothing)} WHERE false"
    read = files_sql([folder / file.name for file in files])
    return f"SELECT {', '.join(map(quote, names))} FROM {read}{_where_live(stored, files)}"


def _where_live(stored: StoredRows, files: Sequence[RowFile]) -> str:
    floor = stored.floor_us
    if stored.due is None or floor is None:
        return ""
    if all(file.due_min is None or file.due_min > floor for file in files):
        return ""
    due = quote(stored.due)
    return f" WHERE ({due} IS NULL OR {due} > {floor})"


def _half_of_due(
    connection: DuckDBPyConnection, path: Path, *, stored: StoredRows, rows: int
) -> int | None:
    """A time by which about half of the rows of a file are dead."""
    if stored.due is None or rows < _ROWS_WORTH_HALVING:
        return None
    (half,) = connection.execute(
        f"SELECT approx_quantile(coalesce({quote(stored.due)}, {_NEVER_US}), 0.5) "
        f"FROM {files_sql([path])}"
    ).fetchall()[0]
    return None if half == _NEVER_US else int(half)
