"""What stands in parentheses after a table's name: columns, expectations, table constraints."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from millpond.definitions import ColumnDefinition, Expectation, ExpectationAction
from millpond.errors.pipelines import DuplicateExpectationError
from millpond.errors.sql import DuplicateClauseError, SqlClauseNotSupportedError
from millpond.names import TableName
from millpond.sql.column_types import TYPE_NAMES, parse_type
from millpond.sql.cursor import Cursor
from millpond.sql.expressions import parse_parenthesized, parse_until
from millpond.sql.identifiers import (
    parse_columns,
    parse_identifier,
    parse_list,
    parse_parts,
    parse_string,
)
from millpond.sql.tokens import Token, TokenKind, keywords

_PROPERTY_STARTS = keywords(
    "NOT COMMENT DEFAULT GENERATED PRIMARY REFERENCES FOREIGN CONSTRAINT MASK CHECK"
)
# What may follow an informational constraint, and means nothing here.
_CONSTRAINT_OPTIONS = (
    ("NOT", "ENFORCED"),
    ("ENABLE", "NOVALIDATE"),
    ("NOT", "DEFERRABLE"),
    ("DEFERRABLE",),
    ("INITIALLY", "DEFERRED"),
    ("INITIALLY", "IMMEDIATE"),
    ("NORELY",),
    ("RELY",),
    ("MATCH", "FULL"),
    ("ON", "UPDATE", "NO", "ACTION"),
    ("ON", "DELETE", "NO", "ACTION"),
)
_MASK_HINT = "only a managed catalog can mask a column; leave the mask out"
_IDENTITY_HINT = (
    "leave the column out, or compute a key in the query, such as uuid() or a hash of its columns"
)
_CHECK_HINT = "write CONSTRAINT <name> EXPECT (<condition>) ON VIOLATION FAIL UPDATE"


@dataclass
class Specification:
    """The columns and expectations that `dataset` declares, in their order.

    Attributes:
        columns: By name in lower case, as letter case makes no difference.
        expectations: By name.
    """

    dataset: str
    columns: dict[str, ColumnDefinition] = field(default_factory=dict)
    expectations: dict[str, Expectation] = field(default_factory=dict)
    first_expectation: Token | None = None

    @property
    def schema(self) -> tuple[ColumnDefinition, ...] | None:
        return tuple(self.columns.values()) or None


def parse_specification(cursor: Cursor, dataset: TableName, *, types: bool) -> Specification:
    """The list in parentheses, or nothing.

    Args:
        types: Whether each column must have a type; else it may have a name only.
    """
    found = Specification(str(dataset))
    if cursor.at("("):
        parse_list(cursor, lambda: _parse_item(cursor, found, types=types))
    return found


def _parse_item(cursor: Cursor, found: Specification, *, types: bool) -> None:
    start = cursor.token
    if cursor.at("PRIMARY", "KEY") or cursor.at("FOREIGN", "KEY"):
        _parse_table_constraint(cursor)
    elif cursor.at("CHECK", "("):
        raise SqlClauseNotSupportedError.from_clause(
            "CHECK", hint=_CHECK_HINT, **cursor.place(start)
        )
    elif cursor.at("CONSTRAINT") and not _names_a_column(cursor):
        cursor.advance()
        _parse_constraint(cursor, found)
    else:
        column = _parse_column(cursor, types=types)
        if found.columns.setdefault(column.name.lower(), column) is not column:
            raise DuplicateClauseError.from_clause(
                f"The column {column.name}", **cursor.place(start)
            )


def _names_a_column(cursor: Cursor) -> bool:
    """Whether CONSTRAINT is the name of a column here: `constraint STRING`."""
    type_follows = cursor.ahead(1).word in TYPE_NAMES
    return type_follows and cursor.ahead(2).word not in {"EXPECT", "PRIMARY", "FOREIGN", "CHECK"}


def _parse_constraint(cursor: Cursor, found: Specification) -> None:
    token = cursor.token
    name = parse_identifier(cursor, "name of a constraint")
    if cursor.at("PRIMARY", "KEY") or cursor.at("FOREIGN", "KEY"):
        _parse_table_constraint(cursor)
        return
    if cursor.at("CHECK"):
        raise SqlClauseNotSupportedError.from_clause("CHECK", hint=_CHECK_HINT, **cursor.place())
    if not cursor.accept("EXPECT"):
        raise cursor.unexpected("EXPECT", "PRIMARY", "FOREIGN")
    constraint = parse_parenthesized(cursor, "a condition")
    action = _parse_violation(cursor)
    found.first_expectation = found.first_expectation or token
    place = cursor.place(token)
    other = found.expectations.get(name)
    if other is not None:
        problem = DuplicateExpectationError.from_name(
            name, dataset=found.dataset, first=other.location, where=place["where"]
        )
        problem.detail = place["detail"]
        raise problem
    found.expectations[name] = Expectation(name, constraint, action=action, location=place["where"])


def _parse_violation(cursor: Cursor) -> ExpectationAction:
    if not cursor.accept("ON"):
        return ExpectationAction.WARN
    cursor.expect("VIOLATION")
    if cursor.accept("DROP"):
        cursor.expect("ROW")
        return ExpectationAction.DROP
    if cursor.accept("FAIL"):
        cursor.expect("UPDATE")
        return ExpectationAction.FAIL
    raise cursor.unexpected("DROP ROW", "FAIL UPDATE")


def _parse_table_constraint(cursor: Cursor) -> None:
    """`PRIMARY KEY (..)` or `FOREIGN KEY (..) REFERENCES ..`: read, and not used."""
    if cursor.accept("PRIMARY", "KEY"):
        parse_list(cursor, lambda: _parse_key_column(cursor))
    else:
        cursor.expect("FOREIGN", "KEY")
        parse_columns(cursor)
        if not cursor.at("REFERENCES"):
            raise cursor.unexpected("REFERENCES")
        _parse_references(cursor)
    _skip_constraint_options(cursor)


def _parse_key_column(cursor: Cursor) -> None:
    parse_identifier(cursor, "column name")
    cursor.accept("TIMESERIES")


def _parse_references(cursor: Cursor) -> None:
    cursor.expect("REFERENCES")
    parse_parts(cursor, "table name")
    if cursor.at("("):
        parse_columns(cursor)


def _skip_constraint_options(cursor: Cursor) -> None:
    while any(cursor.accept(*option) for option in _CONSTRAINT_OPTIONS):
        pass


def _parse_column(cursor: Cursor, *, types: bool) -> ColumnDefinition:
    token = cursor.token
    name = parse_identifier(cursor, "column name")
    named_only = not types and (
        cursor.at_any(frozenset({",", ")"})) or cursor.at_any(_PROPERTY_STARTS)
    )
    type_text = "" if named_only else parse_type(cursor)
    column = ColumnDefinition(name=name, type_text=type_text, location=cursor.where(token))
    while (changed := _parse_property(cursor, column)) is not None:
        column = changed
    return column


def _parse_property(cursor: Cursor, column: ColumnDefinition) -> ColumnDefinition | None:
    """The column with one property more, or `None` where no property follows."""
    token = cursor.token
    if cursor.accept("NOT"):
        cursor.expect("NULL")
        return dataclasses.replace(column, nullable=False)
    if cursor.accept("COMMENT"):
        if column.comment is not None:
            raise DuplicateClauseError.from_clause("COMMENT", **cursor.place(token))
        return dataclasses.replace(column, comment=parse_string(cursor, "a comment"))
    if cursor.accept("DEFAULT"):
        default = parse_until(cursor, _ends_default)
        if not default:
            raise cursor.unexpected("an expression")
        return dataclasses.replace(column, default=default)
    if cursor.accept("GENERATED"):
        return dataclasses.replace(column, generated=_parse_generated(cursor, token))
    if cursor.at("MASK"):
        raise SqlClauseNotSupportedError.from_clause("MASK", hint=_MASK_HINT, **cursor.place())
    return column if _skip_column_constraint(cursor) else None


def _parse_generated(cursor: Cursor, start: Token) -> str:
    always = cursor.accept("ALWAYS")
    if not always:
        cursor.expect("BY", "DEFAULT")
    cursor.expect("AS")
    if cursor.at("IDENTITY"):
        raise SqlClauseNotSupportedError.from_clause(
            "An identity column (GENERATED .. AS IDENTITY)",
            hint=_IDENTITY_HINT,
            **cursor.place(start),
        )
    if not always:
        raise cursor.unexpected("IDENTITY")
    return parse_parenthesized(cursor, "an expression")


def _skip_column_constraint(cursor: Cursor) -> bool:
    """Step over an informational constraint of a column. Whether there was one."""
    named = cursor.accept("CONSTRAINT")
    if named:
        parse_identifier(cursor, "name of a constraint")
    if cursor.at("CHECK"):
        raise SqlClauseNotSupportedError.from_clause("CHECK", hint=_CHECK_HINT, **cursor.place())
    if cursor.accept("PRIMARY"):
        cursor.expect("KEY")
    elif cursor.at("FOREIGN") or cursor.at("REFERENCES"):
        if cursor.accept("FOREIGN"):
            cursor.expect("KEY")
        _parse_references(cursor)
    elif named:
        raise cursor.unexpected(
            "PRIMARY KEY",
            "REFERENCES",
            hint="an expectation is an item of its own: put a comma before CONSTRAINT",
        )
    else:
        return False
    _skip_constraint_options(cursor)
    return True


def _ends_default(cursor: Cursor) -> bool:
    """Whether the next token can't belong to a DEFAULT expression any more."""
    if cursor.token.word == "NOT":
        return cursor.ahead(1).word == "NULL"
    if cursor.token.word == "COMMENT":
        return cursor.ahead(1).kind is TokenKind.STRING
    return cursor.token.word == "," or cursor.at_any(_PROPERTY_STARTS)
