"""PIVOT and pivot(). UNPIVOT looks at one row at a time and is stateless."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.PIVOT,)


def refusal(_operator: Operator) -> Refusal | None:
    """It aggregates."""
    return Refusal(
        reason="it aggregates rows of all batches",
        instead="pivot in a materialized view that reads the target table",
    )
