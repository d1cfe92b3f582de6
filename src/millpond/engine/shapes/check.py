"""Applies the rules to the operators of a query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from millpond.engine.shapes import (
    aggregation,
    distinct,
    join,
    limit,
    metrics,
    pivot,
    row_numbering,
    sample,
    sort,
    stateful_function,
    stateless,
    subquery,
    time,
    union,
    window_function,
)
from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal
from millpond.errors.engine import UnsupportedStreamingOperationError

if TYPE_CHECKING:
    from millpond.engine.protocol import TableRead

Rule = Callable[[Operator], Refusal | None]
# Whether a stream that is read is a view that sets a watermark.
HasWatermark = Callable[["TableRead"], bool]

RULES: Mapping[OperatorKind, Rule] = {
    kind: module.refusal
    for module in (
        aggregation,
        distinct,
        join,
        limit,
        metrics,
        pivot,
        row_numbering,
        sample,
        sort,
        stateful_function,
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


def no_watermark(_read: TableRead) -> bool:
    """What is said of streams where no view is known."""
    return False


def check(operators: Iterable[Operator], *, has_watermark: HasWatermark = no_watermark) -> None:
    """Raise for the first operator that can't stand over the stream that it reads.

    Args:
        has_watermark: Asked where a watermark would make an operator possible.

    Raises:
        UnsupportedStreamingOperationError: There is one.
    """
    for operator in operators:
        if not operator.is_streaming:
            continue
        rule = RULES.get(operator.kind)
        refusal = _NOT_KNOWN if rule is None else rule(operator)
        if refusal is None:
            continue
        if refusal.unless_watermark and any(has_watermark(read) for read in operator.reads):
            continue
        raise _error(operator, refusal)


def check_replace_using(operators: Iterable[Operator], *, flow: str) -> None:
    """Raise for the first operator that a REPLACE USING flow may not have, and others may.

    Args:
        operators: Those of the flow's query, and of the views that it reads.

    Raises:
        UnsupportedStreamingOperationError: There is one.
    """
    for operator in operators:
        refusal = aggregation.refusal_in_replace_using(operator, flow)
        if operator.is_streaming and refusal is not None:
            raise _error(operator, refusal)


def _error(operator: Operator, refusal: Refusal) -> UnsupportedStreamingOperationError:
    return UnsupportedStreamingOperationError.of(
        operator.name,
        reason=refusal.reason,
        instead=refusal.instead,
        where=operator.where,
        detail=operator.detail,
    )
