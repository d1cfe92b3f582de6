"""Applies one micro-batch to its Delta table with one commit, inside Spark's `foreachBatch` worker.

It travels there pickled by value, to a Python without millpond: it imports nothing but the standard
library and pyspark. It sets Spark options of its session, so each flow needs a session of its own.
What it finds wrong with a batch comes back as text within Spark's error (`PROBLEM`).
The rule of REPLACE USING is in `flows/replace_using.py`; why it is this statement that carries it
out is in docs/decisions/0009.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

# What a message for the client begins with; JSON follows, up to the end of the line.
PROBLEM = "millpond: "
EXPECTATION_COLUMN = "__millpond_expectation_{index}"
BATCH_VIEW = "__millpond_batch"
MARKER = "__millpond_replaces"
MAX_ATTEMPTS = 20
# Rows up to which a batch is sent to every executor, rather than the target's rows to where
# the batch's are.
BROADCAST_ROWS = 1_000_000
# A text longer than that is no bound of a range: it would stand in the table's log.
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
    overwrite_schema: bool = False
    metadata: tuple[tuple[str, str], ...] = ()


def apply_batch(rows: DataFrame, batch_id: int, plan: BatchPlan) -> None:
    """Apply a batch, unless the table holds it already.

    Raises:
        BatchProblemError: A row does not meet an expectation that fails the update, or has no
            sequence.
    """
    # Read once: a query need not give the same rows twice, and all that follows is about these.
    batch = rows.localCheckpoint(eager=True)
    counts = _count(batch, plan)
    _check(batch, counts, batch_id, plan)
    kept = _kept(batch, plan)
    if plan.kind == "replace":
        _replace(kept, counts, batch_id, plan)
    else:
        _write(kept, counts, batch_id, plan)


# Counting, and what the counts forbid.


def _count(batch: DataFrame, plan: BatchPlan) -> Row:
    """Count in one pass; over the rows that expectations leave, find the range of each key."""
    met = [_met(index) for index in range(len(plan.expectations))]
    kept = _kept_condition(plan)
    found = ["count(*) AS rows_read", f"count_if({kept}) AS rows_kept"]
    found += [f"count_if({condition}) AS passed_{index}" for index, condition in enumerate(met)]
    if plan.kind == "replace":
        found.append(f"count_if(({plan.sequence}) IS NULL AND {kept}) AS unsequenced")
        for index, key in enumerate(plan.keys):
            found += _range_aggregates(index, key, _type_of(batch, key), kept)
    return batch.selectExpr(*found).collect()[0]


def _met(index: int) -> str:
    return f"{quote(EXPECTATION_COLUMN.format(index=index))} IS TRUE"


def _kept_condition(plan: BatchPlan) -> str:
    drops = [i for i, expectation in enumerate(plan.expectations) if expectation.action == "DROP"]
    return " AND ".join(f"({_met(index)})" for index in drops) or "true"


def _check(batch: DataFrame, counts: Row, batch_id: int, plan: BatchPlan) -> None:
    for index, expectation in enumerate(plan.expectations):
        failed = counts.rows_read - counts[f"passed_{index}"]
        if expectation.action == "FAIL" and failed:
            columns = ", ".join(quote(column) for column in plan.columns)
            row = (
                batch.where(f"NOT ({_met(index)})")
                .limit(1)
                .selectExpr(f"to_json(struct({columns}), map('ignoreNullFields', 'false')) AS row")
            )
            _refuse(
                "expectation",
                batch_id,
                expectation=expectation.name,
                failed_rows=failed,
                row_json=row.collect()[0].row,
            )
    if plan.kind == "replace" and counts.unsequenced:
        _refuse("null_sequence", batch_id, rows=counts.unsequenced)


def _refuse(problem: str, batch_id: int, **details: Any) -> None:
    told = {"problem": problem, "batch_id": batch_id, **details}
    raise BatchProblemError(PROBLEM + json.dumps(told))


def _kept(batch: DataFrame, plan: BatchPlan) -> DataFrame:
    """The rows that expectations leave, with the query's columns."""
    strings = {
        column.lower() for column in plan.partition_columns if _type_of(batch, column) == "string"
    }
    return batch.where(_kept_condition(plan)).selectExpr(
        # An empty text is null in a partition column, as Delta has it.
        *(
            f"nullif({quote(column)}, '') AS {quote(column)}"
            if column.lower() in strings
            else quote(column)
            for column in plan.columns
        )
    )


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


def _write(kept: DataFrame, counts: Row, batch_id: int, plan: BatchPlan) -> None:
    options = {
        "userMetadata": _user_metadata(counts, batch_id, plan),
        "txnAppId": plan.app_id,
        "txnVersion": str(batch_id),
        "overwriteSchema": str(plan.overwrite_schema).lower(),
    }
    writer = kept.write.format("delta").mode(plan.kind).options(**options)
    if plan.overwrite_schema and plan.partition_columns:
        writer = writer.partitionBy(*plan.partition_columns)
    writer.saveAsTable(plan.target)


# REPLACE USING.


def _replace(kept: DataFrame, counts: Row, batch_id: int, plan: BatchPlan) -> None:
    """Replace with one MERGE.

    Its source holds the rows to insert, and a marker for each key whose stored rows go. It reads
    the target to tell which these are, and does so within the transaction of the MERGE, at its
    version: Delta refuses the commit if another writer has added rows in the meantime.
    """
    spark = kept.sparkSession
    kept.createOrReplaceTempView(BATCH_VIEW)
    bounds = _bounds(kept, counts, plan)
    statement = merge_statement(plan, bounds=bounds, rows=counts.rows_kept)
    confs = {
        APP_ID_CONF: plan.app_id,
        VERSION_CONF: str(batch_id),
        METADATA_CONF: _user_metadata(counts, batch_id, plan),
        # The source must be read once, in the transaction.
        MATERIALIZE_CONF: "all",
    }
    try:
        with _configured(spark, confs):
            _until_no_conflict(spark, statement)
    finally:
        spark.catalog.dropTempView(BATCH_VIEW)


def merge_statement(plan: BatchPlan, *, bounds: list[str], rows: int) -> str:
    """SQL of the replace. `bounds` are conditions that the keys of the batch meet, over `t`."""
    keys = [quote(key) for key in plan.keys]
    names = [f"__millpond_key_{index}" for index in range(len(keys))]
    columns = [quote(column) for column in plan.columns]
    sequenced = ", ".join(
        [f"({plan.sequence}) AS __millpond_order"]
        + [f"{key} AS {name}" for key, name in zip(keys, names, strict=True)]
    )
    by_key = ", ".join(names)
    heads_key = ", ".join(f"h.{name}" for name in names)
    within = " AND ".join(bounds) or "true"
    small = rows <= BROADCAST_ROWS
    return f"""
MERGE INTO {plan.target} AS t
USING (
  WITH
  incoming AS (SELECT *, {sequenced} FROM {quote(BATCH_VIEW)}),
  heads AS (SELECT {by_key}, max(__millpond_order) AS newest FROM incoming GROUP BY {by_key}),
  stored AS (SELECT {sequenced} FROM {plan.target} AS t WHERE {within}),
  floors AS (SELECT {"/*+ BROADCAST(h) */" if small else ""} {heads_key},
      max(stored.__millpond_order) AS floor, true AS is_stored
    FROM stored JOIN heads AS h ON {_same("stored", "h", names)} GROUP BY {heads_key}),
  verdicts AS (
    SELECT {heads_key}, h.newest, f.floor IS NULL OR h.newest >= f.floor AS lands,
      f.is_stored AND (f.floor IS NULL OR h.newest > f.floor) AS replaces
    FROM heads AS h LEFT JOIN floors AS f ON {_same("h", "f", names)})
  SELECT false AS {MARKER}, {", ".join(f"i.{name}" for name in (*names, *columns))}
  FROM incoming AS i JOIN verdicts AS v
    ON {_same("i", "v", names)} AND i.__millpond_order = v.newest
  WHERE v.lands
  UNION ALL
  SELECT true, {by_key}, {", ".join("NULL" for _ in columns)} FROM verdicts WHERE replaces
) AS s
ON s.{MARKER} AND {" AND ".join(f"t.{k} <=> s.{n}" for k, n in zip(keys, names, strict=True))}
  AND {within}
WHEN MATCHED THEN DELETE
WHEN NOT MATCHED AND NOT s.{MARKER} THEN INSERT ({", ".join(columns)})
  VALUES ({", ".join(f"s.{column}" for column in columns)})
"""


def _same(left: str, right: str, names: list[str]) -> str:
    return " AND ".join(f"{left}.{name} <=> {right}.{name}" for name in names)


@contextmanager
def _configured(spark: SparkSession, confs: Mapping[str, str]) -> Iterator[None]:
    """Set options of the session for a while: those that MERGE does not take by another way."""
    before = {key: spark.conf.get(key, None) for key in confs}
    try:
        for key, value in confs.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def _until_no_conflict(spark: SparkSession, statement: str) -> None:
    """Run it again as long as other writers are faster."""
    from pyspark.errors import PySparkException

    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            spark.sql(statement).collect()
        except PySparkException as error:
            if attempt == MAX_ATTEMPTS or "DELTA_CONCURRENT" not in str(error):
                raise
        else:
            return


# The range of the keys, by which Delta leaves out files of the target.

_WHOLE = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
_FLOATS = {"float": "F", "double": "D"}
_TIMES = {"date": "DATE", "timestamp_ntz": "TIMESTAMP_NTZ"}


def _type_of(rows: DataFrame, column: str) -> str:
    fields = rows.schema.fields
    return next(f.dataType.simpleString() for f in fields if f.name.lower() == column.lower())


def _range_aggregates(index: int, key: str, kind: str, kept: str) -> list[str]:
    """SQL that finds the least and the greatest key; none where the type has no statistics."""
    if not (kind in {*_WHOLE, *_FLOATS, *_TIMES, "timestamp", "string"} or _is_decimal(kind)):
        return []
    value = quote(key)
    shown = f"unix_micros({value})" if kind == "timestamp" else value
    odd = f"isnan({value})" if kind in _FLOATS else "false"
    only = f"FILTER (WHERE {kept})"
    return [
        f"CAST(min({shown}) {only} AS STRING) AS low_{index}",
        f"CAST(max({shown}) {only} AS STRING) AS high_{index}",
        f"coalesce(bool_or({value} IS NULL) {only}, false) AS nulls_{index}",
        f"coalesce(bool_or({odd}) {only}, false) AS odd_{index}",
    ]


def _bounds(batch: DataFrame, counts: Row, plan: BatchPlan) -> list[str]:
    """Conditions on `t` that are true for every row of the target with a key of the batch.

    They are made of literals alone, because Delta looks at nothing else when it leaves out files.
    Where NaN is a key there is none: some writers leave it out of a file's statistics.
    """
    found = []
    for index, key in enumerate(plan.keys):
        if f"low_{index}" not in counts or counts[f"odd_{index}"]:
            continue
        kind, column = _type_of(batch, key), f"t.{quote(key)}"
        sides = [
            f"{column} {operator} {literal}"
            for operator, end in ((">=", "low"), ("<=", "high"))
            if (literal := _literal(counts[f"{end}_{index}"], kind)) is not None
        ]
        if counts[f"low_{index}"] is None:
            sides = ["false"]
        if sides:
            condition = " AND ".join(sides)
            nulls = counts[f"nulls_{index}"]
            found.append(f"({condition} OR {column} IS NULL)" if nulls else f"({condition})")
    return found


def _literal(text: str | None, kind: str) -> str | None:
    """A literal of just that type, or none where there is no plain way to write it."""
    if text is None or len(text) > MAX_BOUND_LENGTH:
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
        found = quote_text(text)
    return found


def _timestamp(microseconds: int) -> str | None:
    from datetime import datetime, timedelta

    try:
        instant = datetime(1970, 1, 1) + timedelta(microseconds=microseconds)  # noqa: DTZ001 - UTC by the literal
    except OverflowError:
        return None
    return f"TIMESTAMP '{instant.isoformat(sep=' ')}Z'"


def _is_decimal(kind: str) -> bool:
    return kind.startswith("decimal")


def quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """A text as a literal, whatever characters it has."""
    plain = "".join(
        c
        if (c.isalnum() and c.isascii()) or c in " -_.:/"
        else f"\\u{ord(c):04x}"
        if ord(c) < 0x10000
        else f"\\U{ord(c):08x}"
        for c in text
    )
    return f"'{plain}'"
