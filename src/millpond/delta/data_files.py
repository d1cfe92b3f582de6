"""Writing a table's data files: DuckDB's COPY, with Delta's types, partitioning and statistics."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as percent_encode

from millpond.delta.actions import AddFile, Metadata
from millpond.delta.partition_values import text_sql
from millpond.delta.schema import check_schema, duckdb_type, literal, quote
from millpond.delta.snapshot import Snapshot
from millpond.delta.stats import DEFAULT_INDEXED_COLUMNS, stats_of_copy
from millpond.errors.delta import NotNullViolatedError
from millpond.storage import Store

if TYPE_CHECKING:
    import duckdb

MAX_FILE_SIZE_BYTES = 128 * 1024 * 1024


def write_data_files(
    connection: duckdb.DuckDBPyConnection,
    select_sql: str,
    *,
    snapshot: Snapshot,
    store: Store,
    metadata: Metadata | None = None,
    hidden_columns: Sequence[str] = (),
    data_change: bool = True,
) -> list[AddFile]:
    """Write the rows of a query as new data files of a table, durable on return.

    Columns are matched by name without regard to case and cast to the table's types; one that the
    query lacks is null, and one that the table lacks is left out. Rows keep no order. Files that
    no commit names afterwards are harmless, and a vacuum takes them away.

    Args:
        connection: From `connect`.
        select_sql: A DuckDB query.
        snapshot: The table's state.
        store: Makes the files durable.
        metadata: Of the table as it will be, where the commit of these files changes it.
        hidden_columns: Columns of the query to store although the table's schema lacks them.
        data_change: `False` where the rows only move from files that the same commit removes.

    Raises:
        InvalidTableSchemaError: The columns are none that millpond may write.
        NotNullViolatedError: A column that is declared not null has nulls.
    """
    metadata = metadata or snapshot.metadata
    check_schema(metadata.schema, metadata.partition_columns)
    folder = snapshot.path
    folder.mkdir(parents=True, exist_ok=True)
    given = _column_names(connection, select_sql)
    selected = _projection(metadata, given) + [quote(column) for column in hidden_columns]
    options = [
        "FORMAT parquet",
        "COMPRESSION zstd",
        "RETURN_STATS true",
        "APPEND true",
        f"FILENAME_PATTERN {literal(f'part-{uuid.uuid4()}-{{uuid}}')}",
        f"FILE_SIZE_BYTES {MAX_FILE_SIZE_BYTES}",
    ]
    if metadata.partition_columns:
        options.append(f"PARTITION_BY ({', '.join(map(quote, metadata.partition_columns))})")
    written = connection.execute(
        f"COPY (SELECT {', '.join(selected)} FROM ({select_sql}) AS given) "
        f"TO {literal(str(folder))} ({', '.join(options)})"
    ).fetchall()
    files: list[AddFile] = []
    paths: list[Path] = []
    try:
        for filename, rows, size_bytes, _footer, column_statistics, partition_keys, *_ in written:
            if rows == 0:
                store.remove(Path(filename))
                continue
            _check_not_null(metadata, rows, column_statistics, partition_keys or {})
            paths.append(Path(filename))
            files.append(
                AddFile(
                    path=_log_path(Path(filename), folder),
                    size_bytes=size_bytes,
                    modification_time_ms=time.time_ns() // 1_000_000,
                    partition_values=partition_keys or {},
                    stats_text=_stats_text(metadata, rows, column_statistics),
                    data_change=data_change,
                )
            )
        store.sync([*_partition_folders(paths, folder), *paths])
    except NotNullViolatedError:
        for filename, *_ in written:
            store.remove(Path(filename))
        raise
    return files


def _partition_folders(paths: Sequence[Path], folder: Path) -> list[Path]:
    """The folders between the table's own and its new files; the copy may have made them."""
    return list(
        dict.fromkeys(
            parent for path in paths for parent in path.parents if folder in parent.parents
        )
    )


def _column_names(connection: duckdb.DuckDBPyConnection, select_sql: str) -> set[str]:
    described = connection.execute(f"DESCRIBE SELECT * FROM ({select_sql}) AS given").fetchall()
    return {str(row[0]).lower() for row in described}


def _projection(metadata: Metadata, given: set[str]) -> list[str]:
    selected: list[str] = []
    for field in metadata.schema.fields:
        source = quote(field.name) if field.name.lower() in given else "NULL"
        if field.name in metadata.partition_columns:
            # DuckDB makes the folder's name of it, and gives it back beside each file.
            value = text_sql(source, field.dataType)
        else:
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
