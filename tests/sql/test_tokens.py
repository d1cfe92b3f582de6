"""Text is cut into tokens as Spark's own lexer does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import TokenError

from millpond.sql.tokens import (
    TokenKind,
    identifier_value,
    scan,
    string_literal,
    string_value,
)


def texts(sql):
    return [token.text for token in scan(sql)]


def kinds(sql):
    return [token.kind for token in scan(sql)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a.b::INT", ["SELECT", "a", ".", "b", "::", "INT"]),
        ("a -- b ; 'c\nd", ["a", "d"]),
        ("a -- goes on \\\nhere\nd", ["a", "d"]),
        ("a -- b\r\nd", ["a", "d"]),
        ("a -- b\rd", ["a", "d"]),
        ("a /* b /* c */ ' ; */ d", ["a", "d"]),
        ("a /**/ d", ["a", "d"]),
        ("a /*+ BROADCAST(b) */ d", ["a", "/*+ BROADCAST(b) */", "d"]),
        ("'a;b' \"c;d\" `e;f`", ["'a;b'", '"c;d"', "`e;f`"]),
        (r"'a\';b' 'it''s'", [r"'a\';b'", "'it''s'"]),
        (r"r'a\' R" + '"b\\"', [r"r'a\'", 'R"b\\"']),
        ("bar'x'", ["bar", "'x'"]),
        ("`a``b`", ["`a``b`"]),
        ("1L 1.5e-3BD .5 2_b 1a 10.D", ["1L", "1.5e-3BD", ".5", "2_b", "1a", "10.D"]),
        ("${a.b} ${ a }", ["${a.b}", "$", "{", "a", "}"]),
        ("x->y a=>b c==d e=f", ["x", "->", "y", "a", "=>", "b", "c", "==", "d", "e", "=", "f"]),
        ("ARRAY<ARRAY<INT>>", ["ARRAY", "<", "ARRAY", "<", "INT", ">", ">"]),
        ("漢字 été 😀", ["漢字", "été", "😀"]),
        ("", []),
        (" \n\t\N{NO-BREAK SPACE}\N{IDEOGRAPHIC SPACE}", []),
    ],
)
def test_tokens_are_those_of_spark(sql, expected):
    assert texts(sql) == expected


@pytest.mark.parametrize(
    "sql", ["'a;b", '"a', "`a", "'a\\'", "'it''", "r'a", "/* a /* b */", "/*+ a"]
)
def test_what_never_ends_is_one_token_up_to_the_end(sql):
    *_, last = scan("x " + sql)
    assert last.kind is TokenKind.UNTERMINATED
    assert (last.start, last.end) in {(2, len(sql) + 2), (3, len(sql) + 2)}


def test_a_token_knows_its_place():
    sql = "a\n  `b c` /* x */ 'd'"
    assert [sql[token.start : token.end] for token in scan(sql)] == ["a", "`b c`", "'d'"]


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'a'", "a"),
        ('"a"', "a"),
        ("'it''s'", "it's"),
        ('"a ""b"" c"', 'a "b" c'),
        (r"'it\'s'", "it's"),
        (r"'\t\n\r\b\0\Z\\'", "\t\n\r\b\0\x1a\\"),
        (r"'\u0041\U0001F600\101'", "A😀A"),
        (r"'50\% \_x \q'", r"50\% \_x q"),
        (r"r'a\n'", r"a\n"),
        (r"'\UFFFFFFFF'", r"\UFFFFFFFF"),
        ("''", ""),
    ],
)
def test_a_string_has_the_value_that_spark_gives_it(literal, value):
    (token,) = scan(literal)
    assert token.kind is TokenKind.STRING
    assert string_value(token) == value


@given(st.text())
def test_a_literal_of_any_text_has_that_text_as_its_value(text):
    (token,) = scan(string_literal(text))
    # LIKE wildcards keep a backslash before them, as in Spark.
    assert string_value(token).replace("\\%", "%").replace("\\_", "_") == text.replace(
        "\\%", "%"
    ).replace("\\_", "_")


def test_a_quoted_name_gives_its_name():
    assert [identifier_value(token) for token in scan("a `b``c`")] == ["a", "b`c"]


WORDS = st.sampled_from(
    [
        "SELECT",
        "a",
        "`b c`",
        "'d;e'",
        "'it\\'s'",
        '"f"',
        "(",
        ")",
        ",",
        ".",
        ";",
        "=",
        "-- g\n",
        "/* h; /* i */ */",
        "12",
        "1.5",
        "STREAM",
        "é",
        "\n",
        "<",
        ">",
        "*",
        "+",
    ]
)


@given(st.lists(WORDS, max_size=30))
def test_tokens_lie_where_sqlglot_finds_them(words):
    """For text without the things that sqlglot reads otherwise."""
    sql = " ".join(words)
    try:
        other = [(token.start, token.end + 1) for token in Databricks().tokenize(sql)]
    except TokenError:
        return
    found = [(token.start, token.end) for token in scan(sql)]
    # A number directly before a dot, and the like, are cut differently; the edges are the same.
    assert {start for start, _ in found} == {start for start, _ in other}
