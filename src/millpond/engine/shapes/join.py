"""Joins of a stream with a table, or with another stream.

Of two streams the rows of both are kept until no match can come. When that is, only the analysis of
the columns and of the condition can tell: for an outer join it asks for a range of time.
"""

from millpond.engine.shapes.operator import JoinType, Operator, OperatorKind, Refusal

KINDS = (OperatorKind.JOIN, OperatorKind.LATERAL_JOIN)

_SET_WATERMARKS = (
    "set one on each side, WATERMARK ts DELAY OF INTERVAL 10 MINUTES or "
    "withWatermark('ts', '10 minutes'), and bound the time between the two in the condition, as "
    "in b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR; or use an inner join"
)
_NO_WATERMARK = Refusal(
    reason="without a watermark on both sides nothing shows that no match can come any more",
    instead=_SET_WATERMARKS,
    unless_watermark=True,
)
_LATERAL = Refusal(
    reason="a subquery that refers to the stream's rows is not followed",
    instead="use explode() or another generator, or an ordinary join",
)
_SEMI_OF_STREAMS = Refusal(
    reason="whether a row has a match is known only when all of the other stream was read",
    instead="read the other side as a table, without STREAM or readStream, or use an inner join",
)
_STREAM_ON_THE_RIGHT = Refusal(
    reason="with the stream on the right, rows without a match would come again with every batch",
    instead="put the stream on the left",
)
_RIGHT = Refusal(
    reason="a stream joins a table by inner join, or by left outer join with the stream on the "
    "left",
    instead="put the stream on the left and write LEFT JOIN, or use an inner join",
)
_NEITHER = Refusal(
    reason="a stream joins a table by inner join, or by left outer join with the stream on the "
    "left: rows of the table without a match would come again with every batch",
    instead="use one of these two",
)


def refusal(operator: Operator) -> Refusal | None:
    """What comes out for a row must be final, whatever later batches hold."""
    if operator.kind is OperatorKind.LATERAL_JOIN:
        return _LATERAL
    if all(operator.streaming):
        return _of_streams(operator)
    return _with_table(operator)


def _of_streams(operator: Operator) -> Refusal | None:
    if operator.join_type is JoinType.INNER:
        return None
    if operator.join_type in {JoinType.SEMI, JoinType.ANTI}:
        return _SEMI_OF_STREAMS
    return None if operator.has_watermark else _NO_WATERMARK


def _with_table(operator: Operator) -> Refusal | None:
    """The table is as it is at each batch, so no row waits for a match.

    Semi and anti joins look each row of the stream up and nothing more. As Structured Streaming
    does, they are allowed.
    """
    stream_is_left = operator.streaming[0]
    match operator.join_type:
        case JoinType.INNER:
            return None
        case JoinType.LEFT | JoinType.SEMI | JoinType.ANTI:
            return None if stream_is_left else _STREAM_ON_THE_RIGHT
        case JoinType.RIGHT:
            return _NEITHER if stream_is_left else _RIGHT
    return _NEITHER
