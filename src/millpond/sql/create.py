"""`CREATE ...`: reads the words up to the name, and hands over to the kind of definition."""

from __future__ import annotations

from millpond.definitions import Pipeline
from millpond.errors.sql import SqlStatementNotSupportedError
from millpond.sql.cursor import Cursor
from millpond.sql.flow import parse_create_flow
from millpond.sql.materialized_view import parse_materialized_view
from millpond.sql.session import Session
from millpond.sql.streaming_table import parse_streaming_table
from millpond.sql.tokens import Token, keywords
from millpond.sql.view import parse_view

_TEMPORARY = frozenset({"TEMPORARY", "TEMP"})
_OTHER_OBJECTS = keywords(
    "FUNCTION SCHEMA DATABASE CATALOG VOLUME INDEX CONNECTION EXTERNAL SHARE RECIPIENT"
)
_TABLE_HINT = (
    "write CREATE STREAMING TABLE for a table that flows feed, or CREATE MATERIALIZED VIEW for one "
    "that a query defines"
)


def parse_create(cursor: Cursor, session: Session) -> Pipeline:
    """A whole CREATE statement."""
    create = cursor.token
    cursor.expect("CREATE")
    refresh = _parse_or_refresh(cursor)
    private = cursor.token if cursor.at("PRIVATE") else None
    temporary = cursor.token if cursor.at_any(_TEMPORARY) else None
    if private or temporary:
        cursor.advance()
    if cursor.at("MATERIALIZED") or _at_table(cursor):
        return _parse_table(cursor, session, private=bool(private or temporary))
    if refresh is not None and not cursor.at("TABLE"):
        raise cursor.unexpected("STREAMING TABLE", "MATERIALIZED VIEW", hint=_refresh_hint(cursor))
    if private is not None:
        raise cursor.unexpected("STREAMING TABLE", "MATERIALIZED VIEW")
    if cursor.at("VIEW") or cursor.at("LIVE", "VIEW") or cursor.at("STREAMING", "LIVE", "VIEW"):
        return _parse_view(cursor, session, temporary=temporary is not None)
    if temporary is None and cursor.at("FLOW"):
        return Pipeline(flows=(parse_create_flow(cursor, session),))
    raise _unknown_object(cursor, create, temporary=temporary is not None)


def _at_table(cursor: Cursor) -> bool:
    """Whether a streaming table or a LIVE table follows."""
    if cursor.at("STREAMING"):
        return not cursor.at("STREAMING", "LIVE", "VIEW") and not cursor.at("STREAMING", "VIEW")
    return cursor.at("LIVE", "TABLE")


def _parse_table(cursor: Cursor, session: Session, *, private: bool) -> Pipeline:
    if cursor.accept("MATERIALIZED"):
        cursor.expect("VIEW")
        _skip_if_not_exists(cursor)
        return parse_materialized_view(cursor, session, private=private)
    if cursor.accept("LIVE", "TABLE"):
        _skip_if_not_exists(cursor)
        return parse_materialized_view(cursor, session, private=private)
    cursor.expect("STREAMING")
    if not cursor.accept("LIVE", "TABLE"):
        cursor.expect("TABLE")
    _skip_if_not_exists(cursor)
    return parse_streaming_table(cursor, session, private=private)


def _parse_view(cursor: Cursor, session: Session, *, temporary: bool) -> Pipeline:
    cursor.accept("STREAMING")
    live = cursor.accept("LIVE")
    cursor.expect("VIEW")
    _skip_if_not_exists(cursor)
    return parse_view(cursor, session, temporary=temporary or live)


def _parse_or_refresh(cursor: Cursor) -> Token | None:
    token = cursor.token
    if not cursor.accept("OR"):
        return None
    if cursor.at("REPLACE"):
        raise cursor.unexpected(
            "REFRESH", hint="a source file says what there shall be: write CREATE OR REFRESH"
        )
    cursor.expect("REFRESH")
    return token


def _skip_if_not_exists(cursor: Cursor) -> None:
    # Followed by a name it is part of a name: a table may be called "if".
    if cursor.at("IF", "NOT"):
        cursor.expect("IF", "NOT", "EXISTS")


def _refresh_hint(cursor: Cursor) -> str | None:
    if cursor.at("VIEW") or cursor.at("LIVE", "VIEW") or cursor.at("FLOW"):
        return "views and flows are created without OR REFRESH"
    return None


def _unknown_object(cursor: Cursor, create: Token, *, temporary: bool) -> Exception:
    if cursor.at("TABLE"):
        return SqlStatementNotSupportedError.from_statement(
            "CREATE TABLE", hint=_TABLE_HINT, **cursor.place(create)
        )
    if cursor.at_any(_OTHER_OBJECTS):
        return SqlStatementNotSupportedError.from_statement(
            f"CREATE {cursor.token.word}", **cursor.place(create)
        )
    flow = [] if temporary else ["FLOW"]
    return cursor.unexpected("STREAMING", "MATERIALIZED", "TEMPORARY", "VIEW", *flow)
