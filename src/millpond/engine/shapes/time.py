"""Watermarks, and windows of time."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.WATERMARK, OperatorKind.TIME_WINDOW)

_NO_WATERMARK = Refusal(
    reason="a time window needs a watermark, which says when the window is complete",
    instead="set one on the column below, WATERMARK ts DELAY OF INTERVAL 10 MINUTES or "
    "withWatermark('ts', '10 minutes')",
    unless_watermark=True,
)


def refusal(operator: Operator) -> Refusal | None:
    """A watermark can always be set."""
    if operator.kind is OperatorKind.TIME_WINDOW and not operator.has_watermark:
        return _NO_WATERMARK
    return None
