"""Joins of a stream with a table, or with another stream."""

from millpond.engine.shapes.operator import JoinType, Operator, OperatorKind, Refusal

KINDS = (OperatorKind.JOIN, OperatorKind.LATERAL_JOIN)


def refusal(operator: Operator) -> Refusal | None:
    """A stream joins a table as it is at each batch, where no row has to wait for a match."""
    if operator.kind is OperatorKind.LATERAL_JOIN:
        return Refusal(
            reason="a subquery that refers to the stream's rows is not followed",
            instead="use explode() or another generator, or an ordinary join",
        )
    if all(operator.streaming):
        return Refusal(
            reason="rows of both streams would have to be kept until their match comes",
            instead="read one of the two as a table, without STREAM or readStream",
        )
    if operator.join_type is JoinType.INNER:
        return None
    if operator.join_type is JoinType.LEFT:
        if operator.streaming[0]:
            return None
        return Refusal(
            reason="with the stream on the right, rows without a match would come again with "
            "every batch",
            instead="put the stream on the left",
        )
    return Refusal(
        reason="a stream joins a table by inner join, or by left outer join with the stream on "
        "the left",
        instead="use one of these two",
    )
