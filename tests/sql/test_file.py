"""Whole files: every problem in one go, any line ends, large ones in reasonable time."""

from __future__ import annotations

import time

import pytest

from millpond.sql import parse_file

STATEMENTS = """-- one problem in every second statement
CREATE STREAMING TABLE a AS SELECT * FROM STREAM(s);
CREATE STREMING TABLE b AS SELECT 1;
CREATE VIEW c AS SELECT 1;
CREATE STREAMING TABLE d FLOW REPLACE USING () SEQUENCE BY x BY NAME SELECT 1;
CREATE FLOW e AS INSERT INTO a BY NAME SELECT * FROM STREAM(s2);
DROP TABLE a;
"""


def parse(text):
    return parse_file(text, file="a.sql", catalog="c", schema="s", configuration={})


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\N{ZERO WIDTH NO-BREAK SPACE}"])
def test_every_problem_is_found_and_the_rest_is_read(line_end, mark):
    # A carriage return alone ends the line of a comment, too.
    pipeline, problems = parse(mark + STATEMENTS.replace("\n", line_end))
    assert [str(dataset.name) for dataset in pipeline.datasets] == ["c.s.a", "c.s.c"]
    assert [flow.name for flow in pipeline.flows] == ["c.s.a", "c.s.c", "c.s.e"]
    assert [(p.error_class, p.where.line, p.where.column) for p in problems] == [
        ("SQL_SYNTAX_ERROR", 3, 8),
        ("REPLACE_USING_NO_KEY", 5, 45),
        ("SQL_STATEMENT_NOT_SUPPORTED", 7, 1),
    ]


def test_a_byte_order_mark_moves_no_column():
    _, (problem,) = parse("\N{ZERO WIDTH NO-BREAK SPACE}CREAT VIEW v AS SELECT 1")
    assert (problem.where.line, problem.where.column) == (1, 1)


def test_a_problem_is_shown_with_its_line_and_a_caret():
    _, (problem,) = parse("CREATE STREAMING TABLE t\n\tFLOW REPLACE USING (k) BY NAME SELECT 1;")
    assert str(problem) == (
        "[REPLACE_USING_MISSING_SEQUENCE_BY] REPLACE USING flow c.s.t does not say what orders its "
        "rows. (SQLSTATE 42601)\n"
        "  at a.sql:2:25\n"
        "  2 |     FLOW REPLACE USING (k) BY NAME SELECT 1;\n"
        "    |                            ^^\n"
        "  hint: add SEQUENCE BY <column> after the key list in SQL, or "
        'sequence_by="<column>" in Python: of each key, the rows at the highest value stay'
    )


def test_queries_know_their_place_in_a_file_with_windows_lines():
    pipeline, problems = parse("-- x\r\nCREATE VIEW v AS\r\n  SELECT 1\r\n  FROM t;\r\n")
    assert not problems
    query = pipeline.flows[0].query
    assert (query.location.line, query.location.column) == (3, 3)
    assert query.text == "SELECT 1\r\n  FROM t"


@pytest.mark.parametrize("variable", ["x", "${v}"])
def test_a_file_of_a_megabyte_takes_a_few_seconds(variable):
    statement = (
        "CREATE STREAMING TABLE t# (a INT COMMENT 'x;', CONSTRAINT c EXPECT (a > 0))\n"
        f"FLOW REPLACE USING (a) SEQUENCE BY b BY NAME /* # */ SELECT {variable}, b FROM STREAM(s);\n"
    )
    count = 1_000_000 // len(statement)
    text = "".join(statement.replace("#", str(number)) for number in range(count))
    started = time.monotonic()
    pipeline, problems = parse_file(
        text, file="a.sql", catalog="c", schema="s", configuration={"v": "x"}
    )
    assert time.monotonic() - started < 30
    assert not problems
    assert len(pipeline.flows) == count


def test_a_megabyte_of_one_line_is_shown_shortened():
    _, problems = parse("CREATE VIEW v AS SELECT '" + "x" * 1_000_000)
    assert all(len(line) < 100 for line in problems[0].detail.splitlines())
