"""Applies one micro-batch to its Delta table with one commit, inside Spark's `foreachBatch` worker.

It travels there pickled by value, to a Python without millpond: it imports nothing but the standard
library and pyspark. It sets options of its Spark session, so each flow needs a session of its own.
What it finds wrong with a batch comes back as text within Spark's error (`PROBLEM`).
The rule of REPLACE USING stands in `flows/replace_using.py`; why this statement carries it out, in
docs/decisions/0009.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

# What a message for the client begins with; JSON follows, up to the end of the line.
PROBLEM = "millpond: "
EXPECTATION_COLUMN = "__millpond_expectation_{index}"
BATCH_VIEW = "__millpond_batch"
KEY_COLUMN = "__millpond_key_{index}"
ORDER_COLUMN = "__millpond_order"
MARKER_COLUMN = "__millpond_is_marker"
# The highest sequence of a key in the batch, and in the table.
NEWEST_COLUMN = "__millpond_newest"
FLOOR_COLUMN = "__millpond_floor"

MAX_ATTEMPTS = 20
# How Delta's conditions begin for a commit that lost against another; nothing of it is written.
CONFLICTS = ("DELTA_CONCURRENT_", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")
# Up to so many rows of a batch, their keys go to where the target's rows are, and then the rows
# that land, whole, with the markers; from there on, both sides are shuffled.
BROADCAST_ROWS = 500_000
# A longer text is no bound of a range: it would stand in the table's log.
MAX_BOUND_LENGTH = 200

APP_ID_CONF = "spark.databricks.delta.write.txnAppId"
VERSION_CONF = "spark.databricks.delta.write.txnVersion"
METADATA_CONF = "spark.databricks.delta.commitInfo.userMetadata"
MATERIALIZE_CONF = "spark.databricks.delta.merge.materializeSource"


class BatchProblemError(Exception):
    """The batch can't be applied, for a reason that lies in its rows. Nothing of it was."""


@dataclass(frozen=True)
class BatchExpectation:
    """An expectation; `action` is `WARN`, `DROP` or `FAIL`."""

    name: str
    action: str


@dataclass(frozen=True)
class BatchPlan:
    """What to do with each batch of a flow.

    Attributes:
        kind: `append`, `replace` or `overwrite`.
        target: The table as SQL names it, quoted: `` `c`.`s`.`t` `` or ``delta.`/path` ``.
        columns: The query's own columns, in order. A batch may have helper columns beside them.
        app_id: Under this id the table's commits carry the number of the batch.
        expectations: Each with a boolean column `EXPECTATION_COLUMN` of its index.
        keys: The key columns of a `replace`.
        sequence: Its sequence: SQL over the query's columns, which a stored row has as well.
        partition_columns: Those of the table.
        keeps_clustering: Whether an `overwrite` leaves the table clustered.
        overwrite_schema: Whether an `overwrite` gives the table its columns, too.
        metadata: What else each commit is to tell.
    """

    kind: str
    target: str
    columns: tuple[str, ...]
    app_id: str
    expectations: tuple[BatchExpectation, ...] = ()
    keys: tuple[str, ...] = ()
    sequence: str | None = None
    partition_columns: tuple[str, ...] = ()
    keeps_clustering: bool = False
    overwrite_schema: bool = False
    metadata: tuple[tuple[str, str], ...] = ()


def apply_batch(
    rows: DataFrame,
    batch_id: int,
    plan: BatchPlan,
    writing: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Apply a batch, unless the table holds it already. One commit, also where no row changes.

    Args:
        writing: What an append or an overwrite is written within, once its rows are at hand.

    Raises:
        BatchProblemError: A row does not meet an expectation that fails the update, or has no
            sequence.
    """
    # Read once: a query need not give the same rows twice, and all that follows is about these.
    # Where an executor is lost that held some, this fails; the batch then comes again, whole.
    batch = _shaped(rows, plan).localCheckpoint(eager=True)
    counts = _count(batch, plan)
    _check(batch, counts, batch_id, plan)
    columns = [quote(column) for column in plan.columns]
    kept = batch.where(_kept(plan)).selectExpr(*columns)
    told = _user_metadata(counts, batch_id, plan)
    if plan.kind == "replace":
        _replace(kept, counts, batch_id, plan, told=told)
    else:
        with writing():
            _until_no_conflict(lambda: _write(kept, batch_id, plan, told=told))


def _shaped(rows: DataFrame, plan: BatchPlan) -> DataFrame:
    """The columns that matter. An empty text in a partition column is null, as Delta has it."""
    texts = {name.lower() for name in plan.partition_columns if _type_of(rows, name) == "string"}
    columns = [
        f"nullif({quote(name)}, '') AS {quote(name)}" if name.lower() in texts else quote(name)
        for name in plan.columns
    ]
    helpers = [EXPECTATION_COLUMN.format(index=i) for i in range(len(plan.expectations))]
    return rows.selectExpr(*columns, *helpers)


# Counting, and what the counts forbid.


def _count(batch: DataFrame, plan: BatchPlan) -> Row:
    """Count in one pass; over the rows that expectations leave, find the range of each key."""
    kept = _kept(plan)
    found = ["count(*) AS rows_read", f"count_if({kept}) AS rows_kept"]
    found += [f"count_if({_met(i)}) AS passed_{i}" for i in range(len(plan.expectations))]
    if plan.kind == "replace":
        found.append(f"count_if({kept} AND ({plan.sequence}\n) IS NULL) AS unsequenced")
        for index, key in enumerate(plan.keys):
            found += _range_aggregates(index, key, _type_of(batch, key), kept)
    return batch.selectExpr(*found).collect()[0]


def _met(index: int) -> str:
    return f"{EXPECTATION_COLUMN.format(index=index)} IS TRUE"


def _kept(plan: BatchPlan) -> str:
    drops = [i for i, expectation in enumerate(plan.expectations) if expectation.action == "DROP"]
    return " AND ".join(f"({_met(index)})" for index in drops) or "true"


def _check(batch: DataFrame, counts: Row, batch_id: int, plan: BatchPlan) -> None:
    for index, expectation in enumerate(plan.expectations):
        failed = counts.rows_read - counts[f"passed_{index}"]
        if expectation.action == "FAIL" and failed:
            _refuse(
                "expectation",
                batch_id,
                expectation=expectation.name,
                failed_rows=failed,
                row_json=_one_row(batch, f"NOT ({_met(index)})", plan),
            )
    if plan.kind == "replace" and counts.unsequenced:
        unsequenced = f"{_kept(plan)} AND ({plan.sequence}\n) IS NULL"
        row_json = _one_row(batch, unsequenced, plan)
        _refuse("null_sequence", batch_id, rows=counts.unsequenced, row_json=row_json)


def _one_row(batch: DataFrame, condition: str, plan: BatchPlan) -> str:
    """A row that meets a condition, as JSON."""
    columns = ", ".join(quote(column) for column in plan.columns)
    shown = f"to_json(struct({columns}), map('ignoreNullFields', 'false')) AS row"
    found: str = batch.where(condition).limit(1).selectExpr(shown).collect()[0].row
    return found


def _refuse(problem: str, batch_id: int, **details: Any) -> None:
    told = {"problem": problem, "batch_id": batch_id, **details}
    raise BatchProblemError(PROBLEM + json.dumps(told))


def _user_metadata(counts: Row, batch_id: int, plan: BatchPlan) -> str:
    """What the commit tells about the batch; how many rows went in and out, Delta tells."""
    passed = [counts[f"passed_{index}"] for index in range(len(plan.expectations))]
    return json.dumps(
        {
            **dict(plan.metadata),
            "batchId": batch_id,
            "rowsRead": counts.rows_read,
            "rowsDropped": counts.rows_read - counts.rows_kept,
            "expectations": [
                {
                    "name": expectation.name,
                    "action": expectation.action,
                    "passed": count,
                    "failed": counts.rows_read - count,
                }
                for expectation, count in zip(plan.expectations, passed, strict=True)
            ],
        }
    )


# Append and overwrite.


def _write(kept: DataFrame, batch_id: int, plan: BatchPlan, *, told: str) -> None:
    """Write by name. A column of the table that the rows lack is null."""
    writer = kept.write.format("delta").mode(plan.kind).option("userMetadata", told)
    if plan.kind == "append":
        writer = writer.options(txnAppId=plan.app_id, txnVersion=str(batch_id))
    if plan.overwrite_schema:
        writer = writer.option("overwriteSchema", "true")
        if plan.partition_columns:
            writer = writer.partitionBy(*plan.partition_columns)
    elif plan.keeps_clustering:
        # Delta takes all else that overwrites for a new table, which is not clustered.
        writer = writer.option("replaceWhere", "true")
    writer.saveAsTable(plan.target)


# REPLACE USING.


def _replace(kept: DataFrame, counts: Row, batch_id: int, plan: BatchPlan, *, told: str) -> None:
    spark = kept.sparkSession
    statement = merge_statement(
        plan,
        bounds=_bounds(kept, counts, plan),
        nullable=[counts[f"nulls_{index}"] for index in range(len(plan.keys))],
        is_small=counts.rows_kept <= BROADCAST_ROWS,
    )
    options = {
        APP_ID_CONF: plan.app_id,
        VERSION_CONF: str(batch_id),
        METADATA_CONF: told,
        # The source must be read once, and in the transaction.
        MATERIALIZE_CONF: "all",
    }
    kept.createOrReplaceTempView(BATCH_VIEW)
    try:
        with _configured(spark, options):
            _until_no_conflict(lambda: spark.sql(statement).collect())
    finally:
        spark.catalog.dropTempView(BATCH_VIEW)


def merge_statement(
    plan: BatchPlan, *, bounds: list[str], nullable: list[bool], is_small: bool
) -> str:
    """SQL of the replace: one MERGE.

    Its source holds the rows that land, and a marker for each key whose stored rows go. To tell
    which these are, it reads the keys and sequences of the target. The MERGE reads its source
    within its own transaction, so this is the version that it changes, and Delta refuses the commit
    where another writer has added rows meanwhile.

    Args:
        bounds: Conditions on `t` that its rows with a key of the batch meet.
        nullable: For each key whether the batch has null there.
        is_small: Whether the batch, with all of its columns, fits into the memory of each executor.
    """
    names = [KEY_COLUMN.format(index=index) for index in range(len(plan.keys))]
    columns = [quote(column) for column in plan.columns]
    keyed = [f"{quote(key)} AS {name}" for key, name in zip(plan.keys, names, strict=True)]
    compared = ", ".join([*keyed, f"({plan.sequence}\n) AS {ORDER_COLUMN}"])
    by_key, all_columns = ", ".join(names), ", ".join(columns)
    within = " AND ".join(bounds) or "true"
    # Far faster than <=>, which is made of two comparisons, where a key is never null.
    equals = ["<=>" if has_nulls else "=" for has_nulls in nullable]
    stored_in_batch = _all(
        f"stored.{n} {e} incoming.{n}" for n, e in zip(names, equals, strict=True)
    )
    target_has_key = _all(
        f"t.{quote(key)} {e} s.{n}" for key, n, e in zip(plan.keys, names, equals, strict=True)
    )
    return f"""
MERGE INTO {plan.target} AS t
USING (
  WITH
  incoming AS (
    SELECT {all_columns}, {compared}, false AS {MARKER_COLUMN} FROM {BATCH_VIEW}),
  stored AS (
    SELECT {compared} FROM {plan.target} AS t WHERE {within}),
  markers AS (
    SELECT {_broadcast("incoming", is_small)} {by_key}, max({ORDER_COLUMN}) AS {ORDER_COLUMN}
    FROM stored LEFT SEMI JOIN incoming ON {stored_in_batch} GROUP BY {by_key}),
  compared AS (
    SELECT *,
      max(CASE WHEN NOT {MARKER_COLUMN} THEN {ORDER_COLUMN} END) OVER same_key AS {NEWEST_COLUMN},
      max(CASE WHEN {MARKER_COLUMN} THEN {ORDER_COLUMN} END) OVER same_key AS {FLOOR_COLUMN}
    FROM (SELECT * FROM incoming UNION ALL
      SELECT {", ".join("NULL" for _ in columns)}, {by_key}, {ORDER_COLUMN}, true FROM markers)
    WINDOW same_key AS (PARTITION BY {by_key}))
  SELECT {_broadcast("compared", is_small)} {all_columns}, {by_key}, {MARKER_COLUMN} FROM compared
  WHERE CASE WHEN {MARKER_COLUMN} THEN {FLOOR_COLUMN} IS NULL OR {NEWEST_COLUMN} > {FLOOR_COLUMN}
    ELSE {ORDER_COLUMN} = {NEWEST_COLUMN}
      AND ({FLOOR_COLUMN} IS NULL OR {NEWEST_COLUMN} >= {FLOOR_COLUMN}) END
) AS s
ON s.{MARKER_COLUMN} AND {target_has_key} AND {within}
WHEN MATCHED THEN DELETE
WHEN NOT MATCHED AND NOT s.{MARKER_COLUMN} THEN
  INSERT ({all_columns}) VALUES ({", ".join(f"s.{column}" for column in columns)})
"""


def _all(conditions: Iterator[str]) -> str:
    return " AND ".join(conditions)


def _broadcast(relation: str, is_small: bool) -> str:
    return f"/*+ BROADCAST({relation}) */" if is_small else ""


@contextmanager
def _configured(spark: SparkSession, options: Mapping[str, str]) -> Iterator[None]:
    """Set options of the session for a while: MERGE takes them by no other way."""
    before = {key: spark.conf.get(key, None) for key in options}
    try:
        for key, value in options.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, kept in before.items():
            if kept is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, kept)


def _until_no_conflict(attempt: Callable[[], object]) -> None:
    """Try again as long as other writers are faster.

    At once, as Delta itself does: an attempt that lost took a batch's time, in which the others
    were done, and the next one begins with what they wrote.
    """
    from pyspark.errors import PySparkException

    for attempts_left in reversed(range(MAX_ATTEMPTS)):
        try:
            attempt()
        except PySparkException as error:
            if not attempts_left or not names_conflict(str(error)):
                raise
        else:
            return


def names_conflict(text: str) -> bool:
    """Whether an error tells of a condition that means that another commit came first.

    It stands in brackets, maybe behind that of an error around it.
    """
    return any(f"[{condition}" in text for condition in CONFLICTS)


# The range of the keys, by which Delta leaves out files of the target.

_WHOLE = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
_FLOATS = {"float": "F", "double": "D"}
_LAST_CHARACTER = chr(sys.maxunicode)
_TIMES = {"date": "DATE", "timestamp_ntz": "TIMESTAMP_NTZ"}


def _type_of(rows: DataFrame, column: str) -> str:
    fields = rows.schema.fields
    return next(f.dataType.simpleString() for f in fields if f.name.lower() == column.lower())


def _range_aggregates(index: int, key: str, kind: str, kept: str) -> list[str]:
    """SQL that finds whether a key is null, and its range where the type has statistics."""
    value, only = quote(key), f"FILTER (WHERE {kept})"
    found = [f"coalesce(bool_or({value} IS NULL) {only}, false) AS nulls_{index}"]
    if {kind} & {*_WHOLE, *_FLOATS, *_TIMES, "timestamp", "string"} or kind.startswith("decimal"):
        shown = {"timestamp": f"unix_micros({value})", "string": f"hex({value})"}.get(kind, value)
        odd = f"isnan({value})" if kind in _FLOATS else "false"
        found += [
            f"CAST(min({shown}) {only} AS STRING) AS low_{index}",
            f"CAST(max({shown}) {only} AS STRING) AS high_{index}",
            f"coalesce(bool_or({odd}) {only}, false) AS odd_{index}",
        ]
    return found


def _bounds(batch: DataFrame, counts: Row, plan: BatchPlan) -> list[str]:
    """Conditions on `t` that are true for every row of the target with a key of the batch.

    They are made of literals alone, because Delta looks at nothing else when it leaves out files.
    Where NaN is a key there is none: some writers leave it out of a file's statistics.
    """
    found = []
    for index, key in enumerate(plan.keys):
        if f"low_{index}" not in counts or counts[f"odd_{index}"]:
            continue
        low, high = counts[f"low_{index}"], counts[f"high_{index}"]
        column, kind = f"t.{quote(key)}", _type_of(batch, key)
        ends = [(">=", _literal(low, kind)), ("<=", _literal(high, kind, is_high=True))]
        sides = [f"{column} {operator} {literal}" for operator, literal in ends if literal]
        if low is None:
            sides = ["false"]
        if sides:
            condition = " AND ".join(sides)
            has_nulls = counts[f"nulls_{index}"]
            found.append(f"({condition} OR {column} IS NULL)" if has_nulls else f"({condition})")
    return found


def _literal(text: str | None, kind: str, *, is_high: bool = False) -> str | None:
    """A literal of just that type, or none where there is no plain way to write it."""
    if text is None:
        return None
    found: str | None = f"CAST('{text}' AS {kind})"
    if kind in _WHOLE:
        found = text + _WHOLE[kind]
    elif kind in _FLOATS:
        found = None if "inf" in text.lower() else text + _FLOATS[kind]
    elif kind in _TIMES:
        found = f"{_TIMES[kind]} '{text}'"
    elif kind == "timestamp":
        found = _timestamp(int(text))
    elif kind == "string":
        found = _text(bytes.fromhex(text), is_high=is_high)
    return found


def _text(found: bytes, *, is_high: bool) -> str | None:
    """A raw literal, whose meaning no setting of Spark changes.

    A text is cut short where it is long, or where a raw literal can't go on: before a quote, and
    before what could be a reference to a variable. The bound is then the wider for it.
    """
    try:
        text = found.decode()
    except UnicodeDecodeError:
        return None
    ends = [text.find("'"), text.find("$"), MAX_BOUND_LENGTH]
    end = min(end for end in ends if end >= 0)
    bound, rest = text[:end], text[end:]
    if rest and is_high:
        if rest[0] == _LAST_CHARACTER:
            return None
        bound += _LAST_CHARACTER
    return f"R'{bound}'"


def _timestamp(microseconds: int) -> str | None:
    from datetime import UTC, datetime, timedelta

    try:
        instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    return f"TIMESTAMP '{instant.isoformat(sep=' ')}'"


def quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
