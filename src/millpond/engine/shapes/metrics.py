"""observe()."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.METRICS,)


def refusal(_operator: Operator) -> Refusal | None:
    """Nobody could ask for the figures: source files only define queries."""
    return Refusal(
        reason="its figures could not be asked for",
        instead="leave it out, and count rows with expectations, which the event log keeps",
    )
