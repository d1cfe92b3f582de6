"""Functions of the user's that keep state: applyInPandasWithState() and transformWithState()."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.STATEFUL_FUNCTION,)


def refusal(_operator: Operator) -> Refusal | None:
    """Their state, timers and timeouts have a form of their own, which is not kept here."""
    return Refusal(
        reason="state that a function of your own keeps between batches is not stored",
        instead="use DISTINCT, a join of two streams or a time window, or compute it in a "
        "materialized view that reads the target table",
    )
