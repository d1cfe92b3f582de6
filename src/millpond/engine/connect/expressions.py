"""Builds the few expressions that millpond adds to plans."""

from __future__ import annotations

from typing import Any

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


def literal(value: str | bool, /) -> Any:
    expression = proto.Expression()
    if isinstance(value, bool):
        expression.literal.boolean = value
    else:
        expression.literal.string = value
    return expression
