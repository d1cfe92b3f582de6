"""`CREATE STREAMING TABLE`."""

from __future__ import annotations

import pytest

from millpond.definitions import DatasetKind, FlowKind, Language


def test_a_table_with_a_query_has_an_append_flow_of_its_own_name(parse):
    pipeline = parse("CREATE STREAMING TABLE t AS SELECT * FROM STREAM(s);")
    (dataset,), (flow,) = pipeline.datasets, pipeline.flows
    assert str(dataset.name) == "main.sales.t"
    assert dataset.kind is DatasetKind.STREAMING_TABLE
    assert dataset.schema is None
    assert not dataset.private
    assert (flow.name, flow.target, flow.kind) == ("main.sales.t", dataset.name, FlowKind.APPEND)
    assert flow.language is Language.SQL
    assert not flow.once
    assert flow.query.text == "SELECT * FROM STREAM(s)"
    assert flow.query.location.column == 29
    assert (flow.query.catalog, flow.query.schema) == ("main", "sales")
    assert (dataset.location.line, dataset.location.column) == (1, 24)


def test_a_table_without_a_query_has_no_flow(parse):
    pipeline = parse("CREATE STREAMING TABLE t (a INT) COMMENT 'x';")
    assert len(pipeline.datasets) == 1
    assert pipeline.flows == ()


@pytest.mark.parametrize(
    ("head", "private"),
    [
        ("CREATE STREAMING TABLE", False),
        ("CREATE OR REFRESH STREAMING TABLE", False),
        ("CREATE STREAMING LIVE TABLE", False),
        ("CREATE OR REFRESH STREAMING LIVE TABLE", False),
        ("CREATE STREAMING TABLE IF NOT EXISTS", False),
        ("CREATE PRIVATE STREAMING TABLE", True),
        ("CREATE OR REFRESH PRIVATE STREAMING TABLE", True),
        ("CREATE TEMPORARY STREAMING TABLE", True),
        ("CREATE OR REFRESH TEMPORARY STREAMING LIVE TABLE", True),
        ("create or Refresh\n/* x */ streaming -- y\n table", False),
    ],
)
def test_every_spelling_of_the_head_is_read(head, private, parse_dataset):
    dataset = parse_dataset(f"{head} t AS SELECT * FROM STREAM s")
    assert dataset.kind is DatasetKind.STREAMING_TABLE
    assert dataset.private is private


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("t", "main.sales.t"),
        ("other.t", "main.other.t"),
        ("c.other.t", "c.other.t"),
        ("LIVE.t", "main.sales.t"),
        ("live.`T x`", "main.sales.`T x`"),
        ("`a.b`.`c``d`", "main.`a.b`.`c``d`"),
        ("IDENTIFIER('c.s.t')", "c.s.t"),
        ("IDENTIFIER(:target)", "main.x.y"),
        ("IF", "main.sales.IF"),
        ("LIVE.s.t", "LIVE.s.t"),
        ("c . s /* x */ . t", "c.s.t"),
    ],
)
def test_names_are_filled_in_and_unquoted(written, expected, parse_dataset):
    dataset = parse_dataset(f"CREATE STREAMING TABLE {written} AS SELECT 1", target="x.y")
    assert str(dataset.name) == expected


@pytest.mark.parametrize(
    ("written", "name", "column", "marked"),
    [
        ("a.b.c.d", "INVALID_NAME", 24, "a"),
        ("``", "INVALID_NAME", 24, "``"),
        ("'t'", "SQL_SYNTAX_ERROR", 24, "'t'"),
        ("my-table", "SQL_SYNTAX_ERROR", 26, "-"),
        ("a..b", "SQL_SYNTAX_ERROR", 26, "."),
        ("(a INT)", "SQL_SYNTAX_ERROR", 24, "("),
        ("IDENTIFIER('a..b')", "INVALID_NAME", 35, "'a..b'"),
        ("IDENTIFIER(a)", "SQL_SYNTAX_ERROR", 35, "a"),
    ],
)
def test_what_is_no_name_is_refused(written, name, column, marked, refusal):
    found = refusal(f"CREATE STREAMING TABLE {written} AS SELECT 1")
    assert found == (name, 1, column, marked)


@pytest.mark.parametrize("start", ["SELECT 1", "WITH a AS (SELECT 1) SELECT * FROM a", "FROM s"])
def test_a_query_may_start_in_any_way(start, parse_flow):
    assert parse_flow(f"CREATE STREAMING TABLE t AS {start}").query.text == start


@pytest.mark.parametrize("start", ["TABLE s", "VALUES (1), (2)", "(SELECT 1) UNION ALL (SELECT 2)"])
def test_a_query_may_be_no_select(start, parse_flow):
    assert parse_flow(f"CREATE STREAMING TABLE t AS {start}").query.text == start


def test_reader_options_stay_a_part_of_the_query(parse_flow):
    query = "SELECT * FROM STREAM(s) WITH (SKIPCHANGECOMMITS, 'maxFilesPerTrigger' = '2')"
    assert parse_flow(f"CREATE STREAMING TABLE t AS {query};").query.text == query


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("CREATE STREAMING TABLE t AS", (28, "")),
        ("CREATE STREAMING TABLE t AS SELEC 1", (29, "SELEC")),
        ("CREATE STREAMING TABLE t SELECT 1", (26, "SELECT")),
        ("CREATE STREAMING t AS SELECT 1", (18, "t")),
        ("CREATE STREAMING TABLE IF NOT t AS SELECT 1", (31, "t")),
        ("CREATE STREAMING TABLE t FLO INSERT BY NAME SELECT 1", (26, "FLO")),
    ],
)
def test_a_wrong_tail_is_refused_where_it_goes_wrong(text, place, refusal):
    column, marked = place
    assert refusal(text) == ("SQL_SYNTAX_ERROR", 1, column, marked)


def test_the_expected_words_are_named(refused):
    problem = refused("CREATE STREAMING TABLE t SELECT 1")
    assert problem.what == "Found SELECT, expected (, a clause, FLOW, AS or ;."


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("CREATE STREAMING TABLE t FLOW INSERT BY NAME AS SELECT 1", "AS"),
        ("CREATE STREAMING TABLE t FLOW REPLACE USING (k) SEQUENCE BY s BY NAME AS SELECT 1", "AS"),
        ("CREATE STREAMING TABLE t AS FLOW INSERT BY NAME SELECT 1", "FLOW"),
        ("CREATE STREAMING TABLE t AS INSERT BY NAME SELECT 1", "INSERT"),
        ("CREATE STREAMING TABLE t AS REPLACE USING (k) SEQUENCE BY s BY NAME SELECT 1", "REPLACE"),
    ],
)
def test_flow_and_as_exclude_each_other(text, marked, refusal):
    name, line, column, found = refusal(text)
    assert (name, line, found) == ("FLOW_AND_AS_QUERY", 1, marked)
    assert column == text.index(f" {marked} ") + 2 if marked != "FLOW" else 29
