"""Reads a query into sqlglot's syntax tree, with errors at the right place of the user's file.

The tree is only looked at. Where sqlglot can't read what Spark can, there is no tree, and tables
are found by their tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from millpond.engine.sqltext.blocks import Outline, outline
from millpond.engine.sqltext.source import QueryText
from millpond.errors import MillpondError
from millpond.errors.engine import NotAQueryError, QuerySyntaxError, QueryTooDeepError
from millpond.sql.depth import MAX_DEPTH, MAX_NESTED, too_deep
from millpond.sql.tokens import Token, TokenKind

DIALECT = "databricks"
_FIRST_WORDS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "("})
_PLACE = re.compile(r"\. Line \d+, Col: \d+")


def is_query_text(text: str) -> bool:
    """Whether the first word of a text can begin a query."""
    tokens = outline(text).tokens
    return not tokens or (tokens[0].word in _FIRST_WORDS)


def check_one_query(found: Outline, source: QueryText) -> None:
    """Raise unless the tokens are those of one statement that begins as a query does.

    Raises:
        NotAQueryError: It is another statement, or several.
        QuerySyntaxError: There is no text, or a quote or parenthesis is never closed.
    """
    tokens = found.tokens
    if not tokens:
        raise QuerySyntaxError.at("there is no text", where=source.location)
    for token in tokens:
        if token.kind is TokenKind.UNTERMINATED:
            raise QuerySyntaxError.at(
                f"{token.text[:2]} is never closed",
                where=source.locate(token.start),
                detail=source.caret(token.start, token.start + 1),
            )
    first = tokens[0]
    if first.word not in _FIRST_WORDS:
        raise NotAQueryError.found(
            f"a statement that begins with {first.text}",
            where=source.locate(first.start),
            detail=source.caret(first.start, first.end),
        )
    for index, token in enumerate(tokens):
        if token.word == ";" and index + 1 < len(tokens):
            following = tokens[index + 1]
            raise NotAQueryError.found(
                "more than one statement",
                where=source.locate(following.start),
                detail=source.caret(following.start, following.end),
            )
    _check_parentheses(found, source)


def check_depth(found: Outline, source: QueryText) -> None:
    """Raise for a text that is nested deeper than an engine can read.

    Raises:
        QueryTooDeepError: It is.
    """
    token = too_deep(found.tokens)
    if token is not None:
        raise QueryTooDeepError.at(
            MAX_NESTED,
            MAX_DEPTH,
            where=source.locate(token.start),
            detail=source.caret(token.start, token.end),
        )


def parse_query(text: str) -> exp.Query | ParseError:
    """The syntax tree of a query, or the error that kept sqlglot from making one."""
    return _parsed(text)


@lru_cache(maxsize=256)
def _parsed(text: str) -> exp.Query | ParseError:
    try:
        statements = [tree for tree in sqlglot.parse(text, read=DIALECT) if tree is not None]
    except ParseError as error:
        return error
    except (SqlglotError, RecursionError) as error:
        return ParseError(str(error))
    if len(statements) == 1 and isinstance(statements[0], exp.Query):
        return statements[0]
    return ParseError("it is not a query")


def ends_too_early(error: ParseError) -> bool:
    """Whether more was expected when the text ended."""
    return any("SENTINEL" in str(found.get("description")) for found in error.errors)


def syntax_error(error: ParseError, source: QueryText) -> MillpondError:
    """What to tell the user about a text that neither sqlglot nor the engine can read."""
    found = error.errors[0] if error.errors else {}
    description = _PLACE.sub("", str(found.get("description") or "it is not a query"))
    if ends_too_early(error):
        description = "it ends too early"
    offset, length = _place(found, source.text)
    return QuerySyntaxError.at(
        description[:1].lower() + description[1:].rstrip("."),
        where=source.locate(offset),
        detail=source.caret(offset, offset + length),
    )


def _place(found: dict[str, object], text: str) -> tuple[int, int]:
    """Offset and length of the token that an error is about; sqlglot gives its last column."""
    line, column = found.get("line"), found.get("col")
    if not isinstance(line, int) or not isinstance(column, int) or line < 1:
        return max(len(text.rstrip()) - 1, 0), 1
    highlight = found.get("highlight")
    length = len(highlight) if isinstance(highlight, str) and highlight else 1
    lines = text.split("\n")
    start = sum(len(before) + 1 for before in lines[: line - 1]) + column - length
    return max(0, min(start, len(text) - 1)), length


def _check_parentheses(found: Outline, source: QueryText) -> None:
    opened: list[int] = []
    for index, token in enumerate(found.tokens):
        if token.word == "(":
            opened.append(index)
        elif token.word == ")":
            if not opened:
                raise _unbalanced(token, source, "this parenthesis closes nothing")
            opened.pop()
    if opened:
        raise _unbalanced(found.tokens[opened[-1]], source, "this parenthesis is never closed")


def _unbalanced(token: Token, source: QueryText, problem: str) -> QuerySyntaxError:
    return QuerySyntaxError.at(
        problem, where=source.locate(token.start), detail=source.caret(token.start, token.end)
    )


def identifiers(node: exp.Expr) -> Sequence[exp.Identifier]:
    """The parts of a dotted name that stand in the text, in order."""
    parts = getattr(node, "parts", [])
    return [part for part in parts if isinstance(part, exp.Identifier) and "start" in part.meta]
