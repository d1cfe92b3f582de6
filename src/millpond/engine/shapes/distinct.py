"""SELECT DISTINCT, distinct() and dropDuplicates()."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.DISTINCT,)


def refusal(_operator: Operator) -> Refusal | None:
    """Rows of earlier batches would have to be remembered."""
    return Refusal(
        reason="it must remember the rows of all earlier batches",
        instead="take duplicates out in a materialized view that reads the target table, or let "
        "a REPLACE USING flow keep the newest rows of each key",
    )
