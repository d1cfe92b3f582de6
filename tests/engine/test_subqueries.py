"""Subqueries in expressions over a stream: those that are accepted give what DuckDB gives."""

import random

import duckdb
import pyarrow as pa
import pytest

from millpond.errors.engine import QueryAnalysisError
from tests.engine.queries import empty, plan, rows, sql, tables

CONDITIONS = [
    "k IN (SELECT k FROM u)",
    "k NOT IN (SELECT k FROM u)",
    "NOT (k IN (SELECT k FROM u WHERE v > 1)) AND v > 0",
    "k IN (SELECT k FROM u) OR v IN (SELECT v FROM u)",
    "k IN (SELECT k FROM u) AND v NOT IN (SELECT v FROM w)",
    "v < 1 OR (k IN (SELECT k FROM u) AND v > 2)",
    "(k, v) IN (SELECT k, v FROM u)",
    "k IN (SELECT k FROM u WHERE u.v = t.v)",
    "k IN (SELECT max(k) FROM u GROUP BY v)",
    "k IN (SELECT k FROM u UNION SELECT v FROM w)",
    "k IN (SELECT k FROM u WHERE false)",
    "k NOT IN (SELECT k FROM u WHERE false)",
    "EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
    "NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.v > t.v)",
    "v > 3 OR NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
    "EXISTS (SELECT k FROM u WHERE u.k = t.k GROUP BY k HAVING count(*) > 1)",
    "EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND EXISTS (SELECT 1 FROM w WHERE w.k = u.v))",
    "v > (SELECT avg(v) FROM u)",
    "v >= (SELECT count(*) FROM u WHERE u.k = t.k)",
    "coalesce((SELECT max(v) FROM u WHERE u.k = t.k), 9) > 3",
]
VALUES = [
    "(SELECT max(v) FROM u)",
    "(SELECT count(*) FROM u WHERE u.k = t.k)",
    "(SELECT sum(v) FROM u WHERE u.k = t.k AND u.v > 1)",
    "(SELECT v FROM u WHERE false)",
    "EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
    "CASE WHEN NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k) THEN 'none' ELSE 'some' END",
]
QUERIES = [
    *(f"SELECT k, v FROM STREAM t WHERE {condition}" for condition in CONDITIONS),
    *(f"SELECT k, v, {value} AS x FROM STREAM t" for value in VALUES),
]


def some_rows(draw, count):
    def value():
        return draw.choice([None, 0, 1, 2, 3, 4])

    return pa.table(
        {name: pa.array([value() for _ in range(count)], pa.int32()) for name in ("k", "v")}
    )


@pytest.mark.parametrize("text", QUERIES)
def test_accepted_subqueries_are_right_with_nulls_and_without_rows(engine, tmp_path, text):
    draw = random.Random(text)
    for number, others in enumerate((8, 6, 0)):
        given = {
            "t": some_rows(draw, 12),
            "u": some_rows(draw, others),
            "w": some_rows(draw, 4),
        }
        folder = tmp_path / str(number)
        folder.mkdir()
        binder = tables(engine, folder, **given)
        staged = engine.stage(plan(engine, sql(text), binder), binder, folder=folder / "staged")
        with duckdb.connect() as oracle:
            for name, table in given.items():
                oracle.register(name, table)
            expected = oracle.execute(text.replace("STREAM ", "")).fetchall()
        assert rows(staged) == sorted(expected, key=repr)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("SELECT (SELECT v FROM u WHERE u.k = t.k) AS x FROM STREAM t", "SELECT v"),
        ("SELECT (SELECT max(v) FROM u WHERE u.k < t.k) AS x FROM STREAM t", "SELECT max"),
        ("SELECT DISTINCT k, (SELECT v FROM u WHERE u.k = t.k) AS x FROM STREAM t", "SELECT v"),
        (
            "SELECT k FROM STREAM t WHERE k NOT IN (SELECT k FROM u WHERE u.v = t.v)",
            "SELECT k FROM u",
        ),
    ],
)
def test_a_subquery_that_the_engine_can_not_compute_is_found_before_the_run(engine, text, marked):
    with pytest.raises(QueryAnalysisError, match="can't compute a subquery") as caught:
        engine.schema(plan(engine, sql(text)), empty(engine))
    assert text[caught.value.where.column - 1 :].startswith(marked)
