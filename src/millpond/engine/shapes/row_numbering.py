"""monotonically_increasing_id()."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.ROW_NUMBERING,)


def refusal(_operator: Operator) -> Refusal | None:
    """It promises numbers that are unique in a query; over a stream there is one for each batch.

    Structured Streaming refuses it as well.
    """
    return Refusal(
        reason="its numbers begin again with every batch",
        instead="use uuid(), or a hash of the row's own columns such as xxhash64(*)",
    )
