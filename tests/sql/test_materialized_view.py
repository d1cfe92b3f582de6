"""`CREATE MATERIALIZED VIEW`."""

from __future__ import annotations

import pytest

from millpond.definitions import DatasetKind, FlowKind


@pytest.mark.parametrize(
    ("head", "private"),
    [
        ("CREATE MATERIALIZED VIEW", False),
        ("CREATE OR REFRESH MATERIALIZED VIEW", False),
        ("CREATE MATERIALIZED VIEW IF NOT EXISTS", False),
        ("CREATE OR REFRESH PRIVATE MATERIALIZED VIEW", True),
        ("CREATE TEMPORARY MATERIALIZED VIEW", True),
        ("CREATE LIVE TABLE", False),
        ("CREATE OR REFRESH LIVE TABLE", False),
        ("CREATE TEMPORARY LIVE TABLE", True),
        ("create or refresh materialized view", False),
    ],
)
def test_every_spelling_of_the_head_is_read(head, private, parse):
    pipeline = parse(f"{head} m AS SELECT count(*) AS n FROM t")
    (dataset,), (flow,) = pipeline.datasets, pipeline.flows
    assert dataset.kind is DatasetKind.MATERIALIZED_VIEW
    assert dataset.private is private
    assert flow.kind is FlowKind.MATERIALIZED_VIEW
    assert flow.name == str(dataset.name) == "main.sales.m"
    assert flow.query.text == "SELECT count(*) AS n FROM t"


def test_columns_clauses_and_expectations(parse_dataset):
    dataset = parse_dataset(
        "CREATE MATERIALIZED VIEW m (a INT COMMENT 'x', b, CONSTRAINT c EXPECT (a > 0))\n"
        "REFRESH POLICY AUTO PARTITIONED BY (b) COMMENT 'y' USING DELTA AS SELECT 1 AS a, 2 AS b"
    )
    assert [(c.name, c.type_text, c.comment) for c in dataset.schema] == [
        ("a", "INT", "x"),
        ("b", "", None),
    ]
    assert dataset.partition_cols == ("b",)
    assert dataset.comment == "y"
    assert [e.constraint for e in dataset.expectations] == ["a > 0"]


@pytest.mark.parametrize("policy", ["AUTO", "INCREMENTAL", "FULL"])
def test_a_policy_that_changes_nothing_is_accepted(policy, parse_dataset):
    assert parse_dataset(f"CREATE MATERIALIZED VIEW m REFRESH POLICY {policy} AS SELECT 1")


@pytest.mark.parametrize(
    ("text", "name", "column", "marked"),
    [
        ("CREATE MATERIALIZED VIEW m", "SQL_SYNTAX_ERROR", 27, ""),
        ("CREATE MATERIALIZED TABLE m AS SELECT 1", "SQL_SYNTAX_ERROR", 21, "TABLE"),
        ("CREATE MATERIALIZED VIEW m AS m2", "SQL_SYNTAX_ERROR", 31, "m2"),
        ("CREATE MATERIALIZED VIEW m FLOW INSERT BY NAME SELECT 1", "SQL_SYNTAX_ERROR", 28, "FLOW"),
        (
            "CREATE MATERIALIZED VIEW m REFRESH POLICY INCREMENTAL STRICT AS SELECT 1",
            "SQL_CLAUSE_NOT_SUPPORTED",
            43,
            "INCREMENTAL",
        ),
        (
            "CREATE MATERIALIZED VIEW m REFRESH POLICY NEVER AS SELECT 1",
            "SQL_SYNTAX_ERROR",
            43,
            "NEVER",
        ),
    ],
)
def test_a_wrong_one_is_refused_where_it_goes_wrong(text, name, column, marked, refusal):
    assert refusal(text) == (name, 1, column, marked)
