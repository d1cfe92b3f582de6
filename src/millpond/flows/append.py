"""Append: the rows of a batch come on top of what the target holds."""

from __future__ import annotations

from collections.abc import Sequence

from millpond.delta import AddFile, Transaction, adopt_data_files, write_data_files
from millpond.delta.shared_connection import cursor
from millpond.engine.protocol import StagedBatch
from millpond.flows.batch import BatchContext, BatchResult, BatchRows, read_batch
from millpond.flows.commits import commit_once


def append(batch: StagedBatch, context: BatchContext) -> BatchResult:
    """Add the rows of a batch that expectations leave, exactly once.

    Raises:
        ExpectationViolationError: A row does not meet an expectation that fails the update.
        TooManyCommitConflictsError: Other writers were faster each time.
    """

    def attempt(transaction: Transaction) -> BatchResult:
        snapshot = transaction.snapshot
        adopted = adopt_data_files(
            batch.written, batch.schema, snapshot=snapshot, store=context.store
        )
        if adopted:
            rows = BatchRows("", sum(file.rows for file in batch.written), 0, ())
            return _added(transaction, adopted, rows)
        with cursor(batch.files) as connection:
            rows = read_batch(connection, batch, context, metadata=snapshot.metadata)
            added = write_data_files(
                connection,
                rows.sql,
                snapshot=snapshot,
                store=context.store,
            )
        return _added(transaction, added, rows)

    return commit_once(context, attempt, operation="WRITE")


def _added(transaction: Transaction, files: Sequence[AddFile], rows: BatchRows) -> BatchResult:
    for file in files:
        transaction.add(file)
    return BatchResult(
        version=transaction.snapshot.version,
        rows_read=rows.rows_read,
        rows_inserted=rows.rows_kept,
        rows_dropped=rows.rows_dropped,
        expectations=rows.expectations,
        bytes_written=sum(file.size_bytes for file in files),
    )
