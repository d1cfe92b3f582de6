"""Types of declared columns: read to know where they end, kept as text."""

from __future__ import annotations

from millpond.errors.suggestion import did_you_mean
from millpond.sql.cursor import Cursor
from millpond.sql.identifiers import parse_identifier, parse_string
from millpond.sql.tokens import TokenKind, keywords

# Far deeper than any real type; keeps the recursion within Python's limit.
MAX_DEPTH = 60

_INTERVAL_UNITS = frozenset({"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"})
_SIZED = frozenset({"CHAR", "CHARACTER", "VARCHAR", "DECIMAL", "DEC", "NUMERIC", "TIME"})
_PLAIN = keywords(
    "BOOLEAN TINYINT BYTE SMALLINT SHORT INT INTEGER BIGINT LONG FLOAT REAL DOUBLE DATE TIMESTAMP "
    "TIMESTAMP_LTZ TIMESTAMP_NTZ STRING BINARY VOID VARIANT"
)
TYPE_NAMES = _PLAIN | _SIZED | {"ARRAY", "MAP", "STRUCT", "INTERVAL"}


def parse_type(cursor: Cursor) -> str:
    """Step over a type and return its text, without comments and line ends."""
    mark = cursor.mark
    _parse(cursor, depth=0)
    return cursor.squeezed_from(mark)


def _parse(cursor: Cursor, *, depth: int) -> None:
    name = cursor.token.word
    if name not in TYPE_NAMES:
        raise cursor.unexpected("a type, such as STRING", hint=_hint(cursor))
    if depth > MAX_DEPTH:
        raise cursor.unexpected(f"a type nested at most {MAX_DEPTH} deep")
    cursor.advance()
    if name == "ARRAY":
        cursor.expect("<")
        _parse(cursor, depth=depth + 1)
        cursor.expect(">")
    elif name == "MAP":
        cursor.expect("<")
        _parse(cursor, depth=depth + 1)
        cursor.expect(",")
        _parse(cursor, depth=depth + 1)
        cursor.expect(">")
    elif name == "STRUCT":
        _parse_fields(cursor, depth=depth)
    elif name == "INTERVAL":
        _parse_interval(cursor)
    elif name in _SIZED:
        _parse_size(cursor)
    elif name == "STRING" and cursor.accept("COLLATE"):
        parse_identifier(cursor, "collation name")


def _parse_fields(cursor: Cursor, *, depth: int) -> None:
    cursor.expect("<")
    if cursor.accept(">"):
        return
    while True:
        parse_identifier(cursor, "field name")
        cursor.accept(":")
        _parse(cursor, depth=depth + 1)
        if cursor.accept("NOT"):
            cursor.expect("NULL")
        if cursor.accept("COMMENT"):
            parse_string(cursor, "a comment")
        if not cursor.accept(","):
            break
    if not cursor.accept(">"):
        raise cursor.unexpected(",", ">")


def _parse_interval(cursor: Cursor) -> None:
    if cursor.at_any(_INTERVAL_UNITS):
        cursor.advance()
        if cursor.accept("TO"):
            if not cursor.at_any(_INTERVAL_UNITS):
                raise cursor.unexpected(*sorted(_INTERVAL_UNITS))
            cursor.advance()


def _parse_size(cursor: Cursor) -> None:
    if not cursor.accept("("):
        return
    cursor.expect_kind(TokenKind.NUMBER, "a number")
    if cursor.accept(","):
        cursor.expect_kind(TokenKind.NUMBER, "a number")
    cursor.expect(")")


def _hint(cursor: Cursor) -> str | None:
    near = did_you_mean(cursor.token.text, TYPE_NAMES)
    return f"did you mean {near}?" if near else None
