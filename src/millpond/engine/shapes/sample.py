"""TABLESAMPLE, sample() and sampleBy()."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.SAMPLE,)


def refusal(_operator: Operator) -> Refusal | None:
    """A batch that runs again after a failure must give the same rows."""
    return Refusal(
        reason="a batch that runs again would give other rows",
        instead="filter by a hash of a column, such as pmod(xxhash64(id), 10) = 0",
    )
