"""LIMIT, OFFSET and tail()."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.LIMIT,)


def refusal(_operator: Operator) -> Refusal | None:
    """Which rows come out would depend on how the stream is cut into batches."""
    return Refusal(
        reason="which rows come out would depend on how the stream is cut into batches",
        instead="read less at a time with the option maxFilesPerTrigger, or limit in a "
        "materialized view",
    )
