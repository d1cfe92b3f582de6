"""Applies the rules to the operators of a query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from millpond.engine.shapes import (
    aggregation,
    distinct,
    join,
    limit,
    pivot,
    sample,
    sort,
    stateless,
    subquery,
    time,
    union,
    window_function,
)
from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal
from millpond.errors.engine import UnsupportedStreamingOperationError

Rule = Callable[[Operator], Refusal | None]

_RULES: Mapping[OperatorKind, Rule] = {
    kind: module.refusal
    for module in (
        aggregation,
        distinct,
        join,
        limit,
        pivot,
        sample,
        sort,
        stateless,
        subquery,
        time,
        union,
        window_function,
    )
    for kind in module.KINDS
}
_NOT_KNOWN = Refusal(
    reason="millpond does not know what it means over a stream",
    instead="do it in a materialized view that reads this table",
)


def check(operators: Iterable[Operator]) -> None:
    """Raise for the first operator that can't stand over the stream that it reads.

    Raises:
        UnsupportedStreamingOperationError: There is one.
    """
    for operator in operators:
        if not operator.is_streaming:
            continue
        rule = _RULES.get(operator.kind)
        refusal = _NOT_KNOWN if rule is None else rule(operator)
        if refusal is not None:
            raise UnsupportedStreamingOperationError.of(
                operator.name,
                reason=refusal.reason,
                instead=refusal.instead,
                where=operator.where,
                detail=operator.detail,
            )
