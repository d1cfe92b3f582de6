"""The clauses between a table's columns and its query."""

from __future__ import annotations

import itertools

import pytest

CLAUSES = [
    "USING DELTA",
    "PARTITIONED BY (a, `b c`)",
    "LOCATION '/data/t'",
    "COMMENT 'it''s'",
    "TBLPROPERTIES ('k' = 'v')",
    "DEFAULT COLLATION UTF8_BINARY",
]


@pytest.mark.parametrize("order", list(itertools.permutations(CLAUSES))[::37])
def test_clauses_stand_in_any_order(order, parse_dataset):
    dataset = parse_dataset(f"CREATE STREAMING TABLE t {' '.join(order)} AS SELECT 1")
    assert dataset.partition_cols == ("a", "b c")
    assert dataset.path == "/data/t"
    assert dataset.comment == "it's"
    assert dataset.table_properties == {"k": "v"}


@pytest.mark.parametrize(
    ("clause", "columns", "auto"),
    [
        ("CLUSTER BY (a, b)", ("a", "b"), False),
        ("CLUSTER BY AUTO", (), True),
        ("CLUSTER BY NONE", (), False),
        ("cluster by (`a b`)", ("a b",), False),
    ],
)
def test_clustering(clause, columns, auto, parse_dataset):
    dataset = parse_dataset(f"CREATE STREAMING TABLE t {clause} AS SELECT 1")
    assert (dataset.cluster_by, dataset.cluster_by_auto) == (columns, auto)


def test_properties_are_kept_as_text(parse_dataset):
    dataset = parse_dataset(
        "CREATE STREAMING TABLE t TBLPROPERTIES ("
        "pipelines.reset.allowed = false, 'delta.appendOnly' = TRUE, a 1, b.c == -2.5, "
        "`d e` \"x\", f = 'y\\'z') AS SELECT 1"
    )
    assert dataset.table_properties == {
        "pipelines.reset.allowed": "false",
        "delta.appendOnly": "true",
        "a": "1",
        "b.c": "-2.5",
        "d e": "x",
        "f": "y'z",
    }


@pytest.mark.parametrize(
    ("clauses", "name", "column", "marked"),
    [
        ("COMMENT 'a' COMMENT 'b'", "DUPLICATE_CLAUSE", 38, "COMMENT"),
        ("TBLPROPERTIES (a = 1, 'a' = 2)", "DUPLICATE_CLAUSE", 48, "'a'"),
        ("PARTITIONED BY (a) CLUSTER BY (b)", "CONFLICTING_CLAUSES", 45, "CLUSTER"),
        ("CLUSTER BY AUTO PARTITIONED BY (a)", "CONFLICTING_CLAUSES", 42, "PARTITIONED"),
        ("WITH ROW FILTER f ON (a)", "SQL_CLAUSE_NOT_SUPPORTED", 26, "WITH"),
        ("USING ICEBERG", "SQL_CLAUSE_NOT_SUPPORTED", 32, "ICEBERG"),
        ("DEFAULT COLLATION UNICODE", "SQL_CLAUSE_NOT_SUPPORTED", 44, "UNICODE"),
        ("SCHEDULE EVERY 1 HOUR", "SQL_CLAUSE_NOT_SUPPORTED", 26, "SCHEDULE"),
        ("TRIGGER ON UPDATE", "SQL_CLAUSE_NOT_SUPPORTED", 26, "TRIGGER"),
        ("COMMENT a", "SQL_SYNTAX_ERROR", 34, "a"),
        ("PARTITIONED BY a", "SQL_SYNTAX_ERROR", 41, "a"),
        ("PARTITIONED BY (year(a))", "SQL_SYNTAX_ERROR", 46, "("),
        ("PARTITIONED BY ()", "SQL_SYNTAX_ERROR", 42, ")"),
        ("CLUSTER BY a", "SQL_SYNTAX_ERROR", 37, "a"),
        ("LOCATION t", "SQL_SYNTAX_ERROR", 35, "t"),
        ("TBLPROPERTIES ()", "SQL_SYNTAX_ERROR", 41, ")"),
        ("TBLPROPERTIES (a = )", "SQL_SYNTAX_ERROR", 45, ")"),
        ("TBLPROPERTIES (a. = 1)", "SQL_SYNTAX_ERROR", 44, "="),
        ("TBLPROPERTIES (a = b)", "SQL_SYNTAX_ERROR", 45, "b"),
        ("TBLPROPERTIES (a = 1 b = 2)", "SQL_SYNTAX_ERROR", 47, "b"),
        ("USING 'delta'", "SQL_SYNTAX_ERROR", 32, "'delta'"),
        ("REFRESH POLICY AUTO", "SQL_SYNTAX_ERROR", 26, "REFRESH"),
    ],
)
def test_a_wrong_clause_is_refused_where_it_goes_wrong(clauses, name, column, marked, refusal):
    text = f"CREATE STREAMING TABLE t {clauses} AS SELECT 1"
    assert refusal(text) == (name, 1, column, marked)
