"""A file is split at `;`, and at a definition whose `;` was forgotten."""

from __future__ import annotations

import pytest

from millpond.sql import parse_file


def test_a_semicolon_in_a_string_name_or_comment_ends_nothing(parse_flow):
    query = "SELECT ';' AS `a;b`, \";\" /* ; */ -- ;\n, 'it\\';s' FROM t"
    assert parse_flow(f"CREATE VIEW v AS {query};").query.text == query


def test_empty_statements_and_comments_alone_are_nothing(parse):
    assert parse(";;  -- x\n; /* y */ ;").datasets == ()
    assert parse("").datasets == ()
    assert parse("-- only a comment").datasets == ()


def test_the_last_semicolon_may_be_missing(parse_flow):
    assert parse_flow("CREATE VIEW v AS SELECT 1 -- end").query.text == "SELECT 1"


@pytest.mark.parametrize(
    "second",
    [
        "CREATE STREAMING TABLE b AS SELECT 1",
        "CREATE OR REFRESH STREAMING TABLE b AS SELECT 1",
        "create materialized view b as select 1",
        "CREATE TEMPORARY VIEW b AS SELECT 1",
        "CREATE VIEW b AS SELECT 1",
        "CREATE PRIVATE STREAMING TABLE b AS SELECT 1",
        "CREATE VIEW s.b AS SELECT 1",
        "CREATE VIEW c.s.b AS SELECT 1",
        "CREATE FLOW b AS INSERT INTO t BY NAME SELECT 1",
        "CREATE FLOW b COMMENT 'x' AS INSERT INTO t BY NAME SELECT 1",
    ],
)
def test_a_forgotten_semicolon_is_found_and_both_statements_are_read(second):
    text = f"CREATE VIEW a AS SELECT 1\n{second};"
    pipeline, (problem,) = parse_file(text, file="a.sql", catalog="c", schema="s", configuration={})
    assert problem.error_class == "SQL_SYNTAX_ERROR"
    assert (problem.where.line, problem.where.column) == (2, 1)
    assert "; at the end of the statement before" in problem.hint
    assert [flow.name for flow in pipeline.flows] == ["c.s.a", "c.s.b"]


def test_a_forgotten_semicolon_after_set_is_found(problems):
    assert problems("SET a = 1\nCREATE VIEW v AS SELECT 1") == [
        ("SQL_SYNTAX_ERROR", 2, 1, "CREATE")
    ]


def test_create_as_a_column_of_a_query_is_left_alone(parse_flow):
    query = "SELECT create, view FROM t WHERE create OR refresh"
    assert parse_flow(f"CREATE VIEW v AS {query}").query.text == query


@pytest.mark.parametrize(
    ("opening", "kind"),
    [("'", "string"), ('"', "string"), ("`", "quoted name"), ("/*", "comment")],
)
def test_what_never_ends_is_one_problem_at_its_start(opening, kind):
    text = f"CREATE VIEW a AS SELECT 1;\nCREATE VIEW b AS SELECT {opening}x;\nCREATE VIEW c AS SELECT 1;"
    pipeline, (problem,) = parse_file(text, file="a.sql", catalog="c", schema="s", configuration={})
    assert problem.error_class == "SQL_SYNTAX_ERROR"
    assert problem.what == f"The {kind} that begins here never ends."
    assert (problem.where.line, problem.where.column) == (2, 25)
    assert [flow.name for flow in pipeline.flows] == ["c.s.a"]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "INSERT INTO t VALUES (1)",
        "DROP TABLE t",
        "REFRESH STREAMING TABLE t",
        "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')",
        "TRUNCATE TABLE t",
        "OPTIMIZE t",
        "MERGE INTO t USING s ON TRUE WHEN MATCHED THEN DELETE",
        "CREATE TABLE t (a INT)",
        "CREATE TABLE t FLOW INSERT BY NAME SELECT 1",
        "CREATE FUNCTION f() RETURNS INT RETURN 1",
        "CREATE SCHEMA s",
    ],
)
def test_statements_that_define_nothing_are_refused_at_their_start(statement, refusal):
    name, line, column, marked = refusal(f"\n  {statement};")
    assert (name, line, column) == ("SQL_STATEMENT_NOT_SUPPORTED", 2, 3)
    assert marked == statement.split()[0]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("CREAT VIEW v AS SELECT 1", (1, 1, "CREAT")),
        ("CREATE STREMING TABLE t", (1, 8, "STREMING")),
        ("CREATE OR REPLACE STREAMING TABLE t", (1, 11, "REPLACE")),
        ("CREATE OR REFRESH VIEW v AS SELECT 1", (1, 19, "VIEW")),
        ("CREATE OR REFRESH FLOW f AS INSERT INTO t BY NAME SELECT 1", (1, 19, "FLOW")),
        ("CREATE PRIVATE VIEW v AS SELECT 1", (1, 16, "VIEW")),
        ("CREATE PRIVATE TABLE v AS SELECT 1", (1, 16, "TABLE")),
        ("CREATE TEMPORARY FLOW f AS INSERT INTO t BY NAME SELECT 1", (1, 18, "FLOW")),
        ("CREATE STREAMING VIEW v AS SELECT 1", (1, 8, "STREAMING")),
        ("CREATE", (1, 7, "")),
        ("CREATE\n;", (2, 1, ";")),
        ("42", (1, 1, "42")),
        ("`CREATE` VIEW v AS SELECT 1", (1, 1, "`CREATE`")),
    ],
)
def test_a_wrong_head_is_refused_where_it_goes_wrong(text, place, refusal):
    assert refusal(text) == ("SQL_SYNTAX_ERROR", *place)


def test_a_mistyped_keyword_is_named(refused):
    problem = refused("CREATE MATERIALISED VIEW v AS SELECT 1")
    assert "expected STREAMING, MATERIALIZED, TEMPORARY, VIEW or FLOW" in problem.what
    assert problem.hint == "did you mean MATERIALIZED?"
