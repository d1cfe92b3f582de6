"""Reading a table's rows: the DuckDB query that gives those that are not deleted.

Files of one table differ: older ones lack newer columns or have narrower types, some have deleted
rows. What each file holds is looked up once and remembered, since data files never change.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millpond.delta.actions import AddFile
from millpond.delta.deletion_vectors import read_deletion_vectors
from millpond.delta.partition_values import value_sql
from millpond.delta.schema import duckdb_type, literal, quote
from millpond.delta.snapshot import Snapshot
from millpond.errors import MillpondError
from millpond.errors.delta import DataFileMissingError, DataFileUnreadableError
from millpond.errors.disk_reason import system_error
from millpond.storage import LocalStore, Store

if TYPE_CHECKING:
    import duckdb
    from pyroaring import BitMap64

FILE_COLUMN = "__file"
ROW_COLUMN = "__row"

_FILENAME = "__millpond_filename"
_GLOB_CHARACTERS = re.compile(r"([\[*?])")
# What DuckDB says of files that end before they should.
_TOO_SHORT = "Could not read"
_numbers = itertools.count(1)

# By path, the top-level columns of a data file and their DuckDB types.
_known_columns: dict[str, Mapping[str, str]] = {}
_MAX_KNOWN = 200_000


def live_rows_sql(
    connection: duckdb.DuckDBPyConnection,
    snapshot: Snapshot,
    files: Iterable[AddFile],
    *,
    columns: Sequence[str] | None = None,
    hidden_columns: Sequence[str] = (),
    positions: bool = False,
    store: Store | None = None,
) -> str:
    """Return a DuckDB query for the rows of some files, without those that are deleted.

    The query has the table's types, whatever the files have, and null for what a file lacks. It
    holds on `connection` only, where a view with the deleted rows is registered for it.

    Args:
        connection: From `connect`.
        snapshot: The table's state.
        files: Files of the snapshot.
        columns: Which columns to give; by default all of the table's.
        hidden_columns: Columns to give that the files may have although the table's schema lacks
            them; they keep the type that they have there.
        positions: Whether to give `FILE_COLUMN`, the number of the row's file among `files`, from
            0, and `ROW_COLUMN`, the row's number in its file.
        store: For reading deletion vectors.

    Raises:
        DataFileMissingError: A file is not there.
        DataFileUnreadableError: A file is damaged.
        CorruptDeletionVectorError: A deletion vector can't be read.
    """
    chosen = list(files)
    fields = {field.name: field.dataType for field in snapshot.metadata.schema.fields}
    names = list(dict.fromkeys([*(fields if columns is None else columns), *hidden_columns]))
    if not chosen:
        return _no_rows(names, fields, positions=positions)
    paths = [str(snapshot.file_path(file)) for file in chosen]
    held = _physical_columns(connection, snapshot.path, paths)
    deleted = read_deletion_vectors(snapshot.path, chosen, store or LocalStore())
    partitioned = [name for name in names if name in snapshot.metadata.partition_columns]
    needs_files = bool(deleted or partitioned or positions)

    stored = [name for name in names if name not in partitioned]
    present, uniform = _compare(held, stored)
    selected = []
    for name in names:
        if name in partitioned:
            number = snapshot.metadata.partition_columns.index(name)
            value = value_sql(f"f.p{number}", fields[name])
        elif name in present:
            value = f"s.{quote(name)}"
        else:
            value = "NULL"
        if name in fields:
            value = f"CAST({value} AS {duckdb_type(fields[name], column=name)})"
        selected.append(f"{value} AS {quote(name)}")
    if positions:
        selected.append(f"f.number AS {quote(FILE_COLUMN)}")
        selected.append(f"s.file_row_number AS {quote(ROW_COLUMN)}")
    source = _scan(paths, union=not uniform, rows=bool(deleted or positions), files=needs_files)
    sql = f"SELECT {', '.join(selected) or 'NULL AS nothing'} FROM {source} AS s"
    if needs_files:
        view = _register_files(connection, snapshot, chosen, paths, deleted)
        sql += f" JOIN {view} AS f ON s.{quote(_FILENAME)} = f.filename"
        if deleted:
            row = "CAST(least(s.file_row_number, f.last_bit) AS INTEGER)"
            sql += f" WHERE coalesce(get_bit(f.deleted, {row}), 0) = 0"
    return sql


def hidden_columns_of(
    connection: duckdb.DuckDBPyConnection, snapshot: Snapshot, files: Iterable[AddFile]
) -> list[str]:
    """The columns that some files hold although the table's schema lacks them."""
    paths = [str(snapshot.file_path(file)) for file in files]
    known = {field.name.lower() for field in snapshot.metadata.schema.fields}
    found = dict.fromkeys(
        name for columns in _physical_columns(connection, snapshot.path, paths) for name in columns
    )
    return [name for name in found if name not in known]


def _no_rows(names: Sequence[str], fields: Mapping[str, Any], *, positions: bool) -> str:
    selected = [
        f"CAST(NULL AS {duckdb_type(fields[name], column=name)}) AS {quote(name)}"
        if name in fields
        else f"NULL AS {quote(name)}"
        for name in names
    ]
    if positions:
        selected.append(f"CAST(NULL AS INTEGER) AS {quote(FILE_COLUMN)}")
        selected.append(f"CAST(NULL AS BIGINT) AS {quote(ROW_COLUMN)}")
    return f"SELECT {', '.join(selected)} WHERE false"


def _scan(paths: Sequence[str], *, union: bool, rows: bool, files: bool) -> str:
    listed = ", ".join(literal(escape_glob(path)) for path in paths)
    # Statistics leave NaN out; without `can_have_nan`, DuckDB would filter such rows away.
    options = ["hive_partitioning=false", "can_have_nan=true"]
    if union:
        options.append("union_by_name=true")
    if rows:
        options.append("file_row_number=true")
    if files:
        options.append(f"filename={literal(_FILENAME)}")
    return f"read_parquet([{listed}], {', '.join(options)})"


def escape_glob(path: str) -> str:
    """Write a path so that DuckDB takes it for itself, not for a pattern.

    >>> escape_glob("/data/a[1]*.parquet")
    '/data/a[[]1][*].parquet'
    """
    return _GLOB_CHARACTERS.sub(r"[\1]", path)


def _compare(held: Sequence[Mapping[str, str]], names: Sequence[str]) -> tuple[set[str], bool]:
    """Which of `names` any file holds, and whether all files hold the same ones of one type."""
    present: set[str] = set()
    uniform = True
    for name in names:
        types = {columns.get(name.lower()) for columns in held}
        uniform = uniform and len(types) == 1
        if types != {None}:
            present.add(name)
    return present, uniform


def _physical_columns(
    connection: duckdb.DuckDBPyConnection, table: Path, paths: Sequence[str]
) -> list[Mapping[str, str]]:
    for path in paths:
        if not os.path.exists(path):  # noqa: PTH110 - twice as fast, for thousands of files
            raise DataFileMissingError.of(Path(path))
    known = {path: _known_columns.get(path) for path in paths}
    unknown = [path for path, columns in known.items() if columns is None]
    if unknown:
        with damage_told(table):
            read = _read_columns(connection, unknown)
        known.update(read)
        if len(_known_columns) + len(read) > _MAX_KNOWN:
            _known_columns.clear()
        _known_columns.update(read)
    return [columns for path in paths if (columns := known[path]) is not None]


@contextmanager
def damage_told(table: Path) -> Iterator[None]:
    """Tell of what DuckDB meets in damaged files of a table, for queries of `live_rows_sql`.

    Raises:
        DataFileUnreadableError: A file is damaged.
    """
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        if not _is_damage(error):
            raise
        raise DataFileUnreadableError.of(table, reason=_first_line(error)) from error


def _is_damage(error: duckdb.Error) -> bool:
    """Whether DuckDB could not follow what a file holds.

    Memory, the disk and values that do not fit a query are of other kinds.
    """
    import duckdb

    if isinstance(error, duckdb.IOException):
        return _TOO_SHORT in str(error) and system_error(error) is None
    # Broken footers bring forth errors of no kind.
    return isinstance(error, duckdb.InvalidInputException) or type(error) is duckdb.Error


def _read_columns(
    connection: duckdb.DuckDBPyConnection, paths: Sequence[str]
) -> dict[str, Mapping[str, str]]:
    listed = ", ".join(literal(escape_glob(path)) for path in paths)
    rows = connection.execute(
        "SELECT file_name, name, duckdb_type, coalesce(num_children, 0) "
        f"FROM parquet_schema([{listed}])"
    ).fetchall()
    found: dict[str, Mapping[str, str]] = {}
    for path, elements in itertools.groupby(rows, key=lambda row: row[0]):
        columns: dict[str, str] = {}
        below = 0  # elements of the current column that are still to come
        for number, (_, name, data_type, children) in enumerate(elements):
            if number == 0:
                continue  # the row type itself
            if below == 0:
                columns[name.lower()] = data_type
            below = max(below - 1, 0) + children
        found[path] = _shared(tuple(columns.items()))
    return found


def data_file_bytes(snapshot: Snapshot, path: Path) -> int:
    """How large a file of a snapshot is that is there.

    Raises:
        DataFileMissingError: It is not there.
        DataFileUnreadableError: It is a pipe or the like, which might never end.
        OSError: It can't be looked at now.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DataFileMissingError.of(path) from error
    if not stat.S_ISREG(found.st_mode):
        raise DataFileUnreadableError.of(snapshot.path, reason=f"{path} is no file")
    return found.st_size


def check_data_files(snapshot: Snapshot) -> None:
    """Look for files of a snapshot that are gone, or shorter or longer than the log says and torn.

    Raises:
        DataFileMissingError: A file is not there.
        DataFileUnreadableError: A file is no whole Parquet file, or none at all, as a pipe.
        OSError: A file can't be read now.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in snapshot.files.values():
        path = snapshot.file_path(file)
        try:
            if data_file_bytes(snapshot, path) != file.size_bytes:
                pq.read_metadata(path)
        except MillpondError:
            raise
        except (pa.ArrowException, OSError) as error:
            if system_error(error) is not None:
                # Rights, limits and disks are no damage, and pass.
                raise
            reason = f"{path}: {_first_line(error)}"
            raise DataFileUnreadableError.of(snapshot.path, reason=reason) from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


@lru_cache(maxsize=1024)
def _shared(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """One mapping for all files of the same columns."""
    return dict(items)


def _register_files(
    connection: duckdb.DuckDBPyConnection,
    snapshot: Snapshot,
    files: Sequence[AddFile],
    paths: Sequence[str],
    deleted: Mapping[str, BitMap64],
) -> str:
    """Register what the query must know of each file, as a view, and return the view's name."""
    import pyarrow as pa

    bits = [_bits(deleted.get(file.path)) for file in files]
    table = {
        "filename": pa.array(paths, pa.string()),
        "number": pa.array(range(len(files)), pa.int32()),
        "deleted": pa.array(bits, pa.large_binary()),
    }
    for number, name in enumerate(snapshot.metadata.partition_columns):
        values = [file.partition_values.get(name) for file in files]
        table[f"p{number}"] = pa.array(values, pa.string())
    raw = f"__millpond_files_{next(_numbers)}"
    connection.register(raw, pa.table(table))
    return (
        f"(SELECT * REPLACE (CAST(CAST(deleted AS BLOB) AS BIT) AS deleted), "
        f"octet_length(CAST(deleted AS BLOB)) * 8 - 1 AS last_bit FROM {raw})"
    )


def _bits(bitmap: BitMap64 | None) -> bytes | None:
    """One bit a row, up to the last deleted one, and then at least one bit that is not set.

    DuckDB looks a bit up in constant time; rows after the last one are looked up there too.
    """
    if bitmap is None or not bitmap:
        return None
    import numpy as np

    flags = np.zeros(bitmap.max() + 2, dtype=bool)
    flags[np.asarray(bitmap.to_array(), dtype=np.int64)] = True
    return bytes(np.packbits(flags).tobytes())
