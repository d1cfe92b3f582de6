"""Steps that look at one row at a time: projection, filter, renaming, generators, hints."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.STATELESS, OperatorKind.GENERATOR)


def refusal(_operator: Operator) -> Refusal | None:
    """They give the same rows however the stream is cut into batches."""
    return None
