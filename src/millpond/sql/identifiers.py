"""Names in statement heads: of tables, columns, keys, and lists of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from millpond.errors.names import InvalidNameError
from millpond.names import TableName, check_part, quote_identifier, resolve_name, split_name
from millpond.sql.cursor import Cursor
from millpond.sql.session import Session
from millpond.sql.tokens import Token, TokenKind, identifier_value, string_value

T = TypeVar("T")

_NAME_KINDS = {TokenKind.WORD, TokenKind.QUOTED}
_QUOTE_HINT = "put unusual names between backticks: `my-name`"
_LEGACY_SCHEMA = "live"


def at_name(token: Token) -> bool:
    """Whether a token can be a part of a name."""
    return token.kind in _NAME_KINDS


def parse_identifier(cursor: Cursor, what: str) -> str:
    """One name without dots."""
    token = cursor.token
    if not at_name(token):
        raise cursor.unexpected(what, hint=_hint(token))
    cursor.advance()
    if cursor.token.word == "-" and cursor.token.start == token.end:
        raise cursor.unexpected(f"the end of the {what}", hint=_QUOTE_HINT)
    try:
        return check_part(identifier_value(token), where=cursor.where(token))
    except InvalidNameError as problem:
        problem.detail = cursor.place(token)["detail"]
        raise


def parse_parts(cursor: Cursor, what: str) -> tuple[str, ...]:
    """The parts of a dotted name, or of `IDENTIFIER('a dotted name')`."""
    if cursor.at("IDENTIFIER", "("):
        return _identifier_clause(cursor, what)
    parts = [parse_identifier(cursor, what)]
    while cursor.accept("."):
        parts.append(parse_identifier(cursor, what))
    return tuple(parts)


def parse_table_name(cursor: Cursor, session: Session, what: str = "name") -> TableName:
    """A name of a table, view or flow, with catalog and schema filled in.

    `LIVE.` before a name is of older files, and stands for the pipeline's own schema.
    """
    first = cursor.token
    parts = parse_parts(cursor, what)
    if len(parts) == 2 and parts[0].lower() == _LEGACY_SCHEMA:
        parts = parts[1:]
    text = ".".join(quote_identifier(part) for part in parts)
    try:
        return resolve_name(
            text, catalog=session.catalog, schema=session.schema, where=cursor.where(first)
        )
    except InvalidNameError as problem:
        problem.detail = cursor.place(first)["detail"]
        raise


def parse_list(cursor: Cursor, item: Callable[[], T]) -> list[T]:
    """`(item, item, ...)`, at least one."""
    cursor.expect("(")
    items = [item()]
    while cursor.accept(","):
        items.append(item())
    if not cursor.accept(")"):
        raise cursor.unexpected(",", ")")
    return items


def parse_columns(cursor: Cursor) -> tuple[str, ...]:
    """`(column, column, ...)`, plain names."""
    return tuple(parse_list(cursor, lambda: parse_identifier(cursor, "column name")))


def parse_string(cursor: Cursor, what: str) -> str:
    """A string literal's value."""
    token = cursor.expect_kind(TokenKind.STRING, f"{what} between quotes")
    return string_value(token)


def _identifier_clause(cursor: Cursor, what: str) -> tuple[str, ...]:
    cursor.expect("IDENTIFIER", "(")
    token = cursor.token
    text = parse_string(cursor, what)
    cursor.expect(")")
    try:
        return split_name(text, where=cursor.where(token))
    except InvalidNameError as problem:
        problem.detail = cursor.place(token)["detail"]
        raise


def _hint(token: Token) -> str | None:
    if token.kind is TokenKind.STRING:
        return "names stand between backticks, or without quotes"
    return None
