"""What every kind of flow has in common about a batch: its context, its result, its rows in DuckDB.

Expectations are counted over all rows of the batch, and take effect before anything else looks at
the rows: a dropped row was never there, a failing one stops the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.definitions import Expectation, ExpectationAction
from millpond.delta import (
    Metadata,
    Table,
    column_types,
    duckdb_type,
    escape_glob,
    has_names,
    literal,
    quote,
    with_names_of,
)
from millpond.engine.protocol import EXPECTATION_COLUMN, SEQUENCE_COLUMN, StagedBatch
from millpond.errors.flows import ExpectationViolationError
from millpond.names import TableName
from millpond.profiling import phase
from millpond.storage import Store

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from duckdb.sqltypes import DuckDBPyType
    from pyspark.sql.types import StructField

# The column by which rows that went through the engine find their way back.
POSITION_COLUMN = "__millpond_position"


@dataclass(frozen=True)
class ExpectationCount:
    """How many rows of a batch met one expectation, dropped and late rows among them."""

    name: str
    action: ExpectationAction
    passed: int
    failed: int


@dataclass(frozen=True)
class BatchResult:
    """What applying a batch did. All counts are zero where the table already held the batch.

    Attributes:
        version: Version of the target that holds the batch, if it is known.
        rows_read: Rows of the batch, before expectations.
        rows_inserted: Rows that the batch put into the target.
        rows_deleted: Rows that it took out.
        rows_late: Rows left out because their key has, in the batch or stored, a higher sequence.
        rows_dropped: Rows left out by an expectation.
        bytes_written: Size of the data files and deletion vectors written.
        committed: Whether this call committed anything: not so where the table already held the
            batch, or just the rows that it was to hold.
    """

    version: int | None = None
    rows_read: int = 0
    rows_inserted: int = 0
    rows_deleted: int = 0
    rows_late: int = 0
    rows_dropped: int = 0
    expectations: tuple[ExpectationCount, ...] = ()
    bytes_written: int = 0
    committed: bool = True


@dataclass(frozen=True)
class BatchContext:
    """Which batch of which flow goes where.

    Attributes:
        table_id: The id of the table that the batch was planned for.
        app_id: Under this id the target's commits carry the batch's number.
        batch_id: The number, counted from 0.
        recompute_sequence: Evaluates the flow's sequence expression over stored rows that carry
            none. It is given a Parquet file with the target's columns and `POSITION_COLUMN`, and
            returns a file, or a folder of files, with `POSITION_COLUMN` and `SEQUENCE_COLUMN`.
    """

    table: Table
    table_id: str
    store: Store
    flow: str
    target: TableName
    app_id: str
    batch_id: int
    recompute_sequence: Callable[[Path], Path] | None = None


@dataclass(frozen=True)
class BatchRows:
    """The rows of a batch that expectations left, shaped as the target's.

    Attributes:
        sql: A SELECT of them: the target's columns in its order and type, and `SEQUENCE_COLUMN`
            where the batch has one.
    """

    sql: str
    rows_read: int
    rows_dropped: int
    expectations: tuple[ExpectationCount, ...]

    @property
    def rows_kept(self) -> int:
        return self.rows_read - self.rows_dropped


@phase("count rows")
def read_batch(
    connection: DuckDBPyConnection,
    batch: StagedBatch,
    context: BatchContext,
    *,
    metadata: Metadata,
    hidden_columns: Sequence[StructField] = (),
) -> BatchRows:
    """Count the rows of a batch and apply its expectations.

    Columns, and fields inside them, are matched by name as Spark does, without regard to case; one
    that the batch lacks is null, and so is an empty text in a partition column, as Delta has it.
    Nothing is held in memory: the rows stay in the staged files.

    Raises:
        ExpectationViolationError: A row does not meet an expectation of action FAIL.
    """
    if not batch.files:
        counts = tuple(ExpectationCount(e.name, e.action, 0, 0) for e in batch.expectations)
        empty = _select(connection, batch, metadata, hidden_columns, source=None, condition="false")
        return BatchRows(sql=empty, rows_read=0, rows_dropped=0, expectations=counts)
    source = parquet_sql(batch.files)
    met = [
        f"{quote(EXPECTATION_COLUMN.format(index=index))} IS TRUE"
        for index in range(len(batch.expectations))
    ]
    drops = [
        condition
        for expectation, condition in zip(batch.expectations, met, strict=True)
        if expectation.action is ExpectationAction.DROP
    ]
    kept = " AND ".join(drops) or "true"
    counted = ", ".join(f"count(*) FILTER ({condition})" for condition in ["true", kept, *met])
    rows_read, rows_kept, *passed = connection.execute(
        f"SELECT {counted} FROM {source}"
    ).fetchall()[0]
    counts = tuple(
        ExpectationCount(expectation.name, expectation.action, count, rows_read - count)
        for expectation, count in zip(batch.expectations, passed, strict=True)
    )
    for expectation, count, condition in zip(batch.expectations, counts, met, strict=True):
        if expectation.action is ExpectationAction.FAIL and count.failed:
            raise _violation(
                connection,
                batch,
                context,
                expectation=expectation,
                failed_rows=count.failed,
                condition=f"NOT ({condition})",
            )
    return BatchRows(
        sql=_select(connection, batch, metadata, hidden_columns, source=source, condition=kept),
        rows_read=rows_read,
        rows_dropped=rows_read - rows_kept,
        expectations=counts,
    )


def parquet_sql(files: Iterable[Path]) -> str:
    """SQL that stands for the rows of plain Parquet files, in a FROM.

    Parquet's statistics leave NaN out, and DuckDB trusts them unless told: it would lose rows.
    """
    listed = ", ".join(literal(escape_glob(str(file))) for file in files)
    return f"read_parquet([{listed}], hive_partitioning = false, can_have_nan = true)"


def _select(
    connection: DuckDBPyConnection,
    batch: StagedBatch,
    metadata: Metadata,
    hidden_columns: Sequence[StructField],
    *,
    source: str | None,
    condition: str,
) -> str:
    fields = (*metadata.schema.fields, *hidden_columns)
    staged: dict[str, str] = {}
    types: Mapping[str, DuckDBPyType] = {}
    if source is not None:
        staged = {field.name.lower(): field.name for field in batch.schema.fields}
        staged[SEQUENCE_COLUMN] = SEQUENCE_COLUMN
        if any(has_names(field.dataType) for field in fields):
            types = column_types(connection, source)
    columns = []
    for field in fields:
        name = staged.get(field.name.lower())
        value = "NULL" if name is None else quote(name)
        if name is not None and name in types:
            value = with_names_of(field.dataType, value, types[name])
        value = f"CAST({value} AS {duckdb_type(field.dataType, column=field.name)})"
        if field.name in metadata.partition_columns and field.dataType.typeName() == "string":
            value = f"nullif({value}, '')"
        columns.append(f"{value} AS {quote(field.name)}")
    table = "" if source is None else f" FROM {source}"
    return f"SELECT {', '.join(columns)}{table} WHERE {condition}"


def _violation(
    connection: DuckDBPyConnection,
    batch: StagedBatch,
    context: BatchContext,
    *,
    expectation: Expectation,
    failed_rows: int,
    condition: str,
) -> ExpectationViolationError:
    row_json = one_row_json(
        connection,
        parquet_sql(batch.files),
        columns=[field.name for field in batch.schema.fields],
        condition=condition,
    )
    return ExpectationViolationError.from_batch(
        context.flow,
        target=str(context.target),
        batch_id=context.batch_id,
        expectation=expectation.name,
        constraint=expectation.constraint,
        failed_rows=failed_rows,
        row_json=row_json,
    )


def one_row_json(
    connection: DuckDBPyConnection, relation: str, *, columns: Iterable[str], condition: str
) -> str:
    """These columns of one row that meets a condition, as JSON. There is such a row."""
    listed = ", ".join(map(quote, columns))
    found = connection.execute(
        f"SELECT to_json(r) FROM (SELECT {listed} FROM {relation} WHERE {condition} LIMIT 1) AS r"
    ).fetchall()
    return str(found[0][0])
