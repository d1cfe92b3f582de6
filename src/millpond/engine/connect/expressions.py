"""Builds the few expressions that millpond adds to plans."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict
from pyspark.sql.connect import proto

from millpond.names import quote_identifier
from millpond.sql.tokens import Token, TokenKind, scan

# The name of the hint that marks where a plan is cut.
CUT_HINT = "millpond_cut"
_OF_THE_RUN = frozenset({"common", "pythonUdf", "scalarScalaUdf", "javaUdf", "localRelation"})


def named(expression: Any, name: str) -> Any:
    alias = proto.Expression()
    alias.alias.expr.CopyFrom(expression)
    alias.alias.name.append(name)
    return alias


def attribute(name: str) -> Any:
    """The column of a name."""
    expression = proto.Expression()
    expression.unresolved_attribute.unparsed_identifier = quote_identifier(name)
    return expression


def text_expression(text: str) -> Any:
    """An expression given as SQL text."""
    expression = proto.Expression()
    expression.expression_string.expression = text
    return expression


def is_met(constraint: Any) -> Any:
    """Whether a constraint is true; null counts as not met."""
    return called("coalesce", constraint, literal(False))


def met_or_raised(met: Any, message: Any) -> Any:
    """True, or an error in the engine with a message: the condition of a filter.

    Spark pushes a filter below joins, and those of readers below it, so that it would see other
    rows than the user wrote. It leaves a non-deterministic one where it is, and then pushes no
    other past it either: readers of the rows pay for that with their own filters' pushdown.
    """
    nothing = called("repeat", called("uuid"), literal(0))
    error = called("raise_error", called("concat", message, nothing))
    return called("when", met, literal(True), error)


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


def literal(value: str | bool | int, /) -> Any:
    expression = proto.Expression()
    if isinstance(value, bool):
        expression.literal.boolean = value
    elif isinstance(value, int):
        expression.literal.integer = value
    else:
        expression.literal.string = value
    return expression


def fingerprint(message: Any, *, plans: Mapping[int, str] | None = None) -> Any:
    """What an expression or relation says, as JSON, the same in every run: no places, no code.

    Args:
        plans: What to call the parts of the plan that are named by their numbers; of others it is
            left out which they are.
    """
    return _steady(MessageToDict(message), plans or {})


def digest(value: Any) -> str:
    """Short text that stands for JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def plain_text(text: str) -> str:
    """SQL text without comments, in one spacing and one case."""
    return " ".join(map(plain_token, scan(text)))


def plain_token(token: Token) -> str:
    return token.text.lower() if token.kind is TokenKind.WORD else token.text


def _steady(value: Any, plans: Mapping[int, str]) -> Any:
    if isinstance(value, list):
        return [_steady(part, plans) for part in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for key, part in value.items():
        if key == "planId":
            if int(part) in plans:
                found["plan"] = plans[int(part)]
        elif key == "expressionString":
            found[key] = plain_text(part.get("expression", ""))
        elif key == "sql":
            found[key] = {**_steady(part, plans), "query": plain_text(part.get("query", ""))}
        elif key == "hint" and part.get("name") == CUT_HINT:
            # What it says of its operator is where that stands.
            found[key] = _steady(part.get("input", {}), plans)
        elif key not in _OF_THE_RUN:
            found[key] = _steady(part, plans)
    return found
