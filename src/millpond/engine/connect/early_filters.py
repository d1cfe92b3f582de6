"""Filters that take effect before a watermark looks at the rows, as Spark's optimizer has it.

A condition behind a watermark that does not name the event time is evaluated before it as well:
rows that the query leaves out anyway do not move the watermark.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from pyspark.sql.connect import proto

from millpond.engine.connect.conditions import conjuncts
from millpond.engine.connect.cuts import cut_of
from millpond.engine.connect.expressions import called
from millpond.engine.connect.messages import own_expressions
from millpond.engine.connect.row_expressions import follows_from_row
from millpond.names import split_name
from millpond.sql.tokens import TokenKind, identifier_value, scan


def filter_early(relation: Any, resolves: Callable[[Any], bool]) -> None:
    """Put what a filter asks for below the watermark under it as well, in place.

    Args:
        relation: Of any kind; only a filter right behind a watermark, or behind an alias or another
            filter of it, is changed.
        resolves: Whether a relation can be analysed.
    """
    if relation.WhichOneof("rel_type") != "filter":
        return
    passed: list[Any] = []
    below = relation.filter.input
    while below.WhichOneof("rel_type") in {"filter", "subquery_alias"}:
        passed.append(below)
        below = getattr(below, below.WhichOneof("rel_type")).input
    if cut_of(below) is None or below.hint.input.WhichOneof("rel_type") != "with_watermark":
        return
    node = below.hint.input.with_watermark
    event_time = split_name(node.event_time)[-1].lower()
    early = [
        part
        for part in conjuncts(relation.filter.condition)
        if follows_from_row(part) and event_time not in _names(part)
    ]
    if not early:
        return
    filtered = proto.Relation()
    filtered.filter.input.CopyFrom(_with_names(node.input, [*reversed(passed), below.hint.input]))
    filtered.filter.condition.CopyFrom(reduce(partial(called, "and"), early))
    if resolves(filtered):
        node.input.CopyFrom(filtered)


def _with_names(relation: Any, passed: list[Any]) -> Any:
    """The relation under the aliases and numbers of the steps that stand above the watermark."""
    for step in passed:
        found = proto.Relation()
        found.common.CopyFrom(step.common)
        if step.WhichOneof("rel_type") == "subquery_alias":
            found.subquery_alias.CopyFrom(step.subquery_alias)
            found.subquery_alias.input.CopyFrom(relation)
        else:
            found.filter.input.CopyFrom(relation)
            found.filter.condition.literal.boolean = True
        relation = found
    return relation


def _names(expression: Any) -> set[str]:
    """Every name in an expression, in lower case."""
    found: set[str] = set()
    for part in (expression, *own_expressions(expression)):
        match part.WhichOneof("expr_type"):
            case "unresolved_attribute":
                found.update(split_name(part.unresolved_attribute.unparsed_identifier))
            case "expression_string":
                tokens = scan(part.expression_string.expression)
                found.update(
                    identifier_value(token)
                    for token in tokens
                    if token.kind in {TokenKind.WORD, TokenKind.QUOTED}
                )
    return {name.lower() for name in found}
