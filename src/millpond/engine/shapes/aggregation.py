"""GROUP BY, HAVING and aggregate functions."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.AGGREGATION,)


def refusal(_operator: Operator) -> Refusal | None:
    """A result would change with every later batch, after its row was written."""
    return Refusal(
        reason="its result would change with every later batch",
        instead="aggregate in a materialized view that reads the target table",
    )
