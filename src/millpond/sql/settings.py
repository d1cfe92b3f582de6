"""`SET` and `USE`: what is in force for the statements below them in the file."""

from __future__ import annotations

from millpond.errors.sql import SqlStatementNotSupportedError
from millpond.names import DEFAULT_SCHEMA
from millpond.sql.cursor import Cursor
from millpond.sql.identifiers import parse_parts, parse_string
from millpond.sql.session import Session
from millpond.sql.tokens import TokenKind

_SCHEMA_WORDS = ("SCHEMA", "DATABASE", "NAMESPACE")
_KEY_KINDS = {TokenKind.WORD, TokenKind.QUOTED, TokenKind.NUMBER}


def parse_set(cursor: Cursor, session: Session) -> None:
    """`SET key = value`: the value is everything behind the sign, as written."""
    start = cursor.token
    cursor.expect("SET")
    if cursor.at("CATALOG") and cursor.ahead(1).word != "=":
        cursor.advance()
        _use_catalog(cursor, session)
        return
    for words in (("TIME", "ZONE"), ("VAR",), ("VARIABLE",), ("ROLE",)):
        if cursor.at(*words) and cursor.ahead(len(words)).word not in {"=", "."}:
            raise SqlStatementNotSupportedError.from_statement(
                f"SET {' '.join(words)}", hint="write SET <key> = <value>", **cursor.place(start)
            )
    key = _parse_key(cursor)
    cursor.expect("=")
    if cursor.at_end:
        raise cursor.unexpected("a value")
    session.settings[key] = cursor.rest()[0]


def parse_use(cursor: Cursor, session: Session) -> None:
    """`USE CATALOG c`, `USE SCHEMA s`, `USE c.s`, `USE s`."""
    cursor.expect("USE")
    if cursor.at("CATALOG") and not _is_last(cursor):
        cursor.advance()
        _use_catalog(cursor, session)
        return
    if cursor.token.word in _SCHEMA_WORDS and not _is_last(cursor):
        cursor.advance()
    parts = _parse_target(cursor, "name of a schema")
    _expect_end(cursor)
    match parts:
        case (schema,):
            session.schema = schema
        case (catalog, schema):
            session.catalog, session.schema = catalog, schema
        case _:
            raise cursor.unexpected("catalog.schema with two parts")


def _use_catalog(cursor: Cursor, session: Session) -> None:
    parts = _parse_target(cursor, "name of a catalog")
    if len(parts) > 1:
        raise cursor.unexpected("; after one name", hint="write USE catalog.schema")
    _expect_end(cursor)
    # As in Spark, the schema of another catalog does not carry over.
    session.catalog, session.schema = parts[0], DEFAULT_SCHEMA


def _parse_target(cursor: Cursor, what: str) -> tuple[str, ...]:
    if cursor.token.kind is TokenKind.STRING:
        return (parse_string(cursor, what),)
    return parse_parts(cursor, what)


def _parse_key(cursor: Cursor) -> str:
    """A key such as `spark.sql.shuffle.partitions` or `my-key`: names joined without spaces."""
    if cursor.token.kind is TokenKind.QUOTED:
        return cursor.advance().text[1:-1].replace("``", "`")
    if cursor.token.kind not in _KEY_KINDS:
        raise cursor.unexpected("a key")
    mark = cursor.mark
    end = cursor.token.start
    while not cursor.at_end and cursor.token.word != "=" and cursor.token.start == end:
        end = cursor.advance().end
    return cursor.text_from(mark)


def _is_last(cursor: Cursor) -> bool:
    return cursor.ahead(1).kind is TokenKind.END or cursor.ahead(1).word == "."


def _expect_end(cursor: Cursor) -> None:
    if not cursor.at_end:
        raise cursor.unexpected(";")
