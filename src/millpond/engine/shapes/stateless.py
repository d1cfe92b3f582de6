"""Sources, and steps that look at one row at a time: projection, filter, generators, hints.

Functions that give another value at each call, such as rand(), uuid() and current_timestamp(), are
among them, below operators with state and conditions of joins as well. Of a batch that runs again
only the last attempt counts: its rows and its state are committed together, and the rows below an
operator with state are computed once for both. Spark allows them, too.
"""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.SOURCE, OperatorKind.STATELESS, OperatorKind.GENERATOR)


def refusal(_operator: Operator) -> Refusal | None:
    """They give the same rows however the stream is cut into batches."""
    return None
