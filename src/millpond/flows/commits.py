"""Committing what a flow did: against other writers, and for a batch exactly once.

A conflict with another writer means that the table is no longer what the attempt looked at, so
everything is looked at again: whether the batch is already in, and what it changes. Not so where
another table was put in the place of the one that the flow's checkpoint belongs to.
A vacuum of another writer may also have taken files away that were removed since.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace

from millpond.delta import Snapshot, Transaction, damage_told
from millpond.errors.delta import CommitConflictError, DataFileMissingError
from millpond.errors.disk_reason import system_error
from millpond.errors.flows import TooManyCommitConflictsError
from millpond.flows.batch import BatchContext, BatchResult
from millpond.profiling import phase

MAX_ATTEMPTS = 20
# What DuckDB says of paths that it looks for before it opens them.
_NO_SUCH_FILE = "No files found"

Attempt = Callable[[Transaction], BatchResult]


def commit_once(context: BatchContext, attempt: Attempt, *, operation: str) -> BatchResult:
    """Commit what `attempt` puts into a transaction, unless the table already holds the batch.

    A batch that changes no row is committed as well: its number must stand in the table.

    Raises:
        TooManyCommitConflictsError: Other writers were faster each time.
    """

    def numbered(transaction: Transaction) -> BatchResult:
        if holds_batch(transaction.snapshot, context):
            return BatchResult(version=transaction.snapshot.version, committed=False)
        result = attempt(transaction)
        transaction.set_app_version(context.app_id, context.batch_id)
        return result

    return commit_changes(context, numbered, operation=operation)


def holds_batch(snapshot: Snapshot, context: BatchContext) -> bool:
    """Whether a commit up to this snapshot carries the batch's number or a later one."""
    return snapshot.app_versions.get(context.app_id, -1) >= context.batch_id


def commit_changes(context: BatchContext, attempt: Attempt, *, operation: str) -> BatchResult:
    """Commit what `attempt` puts into a transaction, unless its result says that there is nothing.

    Raises:
        CommitConflictError: The table is another one than the batch was planned for.
        DataFileUnreadableError: A file of the table is damaged.
        TooManyCommitConflictsError: Other writers were faster each time.
    """
    import duckdb

    for _ in range(MAX_ATTEMPTS):
        with phase("read table log"):
            transaction = context.table.begin()
        if transaction.snapshot.metadata.id != context.table_id:
            raise CommitConflictError.another_table(context.table.path)
        try:
            with damage_told(context.table.path):
                result = attempt(transaction)
        except (DataFileMissingError, duckdb.IOException) as error:
            if not (_is_gone(error) and _is_overtaken(transaction)):
                raise
            transaction.discard()
            continue
        if not result.committed:
            return result
        try:
            with phase("commit"):
                snapshot = transaction.commit(
                    operation,
                    parameters={"flow": context.flow, "batchId": context.batch_id},
                    metrics={
                        "numOutputRows": result.rows_inserted,
                        "numDeletedRows": result.rows_deleted,
                        "numOutputBytes": result.bytes_written,
                    },
                )
        except CommitConflictError:
            transaction.discard()
            continue
        return replace(result, version=snapshot.version)
    raise TooManyCommitConflictsError.from_batch(
        context.flow,
        target=str(context.target),
        batch_id=context.batch_id,
        attempts=MAX_ATTEMPTS,
    )


def _is_gone(error: Exception) -> bool:
    """Whether a file of the snapshot is no longer there, which a full disk is not."""
    if isinstance(error, DataFileMissingError):
        return True
    return system_error(error) == errno.ENOENT or _NO_SUCH_FILE in str(error)


def _is_overtaken(transaction: Transaction) -> bool:
    """Whether the table is no longer what the transaction began with."""
    return transaction.table.snapshot().version > transaction.snapshot.version
