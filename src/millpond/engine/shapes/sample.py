"""TABLESAMPLE, sample() and sampleBy()."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.SAMPLE,)


def refusal(_operator: Operator) -> Refusal | None:
    """How many rows are taken, and which, is a matter of all rows. Spark refuses it, too."""
    return Refusal(
        reason="a sample is taken of a whole table, and a stream comes in batches",
        instead="filter by a hash of a column, such as pmod(xxhash64(id), 10) = 0",
    )
