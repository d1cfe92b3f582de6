"""REPLACE USING: a newer partial snapshot of a key takes the place of the key's stored rows.

The rule. For each batch and each key (null is the same key as null) let *m* be the highest sequence
that the batch has for the key, and *s* the highest that the target has:

- *m* < *s*: the batch is late for this key; nothing happens to it.
- *m* = *s*: the batch's rows at *m* are appended.
- *m* > *s*, or no stored rows: the key's stored rows go, all of them, and the batch's rows at *m*
  come in.

Rows of the batch below their key's *m* never land, and keys that the batch lacks stay as they are.
*s* is taken over the rows that the table holds, whoever wrote them: a row inserted by hand counts
with the sequence it carries; one that carries null counts as below all others.
Where the keys are files, a batch can also say which version of each file it read (`Snapshots`).
Each counts towards *m*, and those of earlier batches towards *s*, as a row would that is not
stored. So a version without rows empties its key, and no earlier version fills it again; and of two
versions of one file and one time, the one that was read later takes the place of the other.
Equality and order are Spark's (`ordering.py`).

Only the key and sequence columns of the target are read, and of its files only those that may hold
one of the batch's keys. Everything goes into one commit, with the batch's number.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.delta import (
    FILE_COLUMN,
    ROW_COLUMN,
    AddFile,
    ColumnRange,
    Snapshot,
    Transaction,
    duckdb_type,
    files_overlapping,
    literal,
    live_rows_sql,
    quote,
    write_data_files,
)
from millpond.delta.shared_connection import cursor
from millpond.engine.protocol import SEQUENCE_COLUMN, StagedBatch
from millpond.errors.replace_using import (
    ReplaceUsingNullSequenceError,
    ReplaceUsingSequenceUnknownError,
)
from millpond.flows.batch import (
    POSITION_COLUMN,
    BatchContext,
    BatchResult,
    BatchRows,
    one_row_json,
    parquet_sql,
    read_batch,
)
from millpond.flows.commits import commit_once
from millpond.flows.ordering import is_plain, is_same, rank
from millpond.flows.removal import remove_rows
from millpond.profiling import phase

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql.types import StructField, StructType


@dataclass(frozen=True)
class Snapshots:
    """Versions of keys that are known apart from rows. The key is one column of strings.

    Attributes:
        read_us: By key, the highest sequence of the batch, in microseconds since 1970.
        before_us: By key, the highest of earlier batches, where there is one.
        later_wins: Whether, of two versions of one sequence, that of the later batch is the newer.
            Otherwise they are versions of several things, whose rows go together.
        anew: Keys that begin anew with the batch, as if nothing of them was ever read.
    """

    read_us: Mapping[str, int]
    before_us: Mapping[str, int]
    later_wins: bool = False
    anew: frozenset[str] = frozenset()

    def create(self, connection: DuckDBPyConnection, sequence: str) -> None:
        """Make `snapshots` of them.

        Args:
            sequence: DuckDB's type of the sequence, a timestamp.
        """
        import pyarrow as pa

        keys = list(self.read_us.keys() | self.anew)
        moment = pa.timestamp("us", tz="UTC")
        table = pa.table(
            {
                "k0": pa.array(keys, pa.string()),
                "newest": pa.array(map(self.read_us.get, keys), moment),
                "floor": pa.array(map(self.before_us.get, keys), moment),
                "anew": pa.array((key in self.anew for key in keys), pa.bool_()),
            }
        )
        connection.register("given_snapshots", table)
        connection.execute(
            f"CREATE TEMP TABLE snapshots AS SELECT k0, CAST(newest AS {sequence}) AS newest, "
            f"CAST(floor AS {sequence}) AS floor, anew FROM given_snapshots"
        )
        connection.unregister("given_snapshots")


NO_SNAPSHOTS = Snapshots({}, {})


def replace_using(
    batch: StagedBatch,
    context: BatchContext,
    *,
    keys: tuple[str, ...],
    sequence: str | None,
    sequence_text: str | None = None,
    snapshots: Snapshots = NO_SNAPSHOTS,
) -> BatchResult:
    """Apply a batch to its target by the rule above, exactly once.

    Args:
        batch: The staged rows.
        context: Which batch of which flow goes where.
        keys: The key columns.
        sequence: The column of the sequence, or `None` where the batch carries it beside the
            query's columns, in `SEQUENCE_COLUMN`. It is then stored beside the table's columns.
        sequence_text: The sequence as the user wrote it, for messages.
        snapshots: What is known of versions of keys beside the rows.

    Raises:
        ExpectationViolationError: A row does not meet an expectation that fails the update.
        ReplaceUsingNullSequenceError: A row that expectations left has no sequence.
        ReplaceUsingSequenceUnknownError: A stored row lacks the sequence that millpond keeps, and
            there is no way to compute it.
        TooManyCommitConflictsError: Other writers were faster each time.
    """

    def attempt(transaction: Transaction) -> BatchResult:
        with cursor(batch.files) as connection:
            return _apply(
                connection,
                transaction,
                batch,
                context,
                keys=keys,
                sequence=sequence,
                sequence_text=sequence_text or sequence,
                snapshots=snapshots,
            )

    return commit_once(context, attempt, operation="REPLACE USING")


# The rule for a key that has stored rows: `newest` is m, `floor` is s.
LANDS = "newest >= floor"
REPLACES = "newest > floor"


@dataclass(frozen=True)
class Heads:
    """What is known of the keys of a batch.

    Attributes:
        unsequenced: Whether a row has no sequence.
        nulls: For each key column, whether null is among its values.
    """

    unsequenced: bool
    nulls: tuple[bool, ...]


@dataclass(frozen=True)
class Comparison:
    """What rows are compared by: columns of the target, or for the sequence the hidden column."""

    keys: tuple[StructField, ...]
    sequence: StructField
    is_sequence_hidden: bool

    @classmethod
    def of(
        cls, schema: StructType, batch: StagedBatch, *, keys: tuple[str, ...], sequence: str | None
    ) -> Comparison:
        from pyspark.sql.types import StructField

        fields = {field.name.lower(): field for field in schema.fields}
        return cls(
            keys=tuple(fields[key.lower()] for key in keys),
            sequence=StructField(SEQUENCE_COLUMN, batch.sequence_type)
            if sequence is None
            else fields[sequence.lower()],
            is_sequence_hidden=sequence is None,
        )

    @property
    def columns(self) -> list[str]:
        """Names of the columns that stored rows are compared by, each once."""
        return list(dict.fromkeys([*(key.name for key in self.keys), self.sequence.name]))

    @property
    def hidden_columns(self) -> tuple[StructField, ...]:
        return (self.sequence,) if self.is_sequence_hidden else ()

    def key_of(self, rows: str) -> list[str]:
        """SQL for what tells the keys of a relation with the target's columns apart."""
        return [rank(f"{rows}.{quote(key.name)}", key.dataType) for key in self.keys]

    def rank_of(self, rows: str) -> str:
        """SQL by which its rows are compared."""
        value = f"{rows}.{quote(self.sequence.name)}"
        if self.is_sequence_hidden:
            # The table's schema does not say its type, so every relation may have its own.
            value = f"CAST({value} AS {duckdb_type(self.sequence.dataType)})"
        return rank(value, self.sequence.dataType)

    def has_key_of(self, rows: str, name: str, heads: Heads) -> str:
        """SQL that is true where a row has the key of a head; `name` is the heads' own there."""
        return " AND ".join(
            is_same(key, f"{name}.k{i}", nulls=nulls)
            for i, (key, nulls) in enumerate(zip(self.key_of(rows), heads.nulls, strict=True))
        )


def _apply(
    connection: DuckDBPyConnection,
    transaction: Transaction,
    batch: StagedBatch,
    context: BatchContext,
    *,
    keys: tuple[str, ...],
    sequence: str | None,
    sequence_text: str | None,
    snapshots: Snapshots,
) -> BatchResult:
    snapshot = transaction.snapshot
    metadata = snapshot.metadata
    comparison = Comparison.of(metadata.schema, batch, keys=keys, sequence=sequence)
    hidden = [field.name for field in comparison.hidden_columns]
    rows = read_batch(
        connection, batch, context, metadata=metadata, hidden_columns=comparison.hidden_columns
    )
    heads = _find_heads(connection, rows, comparison)
    if heads.unsequenced:
        raise _null_sequence(
            connection,
            rows,
            comparison,
            context,
            columns=metadata.schema.names,
            sequence_text=sequence_text,
        )
    has_snapshots = bool(snapshots.read_us or snapshots.anew)
    if has_snapshots:
        _add_snapshots(connection, snapshots, comparison)
    files = _find_stored(connection, snapshot, comparison, heads, context)
    if comparison.is_sequence_hidden:
        _fill_in_sequences(connection, snapshot, comparison, batch, context, files=files)
    _judge(connection, has_snapshots=has_snapshots, later_wins=snapshots.later_wins)
    added = write_data_files(
        connection,
        f"SELECT b.* FROM ({rows.sql}) AS b JOIN verdicts AS v "
        f"ON {comparison.has_key_of('b', 'v', heads)} AND {comparison.rank_of('b')} = v.newest "
        "WHERE v.lands",
        snapshot=snapshot,
        store=context.store,
        hidden_columns=hidden,
    )
    for file in added:
        transaction.add(file)
    removal = remove_rows(
        connection,
        transaction,
        files,
        dead="dead",
        store=context.store,
        hidden_columns=comparison.hidden_columns,
    )
    inserted = sum(file.num_rows or 0 for file in added)
    return BatchResult(
        version=snapshot.version,
        rows_read=rows.rows_read,
        rows_inserted=inserted,
        rows_deleted=removal.rows,
        rows_late=rows.rows_kept - inserted,
        rows_dropped=rows.rows_dropped,
        expectations=rows.expectations,
        bytes_written=sum(file.size_bytes for file in added) + removal.bytes_written,
    )


@phase("match keys")
def _find_heads(connection: DuckDBPyConnection, rows: BatchRows, comparison: Comparison) -> Heads:
    """Make `heads`: each key of the batch with its highest sequence."""
    keys = comparison.key_of("b")
    named = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys))
    connection.execute(
        f"CREATE TEMP TABLE heads AS SELECT row_number() OVER () AS head, {named}, "
        f"max({comparison.rank_of('b')}) AS newest, "
        f"bool_or({comparison.rank_of('b')} IS NULL) AS unsequenced "
        f"FROM ({rows.sql}) AS b GROUP BY {', '.join(keys)}"
    )
    found = ["unsequenced", *(f"k{i} IS NULL" for i in range(len(keys)))]
    flags = ", ".join(f"coalesce(bool_or({each}), false)" for each in found)
    unsequenced, *nulls = connection.execute(f"SELECT {flags} FROM heads").fetchall()[0]
    return Heads(unsequenced, tuple(nulls))


def _null_sequence(
    connection: DuckDBPyConnection,
    rows: BatchRows,
    comparison: Comparison,
    context: BatchContext,
    *,
    columns: Iterable[str],
    sequence_text: str | None,
) -> ReplaceUsingNullSequenceError:
    unsequenced = f"{comparison.rank_of('b')} IS NULL"
    relation = f"({rows.sql}) AS b"
    count = connection.execute(f"SELECT count(*) FROM {relation} WHERE {unsequenced}").fetchall()
    # The keys first: they tell the row, should the text be cut.
    keys = [key.name for key in comparison.keys]
    return ReplaceUsingNullSequenceError.from_batch(
        context.flow,
        target=str(context.target),
        batch_id=context.batch_id,
        rows=int(count[0][0]),
        sequence=sequence_text,
        row_json=one_row_json(
            connection,
            relation,
            columns=dict.fromkeys([*keys, *columns]),
            condition=unsequenced,
        ),
    )


def _add_snapshots(
    connection: DuckDBPyConnection, snapshots: Snapshots, comparison: Comparison
) -> None:
    """Count versions of keys towards `heads`, as rows that come with them."""
    snapshots.create(connection, duckdb_type(comparison.sequence.dataType))
    connection.execute(
        "CREATE TEMP TABLE all_heads AS SELECT row_number() OVER () AS head, k0, "
        "greatest(h.newest, s.newest) AS newest, s.floor AS floor, "
        "coalesce(s.anew, false) AS anew "
        "FROM heads AS h FULL JOIN snapshots AS s USING (k0)"
    )
    connection.execute("CREATE TEMP TABLE floors AS SELECT head, floor AS rank FROM all_heads")
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE heads AS SELECT * EXCLUDE (floor, anew) FROM all_heads"
    )


@phase("match keys")
def _find_stored(
    connection: DuckDBPyConnection,
    snapshot: Snapshot,
    comparison: Comparison,
    heads: Heads,
    context: BatchContext,
) -> list[AddFile]:
    """Make `stored`: where the target's rows of these keys lie, each with its sequence.

    Returns:
        The files that it has the numbers of.
    """
    files = files_overlapping(snapshot, _ranges(connection, comparison, heads))
    live = live_rows_sql(
        connection,
        snapshot,
        files,
        columns=comparison.columns,
        positions=True,
        store=context.store,
    )
    connection.execute(
        f"CREATE TEMP TABLE stored AS SELECT h.head, s.{quote(FILE_COLUMN)} AS file, "
        f"s.{quote(ROW_COLUMN)} AS row, "
        f"{comparison.rank_of('s')} AS rank FROM ({live}) AS s "
        f"JOIN heads AS h ON {comparison.has_key_of('s', 'h', heads)}"
    )
    return files


def _ranges(
    connection: DuckDBPyConnection, comparison: Comparison, heads: Heads
) -> dict[str, ColumnRange]:
    """The values of the key columns in the batch, where statistics can be compared with them."""
    ranges = {}
    for i, (key, nulls) in enumerate(zip(comparison.keys, heads.nulls, strict=True)):
        if is_plain(key.dataType):
            low, high = connection.execute(f"SELECT min(k{i}), max(k{i}) FROM heads").fetchall()[0]
            ranges[key.name] = ColumnRange(low, high, nulls=nulls)
    return ranges


@phase("recompute sequences")
def _fill_in_sequences(
    connection: DuckDBPyConnection,
    snapshot: Snapshot,
    comparison: Comparison,
    batch: StagedBatch,
    context: BatchContext,
    *,
    files: Sequence[AddFile],
) -> None:
    """Compute the sequence of stored rows that carry none, because another program wrote them."""
    numbers = [
        row[0]
        for row in connection.execute(
            "SELECT DISTINCT file FROM stored WHERE rank IS NULL"
        ).fetchall()
    ]
    if not numbers:
        return
    if context.recompute_sequence is None:
        raise ReplaceUsingSequenceUnknownError.from_flow(
            context.flow, target=str(context.target), files=len(numbers)
        )
    chosen = [files[number] for number in numbers]
    live = live_rows_sql(connection, snapshot, chosen, positions=True, store=context.store)
    unsequenced = batch.files[0].with_name(f"unsequenced-{uuid.uuid4().hex}.parquet")
    file, row, position = (quote(c) for c in (FILE_COLUMN, ROW_COLUMN, POSITION_COLUMN))
    connection.execute(
        f"COPY (SELECT l.* EXCLUDE ({file}, {row}), s.rowid AS {position} "
        f"FROM ({live}) AS l JOIN stored AS s "
        f"ON ({numbers})[l.{file} + 1] = s.file AND l.{row} = s.row "
        f"WHERE s.rank IS NULL) TO {literal(str(unsequenced))} (FORMAT parquet)"
    )
    recomputed = context.recompute_sequence(unsequenced)
    sequenced = parquet_sql(
        sorted(recomputed.glob("*.parquet")) if recomputed.is_dir() else [recomputed]
    )
    connection.execute(
        f"UPDATE stored SET rank = {comparison.rank_of('q')} FROM {sequenced} AS q "
        f"WHERE stored.rowid = q.{position}"
    )


@phase("match keys")
def _judge(connection: DuckDBPyConnection, *, has_snapshots: bool, later_wins: bool) -> None:
    """Make `verdicts`, what the rule says of each key, and `dead`, the rows that it takes out."""
    replaces = LANDS if later_wins else REPLACES
    ranks = "stored"
    if has_snapshots:
        ranks = (
            "(SELECT head, rank FROM (SELECT head, rank FROM stored UNION ALL FROM floors) "
            "JOIN all_heads USING (head) WHERE NOT anew)"
        )
    connection.execute(
        "CREATE TEMP TABLE verdicts AS SELECT heads.*, "
        f"floor IS NULL OR {LANDS} AS lands, floor IS NULL OR {replaces} AS replaces "
        f"FROM heads LEFT JOIN (SELECT head, max(rank) AS floor FROM {ranks} GROUP BY head) AS f "
        "ON heads.head = f.head"
    )
    connection.execute(
        "CREATE TEMP TABLE dead AS SELECT s.file, s.row FROM stored AS s "
        "JOIN verdicts AS v ON s.head = v.head WHERE v.replaces"
    )
