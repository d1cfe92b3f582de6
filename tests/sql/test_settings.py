"""`SET` and `USE`: in force for the statements below them, in this file."""

from __future__ import annotations

import pytest

VIEW = "CREATE VIEW v AS SELECT 1;"


@pytest.mark.parametrize(
    ("use", "name"),
    [
        ("", "main.sales.v"),
        ("USE CATALOG c;", "c.default.v"),
        ("USE CATALOG c; USE SCHEMA s;", "c.s.v"),
        ("USE SCHEMA s; USE CATALOG c;", "c.default.v"),
        ("USE SCHEMA s;", "main.s.v"),
        ("USE DATABASE s;", "main.s.v"),
        ("USE NAMESPACE s;", "main.s.v"),
        ("USE s;", "main.s.v"),
        ("USE c.s;", "c.s.v"),
        ("USE SCHEMA c.s;", "c.s.v"),
        ("use `my schema`;", "main.`my schema`.v"),
        ("USE CATALOG 'c'; USE SCHEMA 's';", "c.s.v"),
        ("USE schema;", "main.schema.v"),
        ("USE CATALOG IDENTIFIER(:target);", "x.default.v"),
        ("SET CATALOG c;", "c.default.v"),
    ],
)
def test_use_completes_the_names_below_it(use, name, parse):
    (dataset,) = parse(use + VIEW, target="x").datasets
    assert str(dataset.name) == name


def test_use_holds_for_queries_and_until_the_next(parse):
    first, second = parse(f"USE a.b; {VIEW} USE c; CREATE VIEW w AS SELECT 1;").flows
    assert (first.query.catalog, first.query.schema) == ("a", "b")
    assert (second.query.catalog, second.query.schema) == ("a", "c")
    assert second.name == "a.c.w"


def test_one_file_does_not_change_the_next(parse):
    parse("USE a.b; SET x = 1;")
    assert str(parse(VIEW).datasets[0].name) == "main.sales.v"


def test_settings_reach_the_flows_below_them(parse):
    first, second = parse(
        "SET spark.sql.ansi.enabled = false;\n"
        "SET pipelines.trigger.interval='10 seconds'; SET mine = 1;\n"
        f"{VIEW} SET spark.sql.ansi.enabled=true; CREATE STREAMING TABLE t AS SELECT 1;"
    ).flows
    assert first.spark_conf == {
        "spark.sql.ansi.enabled": "false",
        "pipelines.trigger.interval": "10 seconds",
    }
    assert second.spark_conf["spark.sql.ansi.enabled"] == "true"


@pytest.mark.parametrize(
    ("text", "name", "column", "marked"),
    [
        ("USE", "SQL_SYNTAX_ERROR", 4, ""),
        ("USE a.b.c", "SQL_SYNTAX_ERROR", 10, ""),
        ("USE a b", "SQL_SYNTAX_ERROR", 7, "b"),
        ("USE CATALOG a.b", "SQL_SYNTAX_ERROR", 16, ""),
        ("USE CATALOG 1.5", "SQL_SYNTAX_ERROR", 13, "1.5"),
        ("USE SCHEMA a b", "SQL_SYNTAX_ERROR", 14, "b"),
        ("USE ``", "INVALID_NAME", 5, "``"),
        ("SET", "SQL_SYNTAX_ERROR", 4, ""),
        ("SET a", "SQL_SYNTAX_ERROR", 6, ""),
        ("SET a =", "SQL_SYNTAX_ERROR", 8, ""),
        ("SET a b = 1", "SQL_SYNTAX_ERROR", 7, "b"),
        ("SET = 1", "SQL_SYNTAX_ERROR", 5, "="),
        ("SET TIME ZONE 'UTC'", "SQL_STATEMENT_NOT_SUPPORTED", 1, "SET"),
        ("SET VAR a = 1", "SQL_STATEMENT_NOT_SUPPORTED", 1, "SET"),
    ],
)
def test_a_wrong_one_is_refused_where_it_goes_wrong(text, name, column, marked, refusal):
    assert refusal(text) == (name, 1, column, marked)
