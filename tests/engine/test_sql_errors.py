"""A text that is wrong is refused with file, line, column and a caret under the place."""

import pytest

from millpond.errors.engine import (
    InvalidReadOptionError,
    NotAQueryError,
    QuerySyntaxError,
    UnsupportedReadError,
    UnsupportedStreamingSourceError,
)
from tests.engine.queries import plan, sql

BEFORE = "-- a comment\nCREATE STREAMING TABLE t AS\n  "
# The text, the class, and the characters that the carets stand under.
CASES = {
    "wrong word": ("SELECT a FROM t WHER a > 1 AND", QuerySyntaxError, "a"),
    "no text": ("", QuerySyntaxError, None),
    "ends early": ("SELECT a\nFROM", QuerySyntaxError, None),
    "quote": ("SELECT a, 'b FROM t", QuerySyntaxError, "'"),
    "parenthesis": ("SELECT (a\nFROM t", QuerySyntaxError, "("),
    "closing parenthesis": ("SELECT a) FROM t", QuerySyntaxError, ")"),
    "statement": ("INSERT INTO t SELECT 1", NotAQueryError, "INSERT"),
    "two statements": ("SELECT 1;\nSELECT 2", NotAQueryError, "SELECT"),
    "table function": (
        "SELECT a\nFROM STREAM read_pulsar('x')",
        UnsupportedStreamingSourceError,
        "read_pulsar",
    ),
    "stream of a query": (
        "SELECT a FROM STREAM(SELECT 1)",
        UnsupportedStreamingSourceError,
        "SELECT",
    ),
    "stream of files": (
        "SELECT a FROM STREAM(csv.`/x`)",
        UnsupportedStreamingSourceError,
        "csv.`/x`",
    ),
    "option without a value": ("SELECT a FROM STREAM t WITH (x = )", InvalidReadOptionError, "="),
    "empty options": ("SELECT a FROM STREAM t WITH ()", InvalidReadOptionError, ")"),
    "four parts": ("SELECT a FROM a.b.c.d", UnsupportedReadError, "a.b.c.d"),
    "relative file": ("SELECT a FROM csv.`x`", UnsupportedReadError, "csv.`x`"),
    "natural join": ("SELECT a FROM t NATURAL JOIN u", UnsupportedReadError, "u"),
    "star after USING": ("SELECT t.* FROM t JOIN u USING (k)", UnsupportedReadError, "t"),
    "version by expression": ("SELECT a FROM t VERSION AS OF v()", UnsupportedReadError, "VERSION"),
    "version with @": ("SELECT a FROM t@v1", UnsupportedReadError, "@"),
    "timestamp": ("SELECT a FROM t TIMESTAMP AS OF '2026-01-01'", UnsupportedReadError, None),
    "changes": ("SELECT a FROM t WITH (readChangeFeed = true)", UnsupportedReadError, None),
}


@pytest.mark.parametrize(("text", "error_class", "marked"), CASES.values(), ids=CASES)
def test_what_is_wrong_is_shown_at_its_place(engine, text, error_class, marked):
    query = sql(text, before=BEFORE)
    with pytest.raises(error_class) as caught:
        plan(engine, query)
    error = caught.value
    assert error.where.file == query.location.file
    assert error.hint
    if marked is None:
        return
    line = query.file_text.split("\n")[error.where.line - 1]
    assert line[error.where.column - 1 :].startswith(marked)
    shown, carets = error.detail.split("\n")
    start = carets.index("^")
    assert shown[start : start + carets.count("^")] == marked


def test_syntax_that_only_the_engine_knows_still_finds_its_tables(engine, monkeypatch):
    from sqlglot.errors import ParseError

    from millpond.engine.sqltext import analysis

    monkeypatch.setattr(analysis, "parse_query", lambda _text: ParseError("no tree"))
    found = plan(engine, sql("SELECT a FROM t"))
    assert [read.name for read in found.reads] == [("t",)]
    with pytest.raises(QuerySyntaxError):
        plan(engine, sql("SELECT a FROM t WHERE )"))


def test_over_a_stream_such_syntax_is_refused(engine, monkeypatch):
    from sqlglot.errors import ParseError

    from millpond.engine.sqltext import analysis
    from millpond.errors.engine import UnsupportedStreamingOperationError

    monkeypatch.setattr(analysis, "parse_query", lambda _text: ParseError("no tree"))
    with pytest.raises(UnsupportedStreamingOperationError, match="only the engine can read"):
        plan(engine, sql("SELECT a FROM STREAM t"))
