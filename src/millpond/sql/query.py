"""The query at the end of a statement: where it starts and ends. What it means, the engine says."""

from __future__ import annotations

from millpond.definitions import SqlQuery
from millpond.sql.cursor import Cursor
from millpond.sql.session import Session

QUERY_STARTS = frozenset({"SELECT", "WITH", "FROM", "TABLE", "VALUES", "("})


def parse_query(cursor: Cursor, session: Session) -> SqlQuery:
    """The rest of the statement, which must be a query."""
    if not cursor.at_any(QUERY_STARTS):
        raise cursor.unexpected("SELECT", "WITH", "FROM", "TABLE", "VALUES")
    text, first, replaced, file_text = cursor.rest()
    return SqlQuery(
        text=text,
        location=cursor.where(first),
        file_text=file_text,
        catalog=session.catalog,
        schema=session.schema,
        replaced=replaced,
    )
