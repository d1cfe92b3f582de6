"""A constraint is one boolean expression over the columns of a row, and nothing else."""

import pytest

from millpond.definitions import Expectation
from millpond.errors import SourceLocation
from millpond.errors.engine import (
    InvalidExpectationError,
    InvalidSequenceError,
    QueryAnalysisError,
    UnresolvedColumnError,
    UnresolvedRoutineError,
)
from tests.engine.queries import COLUMNS

WHERE = SourceLocation("a.sql", 3, 5)


@pytest.fixture
def check(engine):
    schema = engine.parse_schema(COLUMNS)

    def check(constraint):
        engine.check_expectation(Expectation("my rule", constraint, location=WHERE), schema)

    return check


@pytest.mark.parametrize(
    "constraint",
    [
        "k > 1",
        "k == 1",
        "k = 1 AND s IS NOT NULL OR NOT v <=> k",
        "CASE WHEN k IS NOT NULL THEN v > k ELSE true END",
        "exists(xs, x -> x > 1)",
        "array_contains(xs, k)",
        "`k` IN (1, 2, 3)",
        "s RLIKE '^a;b$'",
        "s LIKE 'SELECT %' -- and why",
        "to_date(ts) >= DATE'2026-01-01'",
        "(k > 1)",
        "null",
        "K > 1",
    ],
)
def test_booleans_on_a_row_are_taken(check, constraint):
    check(constraint)


@pytest.mark.parametrize(
    ("constraint", "problem"),
    [
        ("", "is empty"),
        ("  -- nothing", "is empty"),
        ("k", "gives int, not a boolean"),
        ("'true'", "gives string, not a boolean"),
        ("k > 1; DROP TABLE t", "more than one statement"),
        ("k > 1, v > 1", "more than one expression"),
        ("(k > 1, v > 1)", "more than one expression"),
        ("k > 1) OR (v > 1", "can't be read"),
        ("k > 1 FROM t", "more than one expression"),
        ("k > 1 AS good", "gives a name"),
        ("k >", "can't be read"),
        ("s = 'x", "never closed"),
        ("*", "holds *"),
        ("k IN (SELECT 1)", "subquery"),
        ("EXISTS (SELECT 1)", "subquery"),
        ("(SELECT true)", "subquery"),
        ("count(*) > 1", "calls count, which looks at more than one row"),
        ("max(k) > 1", "calls max"),
        ("s LIKE max(s)", "calls max"),
        ("row_number() OVER (ORDER BY k) = 1", "window function"),
        ("sum(k) OVER () = 1", "window function"),
        ("explode(xs) > 1", "several rows"),
        ("read_files('/x') IS NULL", "reads from outside the row"),
    ],
)
def test_everything_else_is_refused_with_the_name_of_the_expectation(check, constraint, problem):
    with pytest.raises(InvalidExpectationError, match="'my rule'") as caught:
        check(constraint)
    assert problem in caught.value.what
    assert caught.value.where == WHERE


def test_python_functions_are_refused(engine, spark, check):
    spark.udf.register("is_good", lambda _: True, "BOOLEAN")
    with pytest.raises(InvalidExpectationError, match="Python function is_good"):
        check("Is_Good(k)")


def test_unknown_names_are_refused_with_the_name_of_the_expectation(check):
    with pytest.raises(UnresolvedColumnError, match="'my rule' names the column vv") as caught:
        check("vv > 1")
    assert caught.value.hint == "did you mean v?"
    with pytest.raises(UnresolvedRoutineError, match="'my rule' calls the function no_such"):
        check("no_such(k)")


def test_a_sequence_has_the_type_of_its_expression(engine):
    from pyspark.sql import functions as sf

    schema = engine.parse_schema(COLUMNS)
    assert engine.sequence_type("ts", schema).simpleString() == "timestamp"
    assert engine.sequence_type("k + 1", schema).simpleString() == "int"
    found = engine.sequence_type(sf.struct("ts", "k"), schema)
    assert found.simpleString() == "struct<ts:timestamp,k:int>"
    with pytest.raises(InvalidSequenceError, match="nope"):
        engine.sequence_type("nope", schema)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("k desc", "gives a name"),
        ("max(k)", "calls max"),
        ("explode(array(k))", "several rows"),
        ("(SELECT 1)", "subquery"),
        ("row_number() OVER (ORDER BY k)", "window function"),
        ("k, ts", "more than one expression"),
    ],
)
def test_a_sequence_that_is_not_one_value_of_a_row_is_refused(engine, text, problem):
    with pytest.raises(InvalidSequenceError, match=problem):
        engine.sequence_type(text, engine.parse_schema(COLUMNS))


def test_columns_that_are_not_one_value_of_a_row_are_refused_as_a_sequence(engine, spark):
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    schema = engine.parse_schema(COLUMNS)
    for column, problem in [
        (sf.col("k").desc(), "direction"),
        (sf.max("k") + 1, "calls max"),
        (sf.explode(sf.array("k")), "several rows"),
        (sf.row_number().over(Window.partitionBy("k").orderBy("k")), "window function"),
        (sf.expr("max(k)"), "calls max"),
    ]:
        with pytest.raises(InvalidSequenceError, match=problem):
            engine.sequence_type(column, schema)


@pytest.mark.parametrize("text", ["a INTT", "a", "INT", "a INT,", "a INT; b INT"])
def test_columns_that_can_not_be_read_are_refused(engine, text):
    with pytest.raises(QueryAnalysisError):
        engine.parse_schema(text)


def test_columns_are_read_as_spark_does(engine):
    found = engine.parse_schema("a INT NOT NULL COMMENT 'x', `b c` ARRAY<STRUCT<d: DECIMAL(10,2)>>")
    assert [field.nullable for field in found] == [False, True]
    assert found["b c"].dataType.simpleString() == "array<struct<d:decimal(10,2)>>"
