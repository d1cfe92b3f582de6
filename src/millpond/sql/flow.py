"""Flows: `CREATE FLOW`, and the `FLOW` inside `CREATE STREAMING TABLE`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millpond.definitions import Flow, FlowKind, Language
from millpond.errors.replace_using import (
    ReplaceUsingDuplicateKeyError,
    ReplaceUsingMissingByNameError,
    ReplaceUsingMissingSequenceByError,
    ReplaceUsingNoKeyError,
    ReplaceUsingWithOnceError,
    SequenceByWithoutReplaceUsingError,
)
from millpond.errors.sql import FlowAndAsQueryError, SqlFlowNotSupportedError
from millpond.names import TableName
from millpond.sql.cursor import Cursor
from millpond.sql.expressions import parse_until
from millpond.sql.identifiers import at_name, parse_identifier, parse_string, parse_table_name
from millpond.sql.query import QUERY_STARTS, parse_query
from millpond.sql.session import Session
from millpond.sql.tokens import Token

_INLINE_FORM = (
    "inside CREATE STREAMING TABLE write FLOW REPLACE USING (..) SEQUENCE BY .. BY NAME <query>"
)
_LONG_FORM = (
    "in CREATE FLOW write INSERT INTO <table> BY NAME REPLACE USING (..) SEQUENCE BY .. <query>"
)
_BY_NAME_HINT = "columns are matched by name, so BY NAME stands before the query"


@dataclass(frozen=True)
class Replacing:
    """Keys and sequence of a REPLACE USING flow."""

    keys: tuple[str, ...]
    sequence: str


def parse_create_flow(cursor: Cursor, session: Session) -> Flow:
    """`FLOW name [COMMENT ..] AS INSERT ...`, from FLOW on."""
    cursor.expect("FLOW")
    location = cursor.where(cursor.token)
    name = str(parse_table_name(cursor, session, "name of the flow"))
    comment = parse_string(cursor, "a comment") if cursor.accept("COMMENT") else None
    if not cursor.accept("AS"):
        raise cursor.unexpected(*([] if comment is not None else ["COMMENT"]), "AS")
    _refuse_other_kinds(cursor)
    cursor.expect("INSERT")
    once, target = _parse_into(cursor, session)
    replacing = _parse_long_operation(cursor, name, once=once)
    return Flow(
        name=name,
        target=target,
        kind=FlowKind.REPLACE_USING if replacing else FlowKind.APPEND,
        query=parse_query(cursor, session),
        language=Language.SQL,
        location=location,
        once=once is not None,
        comment=comment,
        spark_conf=session.flow_settings(),
        replace_using=replacing.keys if replacing else (),
        sequence_by=replacing.sequence if replacing else None,
    )


def parse_inline_flow(cursor: Cursor, session: Session, table: TableName) -> Flow:
    """`FLOW ...` at the end of CREATE STREAMING TABLE; the flow has the table's name."""
    location = cursor.where(cursor.token)
    name = str(table)
    cursor.expect("FLOW")
    _refuse_other_kinds(cursor)
    once: Token | None = None
    replacing: Replacing | None = None
    if cursor.accept("INSERT"):
        once = _accept_once(cursor)
        _check_no_sequence(cursor, name)
        if cursor.at("REPLACE") or cursor.at("INTO"):
            raise cursor.unexpected("BY NAME", hint=_INLINE_FORM)
        cursor.expect("BY", "NAME", hint=_BY_NAME_HINT)
        if cursor.at("REPLACE"):
            raise cursor.unexpected("a query", hint=_INLINE_FORM)
    elif cursor.accept("REPLACE"):
        _refuse_once(cursor, name)
        replacing = _parse_replace_using(cursor, name, order_hint=_INLINE_FORM)
        if not cursor.accept("BY"):
            raise ReplaceUsingMissingByNameError.from_flow(name, **cursor.place())
        cursor.expect("NAME")
    else:
        raise cursor.unexpected("INSERT", "REPLACE USING")
    if cursor.at("AS"):
        raise FlowAndAsQueryError.from_table(name, **cursor.place())
    return Flow(
        name=name,
        target=table,
        kind=FlowKind.REPLACE_USING if replacing else FlowKind.APPEND,
        query=parse_query(cursor, session),
        language=Language.SQL,
        location=location,
        once=once is not None,
        spark_conf=session.flow_settings(),
        replace_using=replacing.keys if replacing else (),
        sequence_by=replacing.sequence if replacing else None,
    )


def _parse_into(cursor: Cursor, session: Session) -> tuple[Token | None, TableName]:
    """`[ONCE] INTO target` or `INTO [ONCE] target`; a table may itself be named once."""
    once = _accept_once(cursor)
    if not cursor.accept("INTO"):
        raise cursor.unexpected(*([] if once else ["ONCE"]), "INTO")
    cursor.accept("TABLE")
    named_once = cursor.ahead(1).word == "." or (
        cursor.ahead(1).word == "BY" and cursor.ahead(2).word == "NAME"
    )
    if once is None and not named_once and at_name(cursor.ahead(1)):
        once = _accept_once(cursor)
    return once, parse_table_name(cursor, session, "name of the table")


def _parse_long_operation(cursor: Cursor, flow: str, *, once: Token | None) -> Replacing | None:
    """`BY NAME [REPLACE USING (..) SEQUENCE BY ..]`."""
    _check_no_sequence(cursor, flow)
    if cursor.at("REPLACE", "USING"):
        raise ReplaceUsingMissingByNameError.from_flow(
            flow, place="before REPLACE USING", **cursor.place()
        )
    cursor.expect("BY", "NAME", hint=_BY_NAME_HINT)
    _check_no_sequence(cursor, flow)
    _refuse_other_kinds(cursor)
    if not cursor.accept("REPLACE"):
        return None
    _refuse_once(cursor, flow)
    if once is not None:
        raise ReplaceUsingWithOnceError.from_flow(flow, **cursor.place(once))
    replacing = _parse_replace_using(cursor, flow, order_hint=_LONG_FORM)
    if cursor.at("BY", "NAME"):
        raise cursor.unexpected("a query", hint="BY NAME stands before REPLACE USING already")
    return replacing


def _parse_replace_using(cursor: Cursor, flow: str, *, order_hint: str) -> Replacing:
    """`USING (key, ..) SEQUENCE BY expression`, after REPLACE."""
    cursor.expect("USING")
    _refuse_once(cursor, flow)
    keys = _parse_keys(cursor, flow)
    if cursor.at("BY", "NAME") and cursor.ahead(2).word == "SEQUENCE":
        raise cursor.unexpected("SEQUENCE BY", hint=order_hint)
    if not cursor.accept("SEQUENCE"):
        raise ReplaceUsingMissingSequenceByError.from_flow(flow, **cursor.place())
    cursor.expect("BY")
    sequence = parse_until(cursor, _sequence_ends(cursor.mark))
    if not sequence:
        raise cursor.unexpected("a column or an expression")
    if cursor.at(","):
        raise cursor.unexpected(
            "BY NAME" if order_hint is _INLINE_FORM else "a query",
            hint="the sequence is one value; to order by several columns write "
            "SEQUENCE BY STRUCT(first, second)",
        )
    return Replacing(keys, sequence)


def _parse_keys(cursor: Cursor, flow: str) -> tuple[str, ...]:
    start = cursor.token
    cursor.expect("(")
    if cursor.at(")"):
        raise ReplaceUsingNoKeyError.from_flow(flow, **cursor.place(start))
    keys: dict[str, str] = {}
    while True:
        token = cursor.token
        key = parse_identifier(cursor, "name of a key column")
        if key.lower() in keys:
            raise ReplaceUsingDuplicateKeyError.from_flow(flow, key=key, **cursor.place(token))
        keys[key.lower()] = key
        if not cursor.accept(","):
            break
    if not cursor.accept(")"):
        hint = None
        if cursor.at("."):
            hint = "a key is a column of the query; give a field a name of its own there"
        raise cursor.unexpected(",", ")", hint=hint)
    return tuple(keys.values())


def _sequence_ends(start: int) -> Callable[[Cursor], bool]:
    """Whether a sequence expression that starts at the mark ends before the next token."""

    def ends(cursor: Cursor) -> bool:
        word = cursor.token.word
        if word in {"SELECT", ","} or cursor.at("BY", "NAME"):
            return True
        # Columns may be named like these: not at the start, nor as a field after a dot.
        if cursor.mark == start or cursor.ahead(-1).word == ".":
            return False
        if word == "(":
            return cursor.ahead(1).word in QUERY_STARTS
        return word == "BY" or word in QUERY_STARTS

    return ends


def _accept_once(cursor: Cursor) -> Token | None:
    token = cursor.token
    return token if cursor.accept("ONCE") else None


def _refuse_once(cursor: Cursor, flow: str) -> None:
    if cursor.at("ONCE"):
        raise ReplaceUsingWithOnceError.from_flow(flow, **cursor.place())


def _check_no_sequence(cursor: Cursor, flow: str) -> None:
    if cursor.at("SEQUENCE", "BY"):
        raise SequenceByWithoutReplaceUsingError.from_flow(flow, **cursor.place())


def _refuse_other_kinds(cursor: Cursor) -> None:
    """Refuse the flows of Lakeflow that millpond knows of and does not have."""
    for words in (("AUTO", "CDC"), ("APPLY", "CHANGES"), ("REPLACE", "WHERE")):
        if cursor.at(*words):
            raise SqlFlowNotSupportedError.from_kind(" ".join(words), **cursor.place())
