"""Taking rows out of a table's data files: by deletion vector, or by writing the files anew.

Which of the two is the table's own choice (`delta.enableDeletionVectors`). A file of which no row
is left is taken out whole either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.delta import (
    ROW_COLUMN,
    AddFile,
    Transaction,
    duckdb_type,
    literal,
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
    *,
    dead: str,
    store: Store,
    hidden_columns: Sequence[StructField] = (),
) -> Removal:
    """Put into the transaction what takes rows out of the table's files.

    Args:
        connection: Where `dead` is.
        transaction: The change; it must not touch these files otherwise.
        dead: A DuckDB table of live rows, each once, by `file` and `row`.
        store: Makes new files durable.
        hidden_columns: Columns beside the table's own that rewritten rows keep.
    """
    files = transaction.snapshot.files
    counts = connection.execute(f"SELECT file, count(*) FROM {dead} GROUP BY file").fetchall()
    partly: list[AddFile] = []
    for path, count in counts:
        transaction.remove(files[path])
        if files[path].num_rows != count:
            partly.append(files[path])
    rows = sum(count for _, count in counts)
    snapshot = transaction.snapshot
    marked = [file for file in partly if snapshot.takes_deletion_vector(file)]
    rewritten = [file for file in partly if not snapshot.takes_deletion_vector(file)]
    written = 0
    if marked:
        written += _mark(connection, transaction, marked, dead=dead, store=store)
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


def _mark(
    connection: DuckDBPyConnection,
    transaction: Transaction,
    files: Sequence[AddFile],
    *,
    dead: str,
    store: Store,
) -> int:
    """Add the files again, their dead rows marked in deletion vectors."""
    positions = _positions(connection, f"SELECT file, row FROM {dead}")
    marked = write_deletion_vectors(
        transaction.snapshot, {file.path: positions[file.path] for file in files}, store=store
    )
    for file in marked.values():
        transaction.add(file)
    return sum(file.deletion_vector.size_bytes for file in marked.values() if file.deletion_vector)


def _positions(connection: DuckDBPyConnection, rows: str) -> dict[str, BitMap64]:
    """The row numbers of each file, taken in bit by bit: a key may have any number of rows."""
    from pyroaring import BitMap64

    positions: dict[str, BitMap64] = {}
    for batch in connection.sql(rows).to_arrow_reader(ROWS_AT_ONCE):
        files = batch.column("file").dictionary_encode()
        codes, numbers = files.indices.to_numpy(), batch.column("row").to_numpy()
        for code, path in enumerate(files.dictionary.to_pylist()):
            found = BitMap64(numbers[codes == code].astype("uint64"))
            positions[path] = positions.get(path, BitMap64()) | found
    return positions


def _rewrite(
    connection: DuckDBPyConnection,
    transaction: Transaction,
    files: Sequence[AddFile],
    *,
    dead: str,
    store: Store,
    hidden_columns: Sequence[StructField],
) -> int:
    """Add files with the rows that are left of the given ones.

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
    for file in files:
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
            f"(SELECT row FROM {dead} WHERE file = {literal(file.path)}) AS d "
            f"ON l.{quote(ROW_COLUMN)} = d.row",
            snapshot=snapshot,
            store=store,
            hidden_columns=hidden,
        )
        for added in rewritten:
            transaction.add(added)
        size_bytes += sum(added.size_bytes for added in rewritten)
    return size_bytes
