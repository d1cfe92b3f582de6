"""Queries that are nested too deeply are refused by name and place; what is only long is read."""

import subprocess
import sys
from pathlib import Path

import pytest

from millpond.definitions import Expectation
from millpond.errors import SourceLocation
from millpond.errors.engine import InvalidExpectationError, QueryTooDeepError
from millpond.sql.depth import MAX_DEPTH, MAX_NESTED
from tests.engine.queries import empty, plan, python, sql

COMMAND = Path(sys.executable).with_name("millpond")
SPEC = "name: x\nstorage: st\nlibraries:\n  - glob: {include: transformations/**}\n"
# Each once ended the process, or took minutes.
DEEP = {
    "additions": "SELECT " + "1+" * 4_000 + "1 AS x",
    "NOT": "SELECT " + "NOT " * 5_000 + "true AS x",
    "AND": "SELECT " + " AND ".join(["1=1"] * 8_000) + " AS x",
    "parentheses": "SELECT " + "(" * 5_000 + "1" + ")" * 5_000 + " AS x",
    "UNION ALL": " UNION ALL ".join(["SELECT 1 AS x"] * 3_000),
}
LONG = {
    "UNION ALL": " UNION ALL ".join(f"SELECT {n} AS x" for n in range(900)),
    "IN": f"SELECT k FROM t WHERE k IN ({', '.join(map(str, range(5_000)))})",
    "ORs": "SELECT k FROM t WHERE " + " OR ".join(f"k = {n}" for n in range(900)),
    "WHEN": "SELECT CASE k " + " ".join(f"WHEN {n} THEN {n}" for n in range(500)) + " END x FROM t",
    "columns": "SELECT " + ", ".join(f"k AS c{n}" for n in range(2_000)) + " FROM t",
}
# What needs much of the engine's stack for each step. More of some take it a minute.
AT_THE_LIMIT = {
    "additions": "SELECT " + "id+" * (MAX_DEPTH // 2) + "1 AS x FROM range(2)",
    "NOT": "SELECT " + "NOT " * (MAX_DEPTH - 3) + "(id > 1) AS x FROM range(2)",
    "ORs": "SELECT id FROM range(2) WHERE " + " OR ".join(["id > 2"] * (MAX_DEPTH // 2)),
    "CASE": "SELECT " + "CASE WHEN true THEN " * MAX_NESTED + "1" + " END" * MAX_NESTED + " AS x",
    "calls": "SELECT " + "abs(" * MAX_NESTED + "1" + ")" * MAX_NESTED + " AS x",
    "subqueries": "SELECT * FROM (" * MAX_NESTED + "SELECT 1 AS x" + ")" * MAX_NESTED,
    "UNION ALL": " UNION ALL ".join(["SELECT 1 AS x"] * 1_000),
}


def millpond(folder, command, *queries):
    """A command on a file whose tables have these queries, in a process of its own."""
    (folder / "transformations").mkdir()
    (folder / "spark-pipeline.yml").write_text(SPEC)
    tables = (f"CREATE MATERIALIZED VIEW t{at} AS\n{query};\n" for at, query in enumerate(queries))
    (folder / "transformations" / "a.sql").write_text("".join(tables))
    return subprocess.run(
        [COMMAND, command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_a_deep_query_does_not_end_the_process(tmp_path):
    done = millpond(tmp_path, "dry-run", *DEEP.values())
    shown = done.stdout + done.stderr
    assert done.returncode == 1, shown
    assert shown.count("QUERY_TOO_DEEP") == len(DEEP), shown
    for at in range(len(DEEP)):
        assert f"transformations/a.sql:{2 * at + 2}:" in shown


def test_the_engine_has_stack_for_what_is_let_through(tmp_path):
    done = millpond(tmp_path, "run", *AT_THE_LIMIT.values())
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_long_queries_that_programs_write_are_read(engine, text):
    found = plan(engine, sql(text))
    assert engine.schema(found, empty(engine)).fields


def test_texts_in_python_are_held_to_the_same(engine, spark):
    from pyspark.sql.functions import expr

    deep = "1+" * 4_000 + "1"

    def of_text():
        return spark.sql(f"SELECT {deep} AS x")

    def of_expression():
        return spark.range(1).select(expr(deep))

    for function in (of_text, of_expression):
        with pytest.raises(QueryTooDeepError) as caught:
            engine.plan(python(function))
        assert caught.value.where.file == __file__
        assert caught.value.where.line > 1


def test_an_expectation_is_held_to_the_same(engine):
    where = SourceLocation("a.sql", 3, 1)
    deep = Expectation("e", " AND ".join(["k = 1"] * 4_000), location=where)
    with pytest.raises(InvalidExpectationError, match="nested too deeply"):
        engine.check_expectation(deep, engine.parse_schema("k INT"))


def test_a_type_that_the_engine_cannot_tell_of_is_named(engine):
    found = plan(engine, sql("SELECT " + "array(" * 60 + "1" + ")" * 60 + " AS x"))
    with pytest.raises(QueryTooDeepError, match="type is nested") as caught:
        engine.schema(found, empty(engine))
    assert caught.value.where == found.location


def test_parts_that_read_each_other_are_told_at_the_query(engine):
    ctes = ["c0 AS (SELECT 1 AS x)"] + [f"c{n} AS (SELECT * FROM c{n - 1})" for n in range(1, 400)]
    query = sql(f"WITH {', '.join(ctes)} SELECT * FROM c399")
    with pytest.raises(QueryTooDeepError, match="read, each other") as caught:
        plan(engine, query)
    assert caught.value.where == query.location
