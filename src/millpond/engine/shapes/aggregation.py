"""GROUP BY, HAVING, aggregate functions, and functions over whole groups.

A group comes out once, when the watermark shows that it is complete. So there must be a watermark
below, which is asked for here, and a window of time or the watermark's column among what is grouped
by, which only the analysis of the columns can tell: it refuses with `NEEDS_WINDOW`.
"""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (
    OperatorKind.AGGREGATION,
    OperatorKind.GROUPING,
    OperatorKind.SUBTOTALS,
    OperatorKind.GROUP_BY_ALL,
    OperatorKind.GROUP_FUNCTION,
)
# What makes one row of many, whether a rule accepts it or not.
_AGGREGATING = frozenset({*KINDS, OperatorKind.PIVOT})

_ELSEWHERE = "aggregate in a materialized view that reads the target table"
_OF_ALL_ROWS = Refusal(
    reason="its result would change with every later batch",
    instead=f"{_ELSEWHERE}, or, in an append flow, group by a time window over a column with a "
    "watermark",
)
_NO_WATERMARK = Refusal(
    reason="its result would change with every later batch, as no watermark says when a group is "
    "complete",
    instead=f"{_ELSEWHERE}, or, in an append flow, set a watermark below, WATERMARK ts DELAY OF "
    "INTERVAL 10 MINUTES or withWatermark('ts', '10 minutes'), and group by a time window over "
    "its column",
    unless_watermark=True,
)
NEEDS_WINDOW = {
    "reason": "it groups by no time, so no watermark says when a group is complete",
    "instead": "add a time window over the column with the watermark, window(ts, '5 minutes'), or "
    f"that column itself to what it groups by, or {_ELSEWHERE}",
}
_SUBTOTALS = Refusal(
    reason="the totals over several groups would change with every later batch",
    instead=f"group by the columns alone, and add them up in a query over the target table, or "
    f"{_ELSEWHERE}",
)
_BY_ALL = Refusal(
    reason="what it groups by is not written down",
    instead=f"name the columns behind GROUP BY, or {_ELSEWHERE}",
)
_FUNCTION = Refusal(
    reason="the rows of a group come in several batches, and the function would see those of one",
    instead="apply it in a materialized view that reads the target table",
)


def refusal(operator: Operator) -> Refusal | None:
    """A group's row is final, so it may come out only when the group is complete."""
    match operator.kind:
        case OperatorKind.GROUPING:
            return None if operator.has_watermark else _NO_WATERMARK
        case OperatorKind.SUBTOTALS:
            return _SUBTOTALS
        case OperatorKind.GROUP_BY_ALL:
            return _BY_ALL
        case OperatorKind.GROUP_FUNCTION:
            return _FUNCTION
    return _OF_ALL_ROWS


def refusal_in_replace_using(operator: Operator, flow: str) -> Refusal | None:
    """A REPLACE USING flow gives rows of its source, of which the newest of a key stay."""
    if operator.kind not in _AGGREGATING:
        return None
    return Refusal(
        reason=f"the flow {flow} is a REPLACE USING flow, and those do not aggregate",
        instead=f"{_ELSEWHERE}, or in an append flow, grouped by a time window over a column with "
        "a watermark",
    )
