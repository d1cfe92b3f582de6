"""Overwrite: the rows of a materialized view take the place of all that it held before.

Where the new rows are the old ones, in whatever order, nothing is committed: who follows the table
then sees no change where there is none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millpond.delta import (
    Metadata,
    Transaction,
    live_rows_sql,
    quote,
    write_data_files,
)
from millpond.delta.shared_connection import cursor
from millpond.engine.protocol import StagedBatch
from millpond.flows.batch import BatchContext, BatchResult, read_batch
from millpond.flows.commits import commit_changes

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql.types import StructType

_COUNT = '"__millpond_count"'


def overwrite(
    batch: StagedBatch,
    context: BatchContext,
    *,
    schema: StructType | None = None,
    anew: Metadata | None = None,
) -> BatchResult:
    """Replace all rows of the target by those of the batch that expectations leave.

    Doing so twice is doing it once, so the batch's number plays no part.

    Args:
        batch: The rows.
        context: Where they go.
        schema: The columns that the target gets with these rows, where its query changed.
        anew: All that the target becomes with them, its columns included.

    Raises:
        ExpectationViolationError: A row does not meet an expectation that fails the update.
        TooManyCommitConflictsError: Other writers were faster each time.
    """

    def attempt(transaction: Transaction) -> BatchResult:
        snapshot = transaction.snapshot
        metadata = anew or snapshot.metadata
        if schema is not None and anew is None:
            names = {field.name.lower(): field.name for field in schema.fields}
            partitioned = tuple(names[column.lower()] for column in metadata.partition_columns)
            metadata = replace(metadata, schema=schema, partition_columns=partitioned)
        is_same_shape = metadata == snapshot.metadata
        with cursor(batch.files) as connection:
            rows = read_batch(connection, batch, context, metadata=metadata)
            result = BatchResult(
                version=snapshot.version,
                rows_read=rows.rows_read,
                rows_dropped=rows.rows_dropped,
                expectations=rows.expectations,
                committed=False,
            )
            columns = ", ".join(quote(field.name) for field in snapshot.metadata.schema.fields)
            stored = live_rows_sql(
                connection, snapshot, snapshot.files.values(), store=context.store
            )
            stored_count, stored_hash = _digest(connection, stored, columns)
            if (
                is_same_shape
                and (stored_count, stored_hash) == _digest(connection, rows.sql, columns)
                and _are_same_rows(connection, stored, rows.sql, columns)
            ):
                return result
            added = write_data_files(
                connection,
                rows.sql,
                snapshot=snapshot,
                store=context.store,
                metadata=metadata,
            )
        if not is_same_shape:
            transaction.set_metadata(metadata)
        for file in snapshot.files.values():
            transaction.remove(file)
        for file in added:
            transaction.add(file)
        return replace(
            result,
            rows_inserted=rows.rows_kept,
            rows_deleted=stored_count,
            bytes_written=sum(file.size_bytes for file in added),
            committed=True,
        )

    return commit_changes(context, attempt, operation="WRITE")


def _digest(connection: DuckDBPyConnection, rows: str, columns: str) -> tuple[int, int | None]:
    """The number of rows and the sum of their hashes: where these differ, the rows do."""
    count, total = connection.execute(
        f"SELECT count(*), sum(hash({columns})) FROM ({rows}) AS r"
    ).fetchall()[0]
    return count, total


def _are_same_rows(connection: DuckDBPyConnection, left: str, right: str, columns: str) -> bool:
    """Whether both give exactly the same rows, each as often, in whatever order."""
    different = connection.execute(
        f"SELECT 1 FROM (SELECT {columns}, 1 AS {_COUNT} FROM ({left}) AS l "
        f"UNION ALL SELECT {columns}, -1 FROM ({right}) AS r) AS u "
        f"GROUP BY {columns} HAVING sum({_COUNT}) <> 0 LIMIT 1"
    ).fetchall()
    return not different
