"""Append: the rows of a batch come on top of what the target holds."""

from __future__ import annotations

from millpond.delta import Transaction, write_data_files
from millpond.delta.shared_connection import cursor
from millpond.engine.protocol import StagedBatch
from millpond.flows.batch import BatchContext, BatchResult, read_batch
from millpond.flows.commits import commit_once


def append(batch: StagedBatch, context: BatchContext) -> BatchResult:
    """Add the rows of a batch that expectations leave, exactly once.

    Raises:
        ExpectationViolationError: A row does not meet an expectation that fails the update.
        TooManyCommitConflictsError: Other writers were faster each time.
    """

    def attempt(transaction: Transaction) -> BatchResult:
        snapshot = transaction.snapshot
        with cursor(batch.files) as connection:
            rows = read_batch(connection, batch, context, metadata=snapshot.metadata)
            added = write_data_files(
                connection,
                rows.sql,
                snapshot=snapshot,
                store=context.store,
            )
        for file in added:
            transaction.add(file)
        return BatchResult(
            version=snapshot.version,
            rows_read=rows.rows_read,
            rows_inserted=rows.rows_kept,
            rows_dropped=rows.rows_dropped,
            expectations=rows.expectations,
            bytes_written=sum(file.size_bytes for file in added),
        )

    return commit_once(context, attempt, operation="WRITE")
