"""`CREATE VIEW` and `CREATE TEMPORARY VIEW`."""

from __future__ import annotations

import pytest

from millpond.definitions import DatasetKind, ExpectationAction, FlowKind


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("CREATE VIEW", DatasetKind.VIEW),
        ("CREATE VIEW IF NOT EXISTS", DatasetKind.VIEW),
        ("CREATE TEMPORARY VIEW", DatasetKind.TEMPORARY_VIEW),
        ("CREATE TEMP VIEW", DatasetKind.TEMPORARY_VIEW),
        ("create temporary view", DatasetKind.TEMPORARY_VIEW),
        ("CREATE LIVE VIEW", DatasetKind.TEMPORARY_VIEW),
        ("CREATE STREAMING LIVE VIEW", DatasetKind.TEMPORARY_VIEW),
        ("CREATE TEMPORARY LIVE VIEW", DatasetKind.TEMPORARY_VIEW),
        ("CREATE TEMPORARY STREAMING LIVE VIEW", DatasetKind.TEMPORARY_VIEW),
    ],
)
def test_every_spelling_of_the_head_is_read(head, kind, parse):
    pipeline = parse(f"{head} v COMMENT 'x' TBLPROPERTIES ('a' = 'b') AS SELECT 1 AS a")
    (dataset,), (flow,) = pipeline.datasets, pipeline.flows
    assert dataset.kind is kind
    assert str(dataset.name) == "main.sales.v"
    assert dataset.comment == "x"
    assert dataset.table_properties == {"a": "b"}
    assert flow.kind is FlowKind.VIEW
    assert (flow.name, flow.target) == ("main.sales.v", dataset.name)
    assert flow.query.text == "SELECT 1 AS a"


def test_a_temporary_view_may_have_expectations(parse_dataset):
    dataset = parse_dataset(
        "CREATE TEMPORARY VIEW v (a COMMENT 'x', b, "
        "CONSTRAINT c EXPECT (a > 0) ON VIOLATION FAIL UPDATE) AS SELECT 1 AS a, 2 AS b"
    )
    assert [(column.name, column.comment) for column in dataset.schema] == [("a", "x"), ("b", None)]
    assert dataset.expectations[0].action is ExpectationAction.FAIL


def test_a_published_view_may_not(refusal):
    text = "CREATE VIEW v (CONSTRAINT c EXPECT (a > 0)) AS SELECT 1 AS a"
    assert refusal(text) == ("VIEW_WITH_EXPECTATION", 1, 27, "c")


def test_a_temporary_view_lies_in_no_schema(refused, parse_dataset):
    problem = refused("CREATE TEMPORARY VIEW s.v AS SELECT 1")
    assert problem.error_class == "INVALID_NAME"
    assert problem.where.column == 23
    assert problem.hint.startswith("name it v:")
    assert str(parse_dataset("CREATE TEMPORARY VIEW LIVE.v AS SELECT 1").name) == "main.sales.v"


@pytest.mark.parametrize(
    ("text", "column", "marked"),
    [
        ("CREATE VIEW v", 14, ""),
        ("CREATE VIEW v SELECT 1", 15, "SELECT"),
        ("CREATE VIEW v PARTITIONED BY (a) AS SELECT 1", 15, "PARTITIONED"),
        ("CREATE TEMPORARY VIEW v LOCATION 'x' AS SELECT 1", 25, "LOCATION"),
        ("CREATE VIEW v () AS SELECT 1", 16, ")"),
        ("CREATE VIEW v (a WRONG) AS SELECT 1", 18, "WRONG"),
    ],
)
def test_a_wrong_one_is_refused_where_it_goes_wrong(text, column, marked, refusal):
    assert refusal(text) == ("SQL_SYNTAX_ERROR", 1, column, marked)
