"""Reads are bound to inputs: tables of any path, plain files, other plans, and no rows."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from millpond.definitions import Expectation, ExpectationAction
from millpond.engine.protocol import DeltaInput, EmptyInput, ParquetInput, PlanInput
from millpond.errors.engine import (
    CyclicViewError,
    QueryAnalysisError,
    UnsupportedReadError,
)
from millpond.errors.flows import ExpectationViolationError
from tests.engine.queries import plan, python, rows, sql, tables

ODD = [
    "plain",
    "a b",
    "a%20b",
    "a%2Eb",
    "a[b]c",
    "a*b",
    "a?b",
    "a#b",
    "a~b",
    "a+b=c",
    "ä€",
    "a'b\"c",
    "{a}",
]


def staged(engine, folder, query, binder):
    batch = engine.stage(plan(engine, query, binder), binder, folder=folder)
    return batch, rows(batch)


@pytest.mark.parametrize("name", ODD)
def test_delta_tables_are_read_whatever_their_folder_is_called(engine, tmp_path, name):
    made = tmp_path / "made"
    data = pa.table({"k": [1, 2], "p": ["x y", "50%"]})
    write_deltalake(made, data, partition_by=["p"])
    write_deltalake(made, pa.table({"k": [3], "p": ["z"]}), mode="append")
    path = tmp_path / "store" / name
    path.parent.mkdir()
    made.rename(path)
    query = sql("SELECT k, p FROM t")
    _, newest = staged(engine, tmp_path / "a", query, lambda _: DeltaInput(str(path)))
    assert newest == [(1, "x y"), (2, "50%"), (3, "z")]
    _, first = staged(engine, tmp_path / "b", query, lambda _: DeltaInput(str(path), version=0))
    assert first == [(1, "x y"), (2, "50%")]


def test_a_version_may_be_asked_for_in_the_query(engine, tmp_path):
    write_deltalake(tmp_path / "t", pa.table({"k": [1]}))
    write_deltalake(tmp_path / "t", pa.table({"k": [2]}), mode="append")

    def bind(_read):
        return DeltaInput(str(tmp_path / "t"))

    _, found = staged(engine, tmp_path / "a", sql("SELECT k FROM t VERSION AS OF 0"), bind)
    assert found == [(1,)]
    with pytest.raises(UnsupportedReadError, match="version"):
        staged(engine, tmp_path / "b", sql("SELECT k FROM t VERSION AS OF 'x'"), bind)


@pytest.mark.parametrize("name", ODD)
def test_parquet_files_are_read_whatever_they_are_called(engine, tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    path = folder / f"{name}.parquet"
    pq.write_table(pa.table({"k": [1]}), path)
    pq.write_table(pa.table({"k": [2]}), folder / "other.parquet")
    schema = engine.parse_schema("k BIGINT")
    query = sql("SELECT k FROM STREAM t")
    _, found = staged(engine, tmp_path / "out", query, lambda _: ParquetInput((str(path),), schema))
    assert found == [(1,)]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [("true", ["1.5", "1.5", "nan"]), ("isnan(k)", ["nan"]), ("k > 2", ["nan"])],
)
def test_nan_is_read_although_statistics_leave_it_out(engine, tmp_path, kind, condition, expected):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"k": pa.array([1.5, float("nan"), 1.5], kind)}), path)
    schema = engine.parse_schema("k FLOAT" if kind == pa.float32() else "k DOUBLE")
    query = sql(f"SELECT k FROM STREAM t WHERE {condition}")
    _, found = staged(engine, tmp_path / "out", query, lambda _: ParquetInput((str(path),), schema))
    assert sorted(str(row[0]) for row in found) == expected


def test_a_column_that_a_file_lacks_is_null(engine, tmp_path):
    pq.write_table(pa.table({"k": [1], "extra": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"v": ["x"], "k": [2]}), tmp_path / "b.parquet")
    schema = engine.parse_schema("k BIGINT, v STRING, n STRUCT<x: INT>")
    files = (str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet"))
    query = sql("SELECT k, v, n FROM t")
    _, found = staged(engine, tmp_path / "out", query, lambda _: ParquetInput(files, schema))
    assert found == [(1, None, None), (2, "x", None)]


def test_no_files_and_empty_inputs_give_no_rows_and_the_columns(engine, tmp_path):
    schema = engine.parse_schema("k BIGINT, v DECIMAL(10,2)")
    for number, given in enumerate([EmptyInput(schema), ParquetInput((), schema)]):
        folder = tmp_path / str(number)
        batch, found = staged(engine, folder, sql("SELECT * FROM t"), lambda _, g=given: g)
        assert found == []
        assert batch.schema == schema
        assert batch.files == ()


def test_views_of_views_are_put_in_place(engine, spark, tmp_path):
    base = tables(engine, tmp_path, t=[{"k": 1, "v": 10}, {"k": 2, "v": 20}])
    first = plan(engine, python(lambda: spark.readStream.table("t").where("k > 1")), base)
    second = plan(engine, sql("SELECT first.k, v + 1 AS v FROM STREAM(first)"), base)
    inputs = {"first": PlanInput(first), "second": PlanInput(second)}

    def bind(read):
        return inputs.get(read.name[-1]) or base(read)

    def function():
        a, b = spark.readStream.table("second"), spark.table("first")
        return a.join(b, a["k"] == b["k"]).select(a["k"], a["v"], b["v"].alias("w"))

    _, found = staged(engine, tmp_path / "out", python(function), bind)
    assert found == [(2, 21, 20)]


def test_a_views_expectations_hold_for_its_readers(engine, tmp_path):
    base = tables(engine, tmp_path, t=[{"k": 1}, {"k": 2}, {"k": None}])
    view = plan(engine, sql("SELECT k FROM STREAM t"), base)

    def read(folder, *expectations):
        def bind(read):
            is_view = read.name == ("view",)
            return PlanInput(view, expectations=expectations) if is_view else base(read)

        return staged(engine, tmp_path / folder, sql("SELECT k FROM STREAM view"), bind)[1]

    def rule(constraint, action):
        return Expectation("my rule", constraint, action)

    assert read("a", rule("k > 1", ExpectationAction.WARN)) == [(1,), (2,), (None,)]
    assert read("b", rule("k > 1", ExpectationAction.DROP)) == [(2,)]
    assert read("c", rule("coalesce(k, 9) > 0", ExpectationAction.FAIL)) == [(1,), (2,), (None,)]
    with pytest.raises(
        ExpectationViolationError, match="the view view does not meet the expectation 'my rule'"
    ) as raised:
        read("d", rule("k > 1 AND 'é\"\\n' <> ''", ExpectationAction.FAIL))
    assert raised.value.expectation == "my rule"
    assert "k > 1 AND 'é\"\\n' <> ''" in str(raised.value)
    assert "expect_or_drop" in raised.value.hint


def test_views_that_read_each_other_are_refused(engine):
    views = {}

    def bind(read):
        return PlanInput(views[read.name[-1]])

    views["a"] = engine.plan(sql("SELECT * FROM b"))
    views["b"] = engine.plan(sql("SELECT * FROM a"))
    with pytest.raises(CyclicViewError, match="reads itself"):
        engine.schema(views["a"], bind)


def test_each_read_is_bound_by_itself(engine, tmp_path):
    stream = tables(engine, tmp_path, t=[{"k": 2}])
    whole = tables(engine, tmp_path / ".." / tmp_path.name, u=[{"k": 1}, {"k": 2}, {"k": 3}])

    def bind(read):
        return stream(read) if read.streaming else whole(TableOf("u"))

    text = "SELECT n.k, o.k AS other FROM STREAM(s.t) n JOIN s.t o ON o.k >= n.k"
    _, found = staged(engine, tmp_path / "out", sql(text), bind)
    assert found == [(2, 2), (2, 3)]


class TableOf:
    def __init__(self, name):
        self.name = (name,)


def test_qualifiers_of_every_length_work(engine, tmp_path):
    base = tables(engine, tmp_path, t=[{"k": 1, "n": {"x": 5}}], u=[{"k": 1, "v": 7}])
    text = (
        "SELECT t.k, sales.t.n.x, u.v AS w, main.sales.u.v FROM main.sales.u "
        "JOIN STREAM(sales.t) USING (k)"
    )
    _, found = staged(engine, tmp_path / "a", sql(text), base)
    assert found == [(1, 5, 7, 7)]


def test_columns_of_a_table_can_be_qualified_in_python(engine, spark, tmp_path):
    base = tables(engine, tmp_path, t=[{"k": 1}])
    query = python(lambda: spark.readStream.table("s.t").select("t.k"))
    assert staged(engine, tmp_path / "a", query, base)[1] == [(1,)]


def test_a_table_that_is_not_there_is_an_error(engine, tmp_path):
    found = engine.plan(sql("SELECT k FROM t"))
    with pytest.raises(QueryAnalysisError):
        engine.schema(found, lambda _: DeltaInput(str(tmp_path / "missing")))
