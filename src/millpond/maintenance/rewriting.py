"""Writes the rows of a group of data files anew, and commits that as a change of no data.

Rows keep all that their files hold, columns that the table's schema lacks among them (see
docs/decisions/0002). Where other writers commit meanwhile, the rewrite stands as long as they left
its files alone; else it is discarded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from millpond.delta import (
    AddFile,
    Snapshot,
    Table,
    Transaction,
    connect,
    damage_told,
    hidden_columns_of,
    live_rows_sql,
    quote,
    write_data_files,
)
from millpond.errors.delta import CommitConflictError
from millpond.errors.maintenance import CompactionRowsDifferError
from millpond.maintenance.groups import Group
from millpond.maintenance.report import Report
from millpond.storage import scratch_folder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MAX_ATTEMPTS = 5
# Of the processors and the memory, this work takes a small part: flows may run beside it.
_THREADS = 1
_MEMORY_LIMIT = "256MB"


def rewrite(
    table: Table, group: Group, *, sorted_by: Sequence[str] = (), target_bytes: int
) -> Report:
    """Put the rows of a group into new files and end the old ones, in one commit.

    Args:
        group: Files of a snapshot of the table. Those that are not there any more, as they were,
            make the call do nothing.
        sorted_by: Columns to sort the rows by, if there are several files.
        target_bytes: How large new files get, about.

    Raises:
        CompactionRowsDifferError: The files hold another number of rows than the log says.
        DataFileUnreadableError: A file of the group is damaged.
        MillpondError: The table can't be read or written.
    """
    transaction = table.begin()
    if not _holds(transaction.snapshot, group):
        return Report(given_up=1)
    with (
        scratch_folder("spill") as spill,
        # Of one thread, files are written in the order of their rows.
        connect(temporary_folder=spill, memory_limit=_MEMORY_LIMIT, threads=_THREADS) as connection,
        damage_told(table.path),
    ):
        order = _order(transaction.snapshot, sorted_by) if len(group.files) > 1 else ""
        added = _write(connection, transaction, group, order=order, target_bytes=target_bytes)
    for file in added:
        transaction.add(file)
    try:
        _check_rows(transaction.snapshot, group, added)
    except CompactionRowsDifferError:
        transaction.discard()
        raise
    if not _commit(table, transaction, group, added):
        return Report(given_up=1)
    return Report(
        files_compacted=len(group.files),
        files_written=len(added),
        bytes_compacted=group.size_bytes,
        bytes_written=sum(file.size_bytes for file in added),
        vectors_purged=group.vectors,
    )


def _holds(snapshot: Snapshot, group: Group) -> bool:
    """Whether the files are in the table with the very rows that they had."""
    found = [snapshot.files.get(file.path) for file in group.files]
    return all(
        now is not None and now.deletion_vector_id == file.deletion_vector_id
        for file, now in zip(group.files, found, strict=True)
    )


def _write(
    connection: DuckDBPyConnection,
    transaction: Transaction,
    group: Group,
    *,
    order: str,
    target_bytes: int,
) -> list[AddFile]:
    import duckdb

    snapshot, store = transaction.snapshot, transaction.store
    hidden = hidden_columns_of(connection, snapshot, group.files)
    rows = live_rows_sql(connection, snapshot, group.files, hidden_columns=hidden, store=store)

    def write(order: str) -> list[AddFile]:
        return write_data_files(
            connection,
            f"{rows}{order}",
            snapshot=snapshot,
            store=store,
            hidden_columns=hidden,
            data_change=False,
            max_file_bytes=target_bytes,
        )

    try:
        return write(order)
    except duckdb.OutOfMemoryException:
        if not order:
            raise
        # DuckDB sorts more than the memory holds, but not if rows are long.
        return write("")


def _order(snapshot: Snapshot, sorted_by: Sequence[str]) -> str:
    """The clause that sorts by those of the columns that the table has and that can be sorted."""
    names = {field.name.lower(): field for field in snapshot.metadata.schema.fields}
    fields = [names[name.lower()] for name in sorted_by if name.lower() in names]
    sortable = [
        quote(field.name)
        for field in fields
        if field.name not in snapshot.metadata.partition_columns
        and "map" not in field.dataType.simpleString()
    ]
    return f" ORDER BY {', '.join(dict.fromkeys(sortable))}" if sortable else ""


def _check_rows(snapshot: Snapshot, group: Group, added: Sequence[AddFile]) -> None:
    """Raise where rows were lost or made, as far as the log says how many there are."""
    before = [file.num_rows for file in group.files]
    known = [rows for rows in before if rows is not None]
    after = sum(file.num_rows or 0 for file in added)
    if len(known) == len(before) and sum(known) != after:
        raise CompactionRowsDifferError.in_table(snapshot.path, before=sum(known), after=after)


def _commit(table: Table, transaction: Transaction, group: Group, added: Sequence[AddFile]) -> bool:
    """Commit the rewrite, on top of commits that left its files alone; tell whether it is in."""
    begun = transaction.snapshot
    for _ in range(MAX_ATTEMPTS):
        for file in group.files:
            transaction.remove(transaction.snapshot.files[file.path], data_change=False)
        try:
            transaction.commit(
                "OPTIMIZE",
                parameters={"predicate": "[]", "zOrderBy": "[]"},
                metrics={
                    "numRemovedFiles": len(group.files),
                    "numRemovedBytes": group.size_bytes,
                    "numAddedFiles": len(added),
                    "numAddedBytes": sum(file.size_bytes for file in added),
                    "numDeletionVectorsRemoved": group.vectors,
                },
            )
        except CommitConflictError:
            following = table.begin()
            now = following.snapshot
            if now.metadata != begun.metadata or not _holds(now, group):
                break
            for file in added:
                following.add(file)
            transaction = following
        else:
            return True
    transaction.discard()
    return False
