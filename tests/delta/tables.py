"""Small Delta tables for the tests, and the rows that millpond's own reading of them gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from millpond.delta import (
    AddFile,
    Metadata,
    Snapshot,
    Table,
    connect,
    live_rows_sql,
    write_data_files,
    write_deletion_vectors,
)

TABLE_ID = "4b4fd0b5-7c1d-4f6a-9d0e-3f0c8a1f2b11"


def columns(**types: DataType) -> StructType:
    return StructType([StructField(name, data_type) for name, data_type in types.items()])


KEY_VALUE = columns(k=LongType(), v=StringType())


def create(path: Path, schema: StructType = KEY_VALUE, *, partitioned_by=(), **configuration: str):
    table = Table(path)
    properties = {f"delta.{name}": value for name, value in configuration.items()}
    table.create(Metadata(TABLE_ID, schema, tuple(partitioned_by), properties))
    return table


def write(table: Table, select_sql: str, *, metadata: Metadata | None = None) -> list[AddFile]:
    with connect() as connection:
        return write_data_files(
            connection,
            select_sql,
            snapshot=table.snapshot(),
            store=table.store,
            metadata=metadata,
        )


def append(
    table: Table, select_sql: str, *, schema: StructType | None = None, **options: Any
) -> Snapshot:
    """Add the rows of a DuckDB query as one commit."""
    transaction = table.begin()
    metadata = transaction.snapshot.metadata
    if schema is not None:
        metadata = Metadata(metadata.id, schema, metadata.partition_columns, metadata.configuration)
        transaction.set_metadata(metadata)
    for file in write(table, select_sql, metadata=metadata):
        transaction.add(file)
    return transaction.commit("WRITE", **options)


def delete(table: Table, positions: Mapping[str, Iterable[int]]) -> Snapshot:
    """Delete rows by their numbers in the data files, as one commit."""
    transaction = table.begin()
    changed = write_deletion_vectors(transaction.snapshot, positions, store=table.store)
    for path, file in changed.items():
        transaction.remove(transaction.snapshot.files[path])
        transaction.add(file)
    return transaction.commit("DELETE")


def delete_where(table: Table, condition: str) -> Snapshot:
    """Delete the rows that meet a DuckDB condition."""
    snapshot = table.snapshot()
    paths = list(snapshot.files)
    with connect() as connection:
        live = live_rows_sql(connection, snapshot, snapshot.files.values(), positions=True)
        found = connection.execute(
            f"SELECT __file, list(__row) FROM ({live}) WHERE {condition} GROUP BY ALL"
        ).fetchall()
    return delete(table, {paths[number]: rows for number, rows in found})


def rows(snapshot: Snapshot, **options: Any) -> list[dict[str, Any]]:
    with connect() as connection:
        live = live_rows_sql(connection, snapshot, snapshot.files.values(), **options)
        return connection.sql(f"FROM ({live})").to_arrow_table().to_pylist()


def sorted_rows(found: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows without their order, as tuples."""
    return sorted((tuple(row.values()) for row in found), key=repr)


def log_files(table: Table) -> list[str]:
    return sorted(path.name for path in (table.path / "_delta_log").iterdir())


def entry(table: Table, version: int) -> Path:
    return table.path / "_delta_log" / f"{version:020}.json"
