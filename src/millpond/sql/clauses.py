"""The clauses between a table's columns and its query, in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlparse

from millpond.errors.sql import (
    ConflictingClausesError,
    DuplicateClauseError,
    SqlClauseNotSupportedError,
)
from millpond.sql.cursor import Cursor
from millpond.sql.identifiers import at_name, parse_columns, parse_identifier, parse_string
from millpond.sql.tokens import Token, TokenKind, identifier_value, string_value

_SCHEDULE_HINT = "leave the schedule out, and start `millpond run` from a scheduler"
# Clauses that only a managed service can serve: what to call them, and what to do instead.
_REFUSED = {
    ("WITH", "ROW", "FILTER"): (
        "WITH ROW FILTER",
        "only a managed catalog can filter rows by user; filter them in the query",
    ),
    ("SCHEDULE",): ("SCHEDULE", _SCHEDULE_HINT),
    ("TRIGGER", "ON"): ("TRIGGER ON UPDATE", _SCHEDULE_HINT),
}
_BOOLEANS = frozenset({"TRUE", "FALSE"})


@dataclass
class Clauses:
    """What the clauses said; `order` holds the names of those seen."""

    comment: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    partition_cols: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    cluster_by_auto: bool = False
    path: str | None = None
    order: list[str] = field(default_factory=list)


Reader = Callable[[Cursor, Clauses], None]


def parse_table_clauses(cursor: Cursor) -> Clauses:
    """The clauses of a streaming table."""
    return _parse(cursor, _TABLE)


def parse_materialized_view_clauses(cursor: Cursor) -> Clauses:
    """The clauses of a materialized view."""
    return _parse(cursor, _MATERIALIZED_VIEW)


def parse_view_clauses(cursor: Cursor) -> Clauses:
    """The clauses of a view."""
    return _parse(cursor, _VIEW)


def _parse(cursor: Cursor, readers: dict[tuple[str, ...], Reader]) -> Clauses:
    clauses = Clauses()
    while True:
        _refuse(cursor)
        words = next((words for words in readers if cursor.at(*words)), None)
        if words is None:
            return clauses
        name = " ".join(words)
        if name in clauses.order:
            raise DuplicateClauseError.from_clause(name, **cursor.place())
        clauses.order.append(name)
        if "PARTITIONED BY" in clauses.order and "CLUSTER BY" in clauses.order:
            raise ConflictingClausesError.from_clauses(
                "PARTITIONED BY", "CLUSTER BY", **cursor.place()
            )
        cursor.expect(*words)
        readers[words](cursor, clauses)


def _refuse(cursor: Cursor) -> None:
    for words, (clause, hint) in _REFUSED.items():
        if cursor.at(*words):
            raise SqlClauseNotSupportedError.from_clause(clause, hint=hint, **cursor.place())


def _using(cursor: Cursor, _: Clauses) -> None:
    if not cursor.accept("DELTA"):
        if at_name(cursor.token):
            raise SqlClauseNotSupportedError.from_clause(
                f"USING {cursor.token.text}",
                hint="tables are Delta tables: write USING DELTA, or leave it out",
                **cursor.place(),
            )
        raise cursor.unexpected("DELTA")


def _partitioned_by(cursor: Cursor, clauses: Clauses) -> None:
    clauses.partition_cols = parse_columns(cursor)


def _cluster_by(cursor: Cursor, clauses: Clauses) -> None:
    if cursor.accept("AUTO"):
        clauses.cluster_by_auto = True
    elif cursor.at("("):
        clauses.cluster_by = parse_columns(cursor)
    elif not cursor.accept("NONE"):
        raise cursor.unexpected("(", "AUTO", "NONE")


def _location(cursor: Cursor, clauses: Clauses) -> None:
    token = cursor.token
    path = parse_string(cursor, "a path")
    if not _is_path(path):
        raise SqlClauseNotSupportedError.from_clause(
            f"LOCATION {token.text}",
            hint="write the path of a folder, such as LOCATION '/lake/sales'",
            **cursor.place(token),
        )
    clauses.path = path


def _is_path(text: str) -> bool:
    try:
        urlparse(text)
    except ValueError:  # a bracket that opens and never closes where a host stands
        return False
    return bool(text.strip()) and "\0" not in text


def _comment(cursor: Cursor, clauses: Clauses) -> None:
    clauses.comment = parse_string(cursor, "a comment")


def _properties(cursor: Cursor, clauses: Clauses) -> None:
    cursor.expect("(")
    while True:
        start = cursor.token
        key = _property_key(cursor)
        if key in clauses.properties:
            raise DuplicateClauseError.from_clause(
                f"The table property {key}", **cursor.place(start)
            )
        if not cursor.accept("="):
            cursor.accept("==")
        clauses.properties[key] = _property_value(cursor)
        if not cursor.accept(","):
            break
    if not cursor.accept(")"):
        raise cursor.unexpected(",", ")")


def _property_key(cursor: Cursor) -> str:
    if cursor.token.kind is TokenKind.STRING:
        return string_value(cursor.advance())
    if not at_name(cursor.token):
        raise cursor.unexpected("a property's name")
    parts = [identifier_value(cursor.advance())]
    while cursor.accept("."):
        if not at_name(cursor.token):
            raise cursor.unexpected("a property's name")
        parts.append(identifier_value(cursor.advance()))
    return ".".join(parts)


def _property_value(cursor: Cursor) -> str:
    if cursor.token.kind is TokenKind.STRING:
        return string_value(cursor.advance())
    if cursor.at_any(_BOOLEANS):
        return cursor.advance().text.lower()
    sign = "-" if cursor.accept("-") else ""
    if cursor.token.kind is TokenKind.NUMBER:
        return sign + cursor.advance().text
    raise cursor.unexpected("a string", "a number", "true", "false")


def _collation(cursor: Cursor, _: Clauses) -> None:
    token = cursor.token
    name = parse_identifier(cursor, "name of a collation")
    if name.upper() != "UTF8_BINARY":
        raise SqlClauseNotSupportedError.from_clause(
            f"The collation {name}",
            hint="strings compare by their bytes: write DEFAULT COLLATION UTF8_BINARY, or leave "
            "it out",
            **cursor.place(token),
        )


def _refresh_policy(cursor: Cursor, _: Clauses) -> None:
    token: Token = cursor.token
    if cursor.accept("INCREMENTAL", "STRICT"):
        raise SqlClauseNotSupportedError.from_clause(
            "REFRESH POLICY INCREMENTAL STRICT",
            hint="materialized views are recomputed whole: write AUTO or FULL, or leave it out",
            **cursor.place(token),
        )
    if not any(cursor.accept(word) for word in ("AUTO", "INCREMENTAL", "FULL")):
        raise cursor.unexpected("AUTO", "INCREMENTAL", "FULL")


_VIEW: dict[tuple[str, ...], Reader] = {
    ("COMMENT",): _comment,
    ("TBLPROPERTIES",): _properties,
    ("DEFAULT", "COLLATION"): _collation,
}
_TABLE: dict[tuple[str, ...], Reader] = {
    **_VIEW,
    ("USING",): _using,
    ("PARTITIONED", "BY"): _partitioned_by,
    ("CLUSTER", "BY"): _cluster_by,
    ("LOCATION",): _location,
}
_MATERIALIZED_VIEW: dict[tuple[str, ...], Reader] = {
    **_TABLE,
    ("REFRESH", "POLICY"): _refresh_policy,
}
