"""Which columns are event times: those with a watermark, and windows of time over such a column.

The mark is metadata of the column. The engine hands it on with the column itself, to subqueries,
aliases, joins and unions, but not through functions: for windows it is set here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql.connect import proto
from pyspark.sql.types import StructField, StructType

from millpond.engine.connect.expressions import attribute, digest, fingerprint
from millpond.engine.connect.windows import named_column, named_time
from millpond.names import quote_identifier

# That a column is an event time, and how much later than for others an operator must take the
# watermark to be for its rows, in microseconds: what a join gives is as old as the rows that it
# kept. The engine has all metadata as text, and leaves out what two sides of a union differ in.
WATERMARK = "millpond.watermark"
# What a window is computed by, and over which.
WINDOW = "millpond.window"
_MARKS = frozenset({WATERMARK, WINDOW})
_FUNCTIONS = frozenset({"window", "window_time"})

Marks = Mapping[str, str]
# Those of a column that gets a watermark.
EVENT_TIME: Marks = {WATERMARK: "0"}
# The column that an expression over a relation is.
Column = Callable[[Any, Any], StructField]


def is_event_time(field: StructField) -> bool:
    """Whether there is a watermark for a column."""
    return WATERMARK in field.metadata


def late_by(schema: StructType) -> int | None:
    """The place of the column by which rows are late: a moment rather than a window around it."""
    found = [index for index, field in enumerate(schema.fields) if is_event_time(field)]
    found.sort(key=lambda index: isinstance(schema.fields[index].dataType, StructType))
    return found[0] if found else None


def behind_us(schema: StructType) -> int:
    """How far behind the watermark is for rows of a schema."""
    found = (int(f.metadata[WATERMARK]) for f in schema.fields if is_event_time(f))
    return max(found, default=0)


def further_behind(schema: StructType, us: int | None) -> StructType:
    """A schema whose rows have been kept for so long; `None` is for no one knows how long."""
    if us is None:
        return without_event_time(schema)
    fields = [
        StructField(
            field.name, field.dataType, field.nullable, {**field.metadata, WATERMARK: str(us)}
        )
        if is_event_time(field)
        else field
        for field in schema.fields
    ]
    return StructType(fields)


def with_event_time(relation: Any, name: str, found: Marks) -> Any:
    """A relation one of whose columns is marked as an event time."""
    marked = proto.Relation()
    marked.with_columns.input.CopyFrom(relation)
    alias = marked.with_columns.aliases.add()
    alias.name.append(name)
    alias.expr.CopyFrom(attribute(name))
    _mark(alias, found)
    return marked


def mark_windows(relation: Any, column: Column) -> None:
    """Mark the windows that a projection computes over event times, in place."""
    match relation.WhichOneof("rel_type"):
        case "project":
            below = relation.project.input
            for expression in relation.project.expressions:
                _mark_expression(expression, below, column)
        case "with_columns":
            below = relation.with_columns.input
            for alias in relation.with_columns.aliases:
                _mark(alias, _marks_of_window(alias.expr, below, column))


def mark_columns(expressions: Iterable[Any], column: str, found: Marks) -> None:
    """Mark those expressions that are a column of event time, in place."""
    for expression in expressions:
        if expression.WhichOneof("expr_type") != "expression_string":
            continue
        named = named_column(expression.expression_string.expression)
        if named is not None and named[0].lower() == column.lower():
            reference = expression.alias.expr.unresolved_attribute
            reference.unparsed_identifier = quote_identifier(column)
            expression.alias.name.append(named[1])
            _mark(expression.alias, found)


def marks_of(expression: Any, below: Any, column: Column) -> Marks:
    """The marks of an event time; none for what is no event time."""
    if _is_window(expression):
        found = marks_of(expression.unresolved_function.arguments[0], below, column)
        return _with_window(found, fingerprint(expression))
    if expression.WhichOneof("expr_type") == "expression_string":
        named = named_time(expression.expression_string.expression)
        if named is not None:
            return _with_window(marks_of(named[0].arguments[0], below, column), named[0].form)
    metadata = column(below, expression).metadata
    return {key: metadata[key] for key in _MARKS & metadata.keys()} if WATERMARK in metadata else {}


def without_event_time(schema: StructType) -> StructType:
    """A schema that says nothing of watermarks: tables don't."""
    fields = [
        StructField(
            field.name,
            field.dataType,
            field.nullable,
            {key: value for key, value in field.metadata.items() if key not in _MARKS},
        )
        for field in schema.fields
    ]
    return StructType(fields)


def _mark_expression(expression: Any, below: Any, column: Column) -> None:
    kind = expression.WhichOneof("expr_type")
    if kind == "expression_string":
        _mark_text(expression, below, column)
        return
    found = _marks_of_window(
        expression.alias.expr if kind == "alias" else expression, below, column
    )
    if not found:
        return
    if kind != "alias":
        function = expression.unresolved_function.function_name.lower()
        if function != "window":
            return
        inner = proto.Expression()
        inner.CopyFrom(expression)
        expression.alias.expr.CopyFrom(inner)
        expression.alias.name.append(function)
    _mark(expression.alias, found)


def _mark_text(expression: Any, below: Any, column: Column) -> None:
    """Mark a window that is text, with a name behind it or its own."""
    named = named_time(expression.expression_string.expression)
    if named is None:
        return
    window, name = named
    if name is None and window.function != "window":
        return
    found = marks_of(window.arguments[0], below, column)
    if found:
        expression.alias.expr.CopyFrom(window.call)
        expression.alias.name.append(name or window.function)
        _mark(expression.alias, _with_window(found, window.form))


def _with_window(found: Marks, form: Any) -> Marks:
    return {**found, WINDOW: digest([form, found.get(WINDOW)])} if found else found


def _marks_of_window(expression: Any, below: Any, column: Column) -> Marks:
    return marks_of(expression, below, column) if _is_window(expression) else {}


def _is_window(expression: Any) -> bool:
    if expression.WhichOneof("expr_type") != "unresolved_function":
        return False
    function = expression.unresolved_function
    return function.function_name.lower() in _FUNCTIONS and len(function.arguments) > 0


def _mark(alias: Any, found: Marks) -> None:
    if found:
        metadata = json.loads(alias.metadata) if alias.HasField("metadata") else {}
        alias.metadata = json.dumps({**metadata, **found})
