"""The rows that an operator is given and gives: Parquet files, read and written by DuckDB.

Whatever a Spark column can hold goes through unchanged: what DuckDB reads from the engine's file it
writes with the same Parquet type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.delta import escape_glob, literal, quote
from millpond.delta.shared_connection import cursor

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Parquet files that hold the same columns; none where there are no rows.
Files = tuple[Path, ...]

# Where a row stands: a file's place in the list and the row's in the file, in one number. What is
# chosen by it is chosen again whenever the same files are given.
POSITION = "file_index::BIGINT * 1099511627776 + file_row_number"


@contextmanager
def working_in(folder: Path, rows: Sequence[Path]) -> Iterator[DuckDBPyConnection]:
    """A DuckDB for one operator's work on one batch, which is to give files in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with cursor(rows) as connection:
        yield connection


def files_sql(files: Sequence[Path]) -> str:
    """SQL that stands for the rows of files, in a FROM. There must be at least one file.

    Parquet's bounds leave NaN out, and not every DuckDB writes beside them that there is any: one
    that trusts them would lose rows.
    """
    listed = ", ".join(literal(escape_glob(str(file))) for file in files)
    return f"read_parquet([{listed}], hive_partitioning = false, can_have_nan = true)"


def column_types(connection: DuckDBPyConnection, select: str) -> dict[str, str]:
    """The columns of a SELECT in order, each with its DuckDB type."""
    described = connection.execute(f"DESCRIBE {select}").fetchall()
    return {str(name): str(kind) for name, kind, *_ in described}


def write_file(connection: DuckDBPyConnection, select: str, path: Path) -> Files:
    """Write the rows of a SELECT to a file; of none, nothing is given back."""
    (count,) = connection.execute(
        f"COPY ({select}) TO {literal(str(path))} (FORMAT parquet, COMPRESSION zstd)"
    ).fetchall()[0]
    return (path,) if count else ()


def columns_sql(columns: Sequence[str]) -> str:
    """A list of columns for SQL."""
    return ", ".join(map(quote, columns))


def equal_sql(keys: Sequence[str], left: str, right: str) -> str:
    """The condition that two tables' rows have the same key: null is null, and NaN is NaN."""
    return " AND ".join(
        f"{left}.{quote(key)} IS NOT DISTINCT FROM {right}.{quote(key)}" for key in keys
    )


def event_us_sql(column: str, types: Mapping[str, str]) -> str:
    """SQL for the event time of a column in microseconds since 1970; of a window, that of its end.

    Args:
        column: A timestamp, with a time zone or without, or a struct with a timestamp `end`.
        types: The columns that there are, with their DuckDB types.
    """
    name = quote(column)
    is_window = types[column].startswith("STRUCT")
    return f"epoch_us(struct_extract({name}, 'end'))" if is_window else f"epoch_us({name})"
