"""ORDER BY, SORT BY, CLUSTER BY and sort()."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.SORT,)


def refusal(_operator: Operator) -> Refusal | None:
    """The rows of a table have no order."""
    return Refusal(
        reason="a stream has no end to sort up to, and the rows of a table have no order",
        instead="leave it out, and sort in the query that reads the table",
    )
