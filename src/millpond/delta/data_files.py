"""Writing a table's data files: DuckDB's COPY, with Delta's types, partitioning and statistics."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as percent_encode

from millpond.delta.actions import AddFile, Metadata
from millpond.delta.nested_names import column_types, with_names_of
from millpond.delta.partition_values import text_sql
from millpond.delta.schema import check_schema, duckdb_type, literal, quote
from millpond.delta.snapshot import Snapshot
from millpond.delta.stats import DEFAULT_INDEXED_COLUMNS, stats_of_copy
from millpond.errors.delta import NotNullViolatedError
from millpond.profiling import phase
from millpond.storage import Store

if TYPE_CHECKING:
    import duckdb
    from duckdb.sqltypes import DuckDBPyType
    from pyspark.sql.types import StructType

MAX_FILE_SIZE_BYTES = 128 * 1024 * 1024
# DuckDB's own level, 3, takes almost twice the time of a whole write, for files of the same size.
_ZSTD_LEVEL = 1


@dataclass(frozen=True)
class WrittenFile:
    """A Parquet file as DuckDB's COPY wrote it, with what it says of it."""

    path: Path
    rows: int
    size_bytes: int
    column_statistics: Mapping[str, Mapping[str, Any]]


def copy_to_files(
    connection: duckdb.DuckDBPyConnection,
    select_sql: str,
    folder: Path,
    *,
    compression: str = "zstd",
    partition_columns: Sequence[str] = (),
    max_file_bytes: int | None = None,
) -> list[tuple[WrittenFile, Mapping[str, str | None]]]:
    """Write the rows of a query to files of a bounded size; of no rows, none.

    Args:
        folder: It must exist.
        compression: As Parquet names it.
        partition_columns: Each of their values gets a folder of its own.
        max_file_bytes: About the size that files have at most.

    Returns:
        The files, each with its partition values.
    """
    options = [
        "FORMAT parquet",
        f"COMPRESSION {compression}",
        "RETURN_STATS true",
        "APPEND true",
        f"FILENAME_PATTERN {literal(f'part-{uuid.uuid4()}-{{uuid}}')}",
        f"FILE_SIZE_BYTES {max_file_bytes or MAX_FILE_SIZE_BYTES}",
    ]
    if compression == "zstd":
        options.append(f"COMPRESSION_LEVEL {_ZSTD_LEVEL}")
    if partition_columns:
        options.append(f"PARTITION_BY ({', '.join(map(quote, partition_columns))})")
    written = connection.execute(
        f"COPY ({select_sql}) TO {literal(str(folder))} ({', '.join(options)})"
    ).fetchall()
    return [
        (WrittenFile(Path(name), rows, size_bytes, statistics), partition_values or {})
        for name, rows, size_bytes, _footer, statistics, partition_values, *_ in written
    ]


@phase("write rows")
def adopt_data_files(
    files: Sequence[WrittenFile], schema: StructType, *, snapshot: Snapshot, store: Store
) -> list[AddFile] | None:
    """Make files of a table's own of such as hold just its columns, durable on return.

    Args:
        files: They stay where they are, and must not be changed.
        schema: Their columns.
        snapshot: The table's state.
        store: Links the files and makes them durable.

    Returns:
        `None` where that can't be: the table has other columns, is partitioned, or lies elsewhere.

    Raises:
        NotNullViolatedError: A column that is declared not null has nulls.
    """
    metadata = snapshot.metadata
    if metadata.partition_columns or _kinds(schema) != _kinds(metadata.schema):
        return None
    check_schema(metadata.schema, metadata.partition_columns)
    for file in files:
        _check_not_null(metadata, file.rows, file.column_statistics, {})
    snapshot.path.mkdir(parents=True, exist_ok=True)
    paths = [snapshot.path / f"part-{uuid.uuid4()}.parquet" for _ in files]
    try:
        for file, path in zip(files, paths, strict=True):
            store.link(file.path, path)
    except OSError:
        for path in paths:
            store.remove(path)
        return None
    store.sync(paths)
    return [
        _add_file(replace(file, path=path), {}, metadata, snapshot.path, data_change=True)
        for file, path in zip(files, paths, strict=True)
    ]


@phase("write rows")
def write_data_files(
    connection: duckdb.DuckDBPyConnection,
    select_sql: str,
    *,
    snapshot: Snapshot,
    store: Store,
    metadata: Metadata | None = None,
    hidden_columns: Sequence[str] = (),
    data_change: bool = True,
    max_file_bytes: int | None = None,
) -> list[AddFile]:
    """Write the rows of a query as new data files of a table, durable on return.

    Columns, and fields inside them, are matched by name without regard to case and cast to the
    table's types; one that the query lacks is null, and one that the table lacks is left out. Rows
    keep their order only where the connection has a single thread. Files that no commit names
    afterwards are harmless, and a vacuum takes them away.

    Args:
        connection: From `connect`.
        select_sql: A DuckDB query.
        snapshot: The table's state.
        store: Makes the files durable.
        metadata: Of the table as it will be, where the commit of these files changes it.
        hidden_columns: Columns of the query to store although the table's schema lacks them.
        data_change: `False` where the rows only move from files that the same commit removes.
        max_file_bytes: About the size that files have at most.

    Raises:
        InvalidTableSchemaError: The columns are none that millpond may write.
        NotNullViolatedError: A column that is declared not null has nulls.
    """
    metadata = metadata or snapshot.metadata
    check_schema(metadata.schema, metadata.partition_columns)
    folder = snapshot.path
    folder.mkdir(parents=True, exist_ok=True)
    given = column_types(connection, f"({select_sql}) AS given")
    selected = _projection(metadata, given) + [quote(column) for column in hidden_columns]
    written = copy_to_files(
        connection,
        f"SELECT {', '.join(selected)} FROM ({select_sql}) AS given",
        folder,
        partition_columns=metadata.partition_columns,
        max_file_bytes=max_file_bytes,
    )
    files: list[AddFile] = []
    paths: list[Path] = []
    try:
        for file, partition_values in written:
            if file.rows == 0:
                store.remove(file.path)
                continue
            _check_not_null(metadata, file.rows, file.column_statistics, partition_values)
            paths.append(file.path)
            files.append(
                _add_file(file, partition_values, metadata, folder, data_change=data_change)
            )
        store.sync([*_partition_folders(paths, folder), *paths])
    except NotNullViolatedError:
        for file, _ in written:
            store.remove(file.path)
        raise
    return files


def _add_file(
    file: WrittenFile,
    partition_values: Mapping[str, str | None],
    metadata: Metadata,
    folder: Path,
    *,
    data_change: bool,
) -> AddFile:
    return AddFile(
        path=_log_path(file.path, folder),
        size_bytes=file.size_bytes,
        modification_time_ms=time.time_ns() // 1_000_000,
        partition_values=partition_values,
        stats_text=_stats_text(metadata, file.rows, file.column_statistics),
        data_change=data_change,
    )


def _kinds(schema: StructType) -> list[tuple[str, str]]:
    """Names and types of columns, in the order of names."""
    return sorted((field.name, field.dataType.simpleString()) for field in schema.fields)


def _partition_folders(paths: Sequence[Path], folder: Path) -> list[Path]:
    """The folders between the table's own and its new files; the copy may have made them."""
    return list(
        dict.fromkeys(
            parent for path in paths for parent in path.parents if folder in parent.parents
        )
    )


def _projection(metadata: Metadata, given: Mapping[str, DuckDBPyType]) -> list[str]:
    names = {name.lower(): name for name in given}
    selected: list[str] = []
    for field in metadata.schema.fields:
        name = names.get(field.name.lower())
        source = "NULL" if name is None else quote(name)
        if field.name in metadata.partition_columns:
            # DuckDB makes the folder's name of it, and gives it back beside each file.
            value = text_sql(source, field.dataType)
        else:
            if name is not None:
                source = with_names_of(field.dataType, source, given[name])
            value = f"CAST({source} AS {duckdb_type(field.dataType, column=field.name)})"
        selected.append(f"{value} AS {quote(field.name)}")
    return selected


def _log_path(path: Path, folder: Path) -> str:
    return percent_encode(path.relative_to(folder).as_posix(), safe="/=")


def _check_not_null(
    metadata: Metadata,
    rows: int,
    column_statistics: Mapping[str, Mapping[str, Any]],
    partition_values: Mapping[str, str | None],
) -> None:
    for field in metadata.schema.fields:
        if field.name in metadata.partition_columns:
            nulls = rows if partition_values[field.name] is None else 0
        else:
            nulls = int(column_statistics.get(quote(field.name), {}).get("null_count", 0))
        if nulls and not field.nullable:
            raise NotNullViolatedError.in_column(field.name, rows=nulls)


def _stats_text(
    metadata: Metadata, rows: int, column_statistics: Mapping[str, Mapping[str, Any]]
) -> str:
    asked = metadata.configuration.get("delta.dataSkippingNumIndexedCols", "")
    return stats_of_copy(
        rows=rows,
        column_statistics=column_statistics,
        schema=metadata.schema,
        partition_columns=metadata.partition_columns,
        indexed_columns=int(asked) if asked.lstrip("-").isdigit() else DEFAULT_INDEXED_COLUMNS,
    ).to_text()
