"""UNION ALL, and the other set operations."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.UNION_ALL, OperatorKind.UNION_DISTINCT, OperatorKind.SET_OPERATION)


def refusal(operator: Operator) -> Refusal | None:
    """Streams may be put together, with nothing but streams, and without comparing rows."""
    if operator.kind is OperatorKind.SET_OPERATION:
        return Refusal(
            reason="it compares rows of all batches",
            instead="compare the tables in a materialized view",
        )
    if operator.kind is OperatorKind.UNION_DISTINCT:
        return Refusal(
            reason="streams are put together by UNION ALL only",
            instead="write UNION ALL, or SELECT DISTINCT over a subquery with UNION ALL",
        )
    if not all(operator.streaming):
        return Refusal(
            reason="the rows of the side that does not stream would come again with every batch",
            instead="read every side as a stream, or load the other rows with an append flow of "
            "its own",
        )
    return None
