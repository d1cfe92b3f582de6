"""Which columns are event times: those with a watermark, and windows of time over such a column.

The mark is metadata of the column. The engine hands it on with the column itself, to subqueries,
aliases and joins, but not through functions: for windows it is set here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pyspark.sql.connect import proto
from pyspark.sql.types import StructField, StructType

# How far the watermark lags behind, in microseconds; as text, as the engine has all metadata.
WATERMARK = "millpond.watermark"
_FUNCTIONS = frozenset({"window", "window_time"})

# The column that an expression over a relation is.
Column = Callable[[Any, Any], StructField]


def with_event_time(relation: Any, name: str, lag: str) -> Any:
    """A relation one of whose columns is marked as an event time."""
    found = proto.Relation()
    found.with_columns.input.CopyFrom(relation)
    alias = found.with_columns.aliases.add()
    alias.name.append(name)
    alias.expr.unresolved_attribute.unparsed_identifier = f"`{name.replace('`', '``')}`"
    _mark(alias, lag)
    return found


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
                lag = _lag(alias.expr, below, column)
                if lag is not None:
                    _mark(alias, lag)


def lag_of(expression: Any, below: Any, column: Column) -> str | None:
    """How far the watermark of an event time lags behind; `None` for what is no event time."""
    if _is_window(expression):
        return lag_of(expression.unresolved_function.arguments[0], below, column)
    found: str | None = column(below, expression).metadata.get(WATERMARK)
    return found


def without_event_time(schema: StructType) -> StructType:
    """A schema that says nothing of watermarks: tables don't."""
    fields = [
        StructField(
            field.name,
            field.dataType,
            field.nullable,
            {key: value for key, value in field.metadata.items() if key != WATERMARK},
        )
        for field in schema.fields
    ]
    return StructType(fields)


def _mark_expression(expression: Any, below: Any, column: Column) -> None:
    is_alias = expression.WhichOneof("expr_type") == "alias"
    lag = _lag(expression.alias.expr if is_alias else expression, below, column)
    if lag is None:
        return
    if not is_alias:
        function = expression.unresolved_function.function_name.lower()
        if function != "window":
            return
        inner = proto.Expression()
        inner.CopyFrom(expression)
        expression.alias.expr.CopyFrom(inner)
        expression.alias.name.append(function)
    _mark(expression.alias, lag)


def _lag(expression: Any, below: Any, column: Column) -> str | None:
    """How far the watermark of a window lags behind, or `None` for any other expression."""
    return lag_of(expression, below, column) if _is_window(expression) else None


def _is_window(expression: Any) -> bool:
    if expression.WhichOneof("expr_type") != "unresolved_function":
        return False
    function = expression.unresolved_function
    return function.function_name.lower() in _FUNCTIONS and len(function.arguments) > 0


def _mark(alias: Any, lag: str) -> None:
    metadata = json.loads(alias.metadata) if alias.HasField("metadata") else {}
    alias.metadata = json.dumps({**metadata, WATERMARK: lag})
