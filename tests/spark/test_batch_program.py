"""A batch that the program for Spark's `foreachBatch` applies leaves what the oracle says."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from millpond.runner.spark import batch_program
from millpond.runner.spark.batch_program import (
    PROBLEM,
    BatchExpectation,
    BatchPlan,
    BatchProblemError,
    apply_batch,
    quote,
)
from tests.flows.values import NESTED, PAIR, PLAIN
from tests.oracle import following, multiset
from tests.spark.server import session_of

DROP_INVALID = BatchExpectation("valid", "DROP")


@pytest.fixture
def spark(spark_server) -> Iterator:
    with session_of(spark_server) as session:
        session.conf.set("spark.sql.session.timeZone", "UTC")
        yield session


@dataclass
class Target:
    """A Delta table in a folder of its own, and the batches that were sent to it."""

    spark: Any
    folder: Path
    schema: StructType
    plan: BatchPlan
    partition_columns: tuple[str, ...] = ()
    next_batch: int = 0

    @classmethod
    def create(
        cls, spark, folder: Path, columns: dict[str, DataType], *, partitions=(), **plan: Any
    ) -> Target:
        schema = StructType([StructField(name, kind) for name, kind in columns.items()])
        target = cls(
            spark,
            folder,
            schema,
            BatchPlan(
                target=f"delta.`{folder}`",
                columns=tuple(columns),
                app_id="flow/0",
                partition_columns=partitions,
                **{"kind": "replace", **plan},
            ),
        )
        empty = spark.createDataFrame([], schema)
        # With it, a name may hold blanks.
        properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
        writer = empty.write.format("delta").partitionBy(*partitions).options(**properties)
        writer.save(str(folder))
        return target

    def frame(self, rows: list[dict]):
        values = [tuple(row[name] for name in self.schema.names) for row in rows]
        frame = self.spark.createDataFrame(values, self.schema)
        helpers = [
            f"{expectation.name} AS __millpond_expectation_{index}"
            for index, expectation in enumerate(self.plan.expectations)
        ]
        return frame.selectExpr("*", *helpers)

    def send(self, rows: list[dict], *, batch_id: int | None = None) -> None:
        number = self.next_batch if batch_id is None else batch_id
        apply_batch(self.frame(rows), number, self.plan)
        self.next_batch = max(self.next_batch, number + 1)

    def insert_by_hand(self, rows: list[dict]) -> None:
        names = [quote(name) for name in self.schema.names]
        self.frame(rows).selectExpr(*names).write.format("delta").mode("append").save(
            str(self.folder)
        )

    def rows(self) -> list[dict]:
        table = self.spark.read.format("delta").load(str(self.folder)).toArrow()
        return table.to_pylist()

    def holds(self, rows: list[dict]) -> bool:
        names = self.schema.names
        assert multiset(self.rows(), columns=names) == multiset(rows, columns=names)
        return True

    def history(self) -> list:
        return self.spark.sql(f"DESCRIBE HISTORY {self.plan.target}").collect()

    @property
    def version(self) -> int:
        return self.history()[0].version


SALES = {"k": StringType(), "v": LongType(), "seq": LongType(), "valid": BooleanType()}


@pytest.fixture
def sales(spark, tmp_path) -> Target:
    return Target.create(
        spark, tmp_path / "sales", SALES, keys=("K",), sequence="seq", expectations=(DROP_INVALID,)
    )


def sale(k: str | None, v: int, seq: int | None, *, valid: bool | None = True) -> dict:
    return {"k": k, "v": v, "seq": seq, "valid": valid}


@dataclass(frozen=True)
class Case:
    """Types of keys and sequence. Without a type the sequence is an expression, see `order`."""

    keys: tuple[DataType, ...]
    sequence: DataType | None
    is_partitioned: bool = False


CASES = {
    "text and double": Case((StringType(), DoubleType()), LongType()),
    "struct": Case((PAIR,), None),
    "timestamp and decimal": Case((TimestampType(), DecimalType(10, 2)), DoubleType()),
    "array and date": Case((ArrayType(DoubleType()), DateType()), NESTED),
    "partition": Case((StringType(), IntegerType()), TimestampNTZType(), is_partitioned=True),
}


def drawn(kind: DataType, draw: random.Random, *, nulls: bool = True) -> Any:
    if nulls and draw.random() < 0.2:
        return None
    match kind:
        case StructType():
            return {f.name: drawn(f.dataType, draw) for f in kind.fields}
        case ArrayType():
            return [drawn(kind.elementType, draw) for _ in range(draw.randrange(3))]
    # Few values, so that keys and sequences meet.
    return draw.choice(PLAIN[kind][:3])


def order(row: dict) -> Any:
    return {"seq": row["seq"], "odd": row["v"] % 2 if row["v"] % 3 else None}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_after_each_batch_the_target_holds_what_the_rule_says(spark, tmp_path, case):
    """Ties, late rows, a replay, rows by hand; nulls, NaN and -0.0 in keys and sequences."""
    draw = random.Random(str(case))
    # Names that the program's own SQL might use as well.
    names = ["Floor", "s t", "newest", "incoming"][: len(case.keys)]
    key_types = dict(zip(names, case.keys, strict=True))
    target = Target.create(
        spark,
        tmp_path / "target",
        {
            **key_types,
            "seq": case.sequence or LongType(),
            "v": LongType(),
            "valid": BooleanType(),
        },
        partitions=tuple(names[:1]) if case.is_partitioned else (),
        keys=tuple(name.upper() for name in names),
        sequence="seq" if case.sequence else "struct(seq, IF(v % 3 = 0, NULL, v % 2)) -- both",
        expectations=(DROP_INVALID,),
    )
    sequence = (lambda row: row["seq"]) if case.sequence else order
    numbers = iter(range(10_000))

    def rows(count: int) -> list[dict]:
        made = [
            {
                **{name: drawn(kind, draw) for name, kind in key_types.items()},
                "seq": drawn(case.sequence, draw, nulls=False)
                if case.sequence
                else draw.randrange(3),
                "v": next(numbers),
                "valid": draw.choice([True, True, True, False, None]),
            }
            for _ in range(count)
        ]
        if case.is_partitioned:
            # Delta takes the one for the other in a partition column.
            made = [{**row, names[0]: row[names[0]] or None} for row in made]
        return made + made[:1]

    model: list[dict] = []
    for number, count in enumerate([12, 16, 20]):
        batch = rows(count)
        target.send(batch)
        valid = [row for row in batch if row["valid"]]
        before = len(model)
        model = following(model, valid, keys=tuple(names), sequence=sequence)
        assert target.holds(model)
        commit = target.history()[0]
        told, metrics = json.loads(commit.userMetadata), commit.operationMetrics
        assert (told["batchId"], told["rowsRead"]) == (number, len(batch))
        assert told["rowsDropped"] == len(batch) - len(valid)
        inserted, deleted = (
            int(metrics[f"numTargetRows{what}"]) for what in ("Inserted", "Deleted")
        )
        assert inserted - deleted == len(model) - before
        if number == 0:
            by_hand = [{**row, "valid": True} for row in rows(6)]
            target.insert_by_hand(by_hand)
            model += by_hand
            # It was committed, so the table stays as it is.
            target.send(batch, batch_id=0)
            assert target.holds(model)


def test_an_empty_text_is_null_where_the_table_is_partitioned_by_it(spark, tmp_path):
    target = Target.create(
        spark,
        tmp_path / "target",
        SALES,
        partitions=("k",),
        keys=("k",),
        sequence="seq",
    )
    target.send([sale("", 1, 1), sale("a", 2, 1)])
    target.send([sale("", 3, 2), sale(None, 4, 2)])
    assert target.holds([sale(None, 3, 2), sale(None, 4, 2), sale("a", 2, 1)])


def test_rows_without_a_sequence_refuse_the_batch(sales):
    version = sales.version
    with pytest.raises(BatchProblemError) as caught:
        sales.send([sale("a", 1, None), sale("b", 2, None), sale("c", 3, None, valid=False)])
    told = json.loads(str(caught.value).removeprefix(PROBLEM))
    row = json.loads(told.pop("row_json"))
    assert row in ({"k": k, "v": v, "seq": None, "valid": True} for k, v in (("a", 1), ("b", 2)))
    assert told == {"problem": "null_sequence", "batch_id": 0, "rows": 2}
    assert sales.version == version


def test_a_stored_row_without_a_sequence_is_below_all_others(sales):
    sales.insert_by_hand([sale("a", 1, None), sale("b", 2, None)])
    sales.send([sale("a", 3, -5)])
    assert sales.holds([sale("a", 3, -5), sale("b", 2, None)])


def test_an_expectation_that_fails_the_update_refuses_the_batch(sales):
    sales.plan = replace(sales.plan, expectations=(BatchExpectation("valid", "FAIL"),))
    with pytest.raises(BatchProblemError) as caught:
        sales.send([sale("a", 1, 1), sale("b\n'\"", 2, 1, valid=None)])
    told = json.loads(str(caught.value).removeprefix(PROBLEM))
    row = json.loads(told.pop("row_json"))
    assert row == {"k": "b\n'\"", "v": 2, "seq": 1, "valid": None}
    assert told == {
        "problem": "expectation",
        "batch_id": 0,
        "expectation": "valid",
        "failed_rows": 1,
    }
    assert sales.holds([])


# By type of key, keys as SQL of a number.
KEYS_OF_ID = {
    "smallint": "CAST(-id AS SMALLINT)",
    "bigint": "id - 9223372036854775808",
    "double": "id / 7 - 3",
    "decimal(10,2)": "CAST(id / 7 - 3 AS DECIMAL(10, 2))",
    "quoted": "concat('\\\\', lpad(id, 5, '0'), chr(39), '${x}')",
    "long": "concat('\"', lpad(id, 5, '0'), repeat('z', 300))",
    "date": "date_add(DATE '1999-12-01', CAST(id AS INT))",
    "timestamp": "timestamp_micros(id * 3600000123 - 3600000000)",
    "timestamp_ntz": "TIMESTAMP_NTZ '2020-01-01 00:00:00.000001' + make_dt_interval(CAST(id AS INT))",
}


def test_files_without_a_key_of_the_batch_are_not_read(spark, tmp_path):
    """Those with other keys are gone: Delta would miss them if it tried."""
    folder = tmp_path / "target"
    columns = [f"{sql} AS `{kind}`" for kind, sql in KEYS_OF_ID.items()]

    def rows(start: int, end: int, sequence: int):
        return spark.range(start, end, 1, 1).selectExpr(*columns, f"{sequence}L AS seq")

    for ids in ((0, 100), (1000, 1100)):
        before = set(folder.rglob("*.parquet"))
        rows(*ids, 0).write.format("delta").mode("append").option(
            "delta.enableDeletionVectors", "true"
        ).option("delta.columnMapping.mode", "name").save(str(folder))
    for file in set(folder.rglob("*.parquet")) - before:
        file.unlink()
    for number, kind in enumerate(KEYS_OF_ID):
        plan = BatchPlan(
            kind="replace",
            target=f"delta.`{folder}`",
            columns=(*KEYS_OF_ID, "seq"),
            app_id="flow",
            keys=(kind,),
            sequence="seq",
        )
        apply_batch(rows(20, 60, number + 1), number, plan)
        history = spark.sql(f"DESCRIBE HISTORY delta.`{folder}` LIMIT 1").collect()
        assert int(history[0].operationMetrics["numTargetRowsDeleted"]) == 40, kind


def test_a_batch_is_compared_with_what_other_writers_commit_meanwhile(sales, spark_server):
    """The table is what it would be had the batch and the rows by hand come one after another."""
    sales.insert_by_hand([sale("a", 0, 0), sale("b", 0, 0)])
    batch = [sale("a", 1, 5), sale("b", 2, 5), sale("c", 3, 5)]
    by_hand = [[sale("a", 10 + i, 4 + i), sale("c", 20 + i, 6 - i)] for i in range(4)]

    def insert() -> None:
        with session_of(spark_server) as session:
            other = replace(sales, spark=session)
            for rows in by_hand:
                other.insert_by_hand(rows)

    with ThreadPoolExecutor() as threads:
        inserted = threads.submit(insert)
        sales.send(batch)
    inserted.result()
    left = iter(by_hand)
    model = [sale("a", 0, 0), sale("b", 0, 0)]
    for commit in sorted(sales.history(), key=lambda commit: commit.version)[2:]:
        if commit.operation == "MERGE":
            model = following(model, batch, keys=("k",), sequence=lambda row: row["seq"])
        else:
            model = model + next(left)
    assert next(left, None) is None
    assert sales.holds(model)


def test_the_program_travels_to_a_server_without_millpond(spark, sales, tmp_path):
    """And what it finds wrong comes back within the error of the streaming query."""
    from pyspark import cloudpickle
    from pyspark.errors import StreamingQueryException

    cloudpickle.register_pickle_by_value(batch_program)
    source = str(tmp_path / "source")

    def stream(rows: list[dict]) -> None:
        names = sales.schema.names
        sales.frame(rows).select(*names).write.format("delta").mode("append").save(source)
        query = (
            spark.readStream.format("delta")
            .load(source)
            .selectExpr("*", "valid AS __millpond_expectation_0")
            .writeStream.foreachBatch(functools.partial(apply_batch, plan=sales.plan))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    try:
        stream([sale("a", 1, 1), sale("b", 2, 2), sale("b", 2, 3, valid=False)])
        stream([sale("a", 3, 2), sale("b", 4, 1)])
        assert sales.holds([sale("a", 3, 2), sale("b", 2, 2)])
        with pytest.raises(StreamingQueryException) as caught:
            stream([sale("a", 1, None)])
    finally:
        cloudpickle.unregister_pickle_by_value(batch_program)
    text = str(caught.value).partition(PROBLEM)[2]
    told, _ = json.JSONDecoder().raw_decode(text)
    row = json.loads(told.pop("row_json"))
    assert row == {"k": "a", "v": 1, "seq": None, "valid": True}
    assert told == {"problem": "null_sequence", "batch_id": 2, "rows": 1}
    assert sales.holds([sale("a", 3, 2), sale("b", 2, 2)])


def test_append_adds_the_rows_by_name_and_once(sales):
    sales.plan = replace(sales.plan, kind="append", keys=(), sequence=None)
    turned = sales.frame([sale("a", 1, 1), sale("b", 2, 2, valid=False)])
    columns = ("valid", "seq", "k")
    plan = replace(sales.plan, columns=columns)
    apply_batch(turned.select(*columns, "__millpond_expectation_0"), 0, plan)
    sales.send([sale("a", 1, 1)], batch_id=1)
    sales.send([sale("a", 1, 1)], batch_id=1)
    sales.send([], batch_id=2)
    assert sales.holds([sale("a", None, 1), sale("a", 1, 1)])
    told = [json.loads(commit.userMetadata) for commit in sales.history()[:-1]]
    assert [(one["batchId"], one["rowsRead"], one["rowsDropped"]) for one in told] == [
        (2, 0, 0),
        (1, 1, 0),
        (0, 2, 1),
    ]
    assert told[-1]["expectations"] == [
        {"name": "valid", "action": "DROP", "passed": 1, "failed": 1}
    ]


def test_overwrite_replaces_rows_and_columns_but_not_the_properties_of_the_table(sales):
    sales.spark.sql(f"ALTER TABLE {sales.plan.target} SET TBLPROPERTIES (millpond.kept = 'yes')")
    sales.insert_by_hand([sale("old", 1, 1)])
    plan = replace(sales.plan, kind="overwrite", overwrite_schema=True, columns=("k", "doubled"))
    rows = sales.frame([sale("a", 2, 1), sale("b", 2, 2, valid=False)])
    apply_batch(rows.selectExpr("*", "v * 2.5D AS doubled"), 0, plan)
    assert sales.rows() == [{"k": "a", "doubled": 5.0}]
    properties = sales.spark.sql(f"SHOW TBLPROPERTIES {plan.target}").collect()
    kept = {row.key: row.value for row in properties}
    assert kept["millpond.kept"] == "yes"
    assert kept["delta.enableDeletionVectors"] == "true"


def test_another_flow_into_the_table_counts_its_own_batches(sales):
    sales.send([sale("a", 1, 1)])
    sales.plan = replace(sales.plan, app_id="flow/1")
    sales.send([sale("a", 2, 1)], batch_id=0)
    assert sales.holds([sale("a", 1, 1), sale("a", 2, 1)])


def test_settings_of_a_user_s_are_there_again_after_a_batch(sales):
    conf = sales.spark.conf
    conf.set(batch_program.MATERIALIZE_CONF, "none")
    sales.send([sale("a", 1, 1)])
    assert conf.get(batch_program.MATERIALIZE_CONF) == "none"
    assert conf.get(batch_program.APP_ID_CONF, None) is None


def test_a_large_batch_is_shuffled_instead_of_sent_to_every_executor(sales, monkeypatch):
    monkeypatch.setattr(batch_program, "BROADCAST_ROWS", 1)
    sales.send([sale("a", 1, 1), sale(None, 2, 1)])
    sales.send([sale("a", 3, 2), sale(None, 4, 0), sale("c", 5, 0)])
    assert sales.holds([sale("a", 3, 2), sale(None, 2, 1), sale("c", 5, 0)])
