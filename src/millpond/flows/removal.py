"""Taking rows out of a table's data files: by deletion vector, or by writing the files anew.

Which of the two is the table's own choice (`delta.enableDeletionVectors`). A file of which no row
is left is taken out whole either way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.delta import (
    ROW_COLUMN,
    AddFile,
    Transaction,
    duckdb_type,
    live_rows_sql,
    quote,
    write_data_files,
    write_deletion_vectors,
)
from millpond.profiling import phase
from millpond.storage import Store

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyroaring import BitMap64
    from pyspark.sql.types import StructField


ROWS_AT_ONCE = 100_000


@dataclass(frozen=True)
class Removal:
    """What taking rows out came to."""

    rows: int
    bytes_written: int


@phase("remove rows")
def remove_rows(
    connection: DuckDBPyConnection,
    transaction: Transaction,
    files: Sequence[AddFile],
    *,
    dead: str,
    store: Store,
    hidden_columns: Sequence[StructField] = (),
) -> Removal:
    """Put into the transaction what takes rows out of the table's files.

    Args:
        connection: Where `dead` is.
        transaction: The change; it must not touch these files otherwise.
        files: Files of its snapshot.
        dead: A DuckDB table of live rows, each once: `file` is the number of its file in `files`,
            `row` that of the row in the file.
        store: Makes new files durable.
        hidden_columns: Columns beside the table's own that rewritten rows keep.
    """
    counts = connection.execute(f"SELECT file, count(*) FROM {dead} GROUP BY file").fetchall()
    partly: list[int] = []
    for number, count in counts:
        transaction.remove(files[number])
        if files[number].num_rows != count:
            partly.append(number)
    rows = sum(count for _, count in counts)
    snapshot = transaction.snapshot
    marked = [number for number in partly if snapshot.takes_deletion_vector(files[number])]
    rewritten = {
        number: files[number]
        for number in partly
        if not snapshot.takes_deletion_vector(files[number])
    }
    written = 0
    if marked:
        positions = _positions(connection, f"SELECT file, row FROM {dead}")
        written += _mark(
            transaction, {files[number].path: positions[number] for number in marked}, store=store
        )
    if rewritten:
        written += _rewrite(
            connection,
            transaction,
            rewritten,
            dead=dead,
            store=store,
            hidden_columns=hidden_columns,
        )
    return Removal(rows=rows, bytes_written=written)


def _mark(transaction: Transaction, positions: Mapping[str, BitMap64], *, store: Store) -> int:
    """Add files again, their dead rows marked in deletion vectors."""
    marked = write_deletion_vectors(transaction.snapshot, positions, store=store)
    for file in marked.values():
        transaction.add(file)
    return sum(file.deletion_vector.size_bytes for file in marked.values() if file.deletion_vector)


def _positions(connection: DuckDBPyConnection, rows: str) -> dict[int, BitMap64]:
    """The row numbers of each file, taken in bit by bit: a key may have any number of rows."""
    import numpy as np
    from pyroaring import BitMap64

    positions: dict[int, BitMap64] = {}
    for batch in connection.sql(rows).to_arrow_reader(ROWS_AT_ONCE):
        files, numbers = (batch.column(name).to_numpy() for name in ("file", "row"))
        for file in np.unique(files):
            found = BitMap64(numbers[files == file].astype("uint64"))
            positions[file] = positions.get(file, BitMap64()) | found
    return positions


def _rewrite(
    connection: DuckDBPyConnection,
    transaction: Transaction,
    files: Mapping[int, AddFile],
    *,
    dead: str,
    store: Store,
    hidden_columns: Sequence[StructField],
) -> int:
    """Add files with the rows that are left of the given ones, by their numbers in `dead`.

    One by one, so that rows that lie together stay together, and files can still be skipped.
    """
    snapshot = transaction.snapshot
    fields = [*snapshot.metadata.schema.fields, *hidden_columns]
    hidden = [field.name for field in hidden_columns]
    # A file that lacks a hidden column gives a null of no type for it.
    selected = ", ".join(
        f"CAST(l.{quote(field.name)} AS {duckdb_type(field.dataType)}) AS {quote(field.name)}"
        for field in fields
    )
    size_bytes = 0
    for number, file in files.items():
        live = live_rows_sql(
            connection,
            snapshot,
            [file],
            columns=[field.name for field in fields],
            positions=True,
            store=store,
        )
        rewritten = write_data_files(
            connection,
            f"SELECT {selected} FROM ({live}) AS l ANTI JOIN "
            f"(SELECT row FROM {dead} WHERE file = {number}) AS d "
            f"ON l.{quote(ROW_COLUMN)} = d.row",
            snapshot=snapshot,
            store=store,
            hidden_columns=hidden,
        )
        for added in rewritten:
            transaction.add(added)
        size_bytes += sum(added.size_bytes for added in rewritten)
    return size_bytes
