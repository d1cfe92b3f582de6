"""SELECT DISTINCT, distinct(), dropDuplicates() and dropDuplicatesWithinWatermark()."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.DISTINCT, OperatorKind.DISTINCT_WITHIN_WATERMARK)


def refusal(operator: Operator) -> Refusal | None:
    """Each row comes out once in the life of the stream, or in the time that its watermark gives.

    Without a watermark every key is remembered for ever, which Structured Streaming allows as well.
    """
    if operator.kind is OperatorKind.DISTINCT_WITHIN_WATERMARK and not operator.has_watermark:
        return Refusal(
            reason="no watermark says how long a row is remembered",
            instead="set one below, withWatermark('ts', '10 minutes'), or use dropDuplicates(), "
            "which remembers all",
            unless_watermark=True,
        )
    return None
