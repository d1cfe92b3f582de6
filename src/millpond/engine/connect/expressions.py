"""Builds the few expressions that millpond adds to plans."""

from __future__ import annotations

from typing import Any

from google.protobuf.json_format import MessageToDict
from pyspark.sql.connect import proto


def named(expression: Any, name: str) -> Any:
    alias = proto.Expression()
    alias.alias.expr.CopyFrom(expression)
    alias.alias.name.append(name)
    return alias


def text_expression(text: str) -> Any:
    """An expression given as SQL text."""
    expression = proto.Expression()
    expression.expression_string.expression = text
    return expression


def is_met(constraint: Any) -> Any:
    """Whether a constraint is true; null counts as not met."""
    return called("coalesce", constraint, literal(False))


def called(name: str, *arguments: Any) -> Any:
    """A call of a function of the engine's."""
    expression = proto.Expression()
    expression.unresolved_function.function_name = name
    expression.unresolved_function.arguments.extend(arguments)
    return expression


def cast(expression: Any, type_name: str) -> Any:
    """An expression cast to a type, which is named as in SQL."""
    found = proto.Expression()
    found.cast.expr.CopyFrom(expression)
    found.cast.type_str = type_name
    return found


def literal(value: str | bool, /) -> Any:
    expression = proto.Expression()
    if isinstance(value, bool):
        expression.literal.boolean = value
    else:
        expression.literal.string = value
    return expression


def fingerprint(message: Any) -> Any:
    """What an expression says, as JSON, the same in every run: no plan numbers, no code."""
    found = MessageToDict(message)
    return _without_run(found)


def _without_run(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_run(part)
            for key, part in value.items()
            if key not in {"common", "planId", "pythonUdf", "scalarScalaUdf", "javaUdf"}
        }
    if isinstance(value, list):
        return [_without_run(part) for part in value]
    return value
