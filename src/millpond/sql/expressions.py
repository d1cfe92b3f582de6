"""Expressions in statement heads: found where they end, kept as the user's own text."""

from __future__ import annotations

from collections.abc import Callable

from millpond.sql.cursor import Cursor

_OPENING = frozenset("([")
_CLOSING = frozenset(")]")


def parse_until(cursor: Cursor, ends: Callable[[Cursor], bool]) -> str:
    """The text up to where `ends` holds outside parentheses, or a parenthesis closes, or the end.

    Empty where nothing stands before that.
    """
    mark = cursor.mark
    depth = 0
    while not cursor.at_end:
        word = cursor.token.word
        if depth == 0 and (word in _CLOSING or ends(cursor)):
            break
        if word in _OPENING:
            depth += 1
        elif word in _CLOSING:
            depth -= 1
        cursor.advance()
    return cursor.text_from(mark) if cursor.mark > mark else ""


def parse_parenthesized(cursor: Cursor, what: str) -> str:
    """`( expression )`, without the parentheses."""
    cursor.expect("(")
    text = parse_until(cursor, lambda _: False)
    if not text:
        raise cursor.unexpected(what)
    cursor.expect(")")
    return text
