"""Window functions: anything with OVER."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.WINDOW_FUNCTION,)


def refusal(_operator: Operator) -> Refusal | None:
    """Rows of other batches are in the same window."""
    return Refusal(
        reason="rows of other batches belong to the same window",
        instead="for the newest rows of each key use a REPLACE USING flow; for the rest, a "
        "materialized view that reads the target table",
    )
