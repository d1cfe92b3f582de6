"""LIMIT, OFFSET and tail()."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.LIMIT, OperatorKind.LIMIT_OF_EXPRESSION, OperatorKind.OFFSET)


def refusal(operator: Operator) -> Refusal | None:
    """A limit counts the rows over the life of the stream: the first ones that come."""
    match operator.kind:
        case OperatorKind.LIMIT:
            return None
        case OperatorKind.LIMIT_OF_EXPRESSION:
            return Refusal(
                reason="the number of rows must be known before the stream is read",
                instead="write a number, as in LIMIT 100; ${name} puts in a value of the "
                "configuration",
            )
    return Refusal(
        reason="which rows it leaves out would depend on how the stream is cut into batches",
        instead="leave it out, or do it in a materialized view that reads the target table",
    )
