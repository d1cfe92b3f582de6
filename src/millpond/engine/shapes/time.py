"""Watermarks, and windows of time."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.WATERMARK, OperatorKind.TIME_WINDOW, OperatorKind.STATEFUL_FUNCTION)


def refusal(operator: Operator) -> Refusal | None:
    """State that lives as long as event time allows is not kept."""
    if operator.kind is OperatorKind.STATEFUL_FUNCTION:
        return Refusal(
            reason="it keeps state of its own between batches",
            instead="compute it in a materialized view that reads the target table",
        )
    return Refusal(
        reason="state over event time is not kept between batches",
        instead="leave it out; group by window() in a materialized view that reads the target "
        "table",
    )
