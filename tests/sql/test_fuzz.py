"""Whatever a file holds, the parser ends, and fails with problems of its own only."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from millpond.errors import MillpondError
from millpond.sql import parse_file, query_location

VALID = """
SET v = 1; USE CATALOG c; USE SCHEMA s;
CREATE OR REFRESH PRIVATE STREAMING TABLE a.b.t (x INT NOT NULL COMMENT 'c',
  s STRUCT<a: INT, b: ARRAY<DECIMAL(10,2)>> DEFAULT f(1),
  CONSTRAINT e EXPECT (x > 0) ON VIOLATION DROP ROW, PRIMARY KEY (x) RELY)
  PARTITIONED BY (x) COMMENT 'd' TBLPROPERTIES (a.b = true, 'c' = -1)
  FLOW REPLACE USING (x, `y z`) SEQUENCE BY STRUCT(a, b) BY NAME
  SELECT * FROM STREAM(t) WHERE v = ${v} AND w = :p;
CREATE FLOW f COMMENT 'x' AS INSERT INTO t BY NAME REPLACE USING (k) SEQUENCE BY s
  WITH q AS (SELECT 1) SELECT * FROM q;
CREATE FLOW g AS INSERT INTO ONCE t BY NAME TABLE s;
CREATE MATERIALIZED VIEW m (a, b INT GENERATED ALWAYS AS (a + 1)) REFRESH POLICY AUTO
  CLUSTER BY AUTO USING DELTA AS FROM t;
CREATE TEMPORARY STREAMING LIVE VIEW LIVE.v (CONSTRAINT c EXPECT (a)) AS SELECT '${v}';
"""
STATEMENTS = [statement + ";" for statement in VALID.split(";\n") if statement]
WORDS = sorted(set(VALID.replace("(", " ( ").split()))
ODD = [
    ";",
    "(",
    ")",
    "'",
    '"',
    "`",
    "/*",
    "*/",
    "--",
    "\n",
    "${",
    "${v}",
    "${no}",
    ":p",
    "\\",
    ".",
    ",",
]
ODD += [
    "<",
    ">",
    "=",
    "\x00",
    "\r\n",
    "漢",
    "\ud800",
    "CREATE",
    "ONCE",
    "BY",
    "NAME",
    "r'",
    "$",
    "IDENTIFIER(",
]

soup = st.lists(st.sampled_from([*WORDS, *ODD]), max_size=60).map(" ".join)


@st.composite
def mutated(draw):
    """Valid statements with pieces cut out, doubled, or put in."""
    text = "\n".join(draw(st.permutations(STATEMENTS)))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 40)))
        put = draw(st.sampled_from(["", text[start:end] * 2, *ODD, *WORDS]))
        text = text[:start] + put + text[end:]
    return text


VALUES = st.sampled_from(["1", "", "a b", "'x'", "'", ";", "/*", "SELECT", "(", "${v}", "\n"])


def check(text, value):
    pipeline, problems = parse_file(
        text, file="a.sql", catalog="c", schema="s", configuration={"v": value, "p": value}
    )
    for problem in problems:
        assert isinstance(problem, MillpondError)
        assert problem.error_class
        assert problem.where.line >= 1
        assert problem.where.column >= 1
        assert len(problem.detail.split("\n")) == 2
        assert str(problem)
    for flow in pipeline.flows:
        assert flow.query.text.strip() == flow.query.text
        last = query_location(flow.query, len(flow.query.text) - 1)
        assert last >= flow.query.location


@settings(deadline=5000, max_examples=300)
@given(soup, VALUES)
@example("CREATE", "1")
@example("${v}", "")
@example("CREATE VIEW v AS ${v}", "")
def test_any_words_in_any_order(text, value):
    check(text, value)


@settings(deadline=5000, max_examples=300)
@given(mutated(), VALUES)
def test_valid_files_with_damage(text, value):
    check(text, value)


@settings(deadline=5000, max_examples=200)
@given(st.text(max_size=200), VALUES)
def test_any_text(text, value):
    check(text, value)


def test_valid_files_are_valid():
    _, problems = parse_file(VALID, file="a.sql", catalog="c", schema="s", configuration={"p": "1"})
    assert not problems


def test_repeated_openings_take_no_long():
    for piece in ["(", "'", "''", "`", "/*", "/* */", "${", "${v}", "STRUCT<a ", "a.", "- ", "\\'"]:
        for head in ["", "CREATE VIEW v AS SELECT ", "CREATE STREAMING TABLE t (a ", "SET a = "]:
            check(head + piece * 20_000, "1")
