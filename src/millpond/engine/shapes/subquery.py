"""Subqueries in expressions, and queries that read themselves.

A subquery that reads tables only is looked up as the tables are at each batch, like the static side
of a join. Refused are forms in which the engine gives wrong rows, or which it can't compute.
"""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal, SubqueryForm

KINDS = (OperatorKind.SUBQUERY, OperatorKind.RECURSION)

_RECURSION = Refusal(
    reason="a stream can't be read by the query that it comes from",
    instead="recurse in a materialized view that reads the target table",
)
_OF_STREAM = Refusal(
    reason="only a subquery in FROM may read a stream",
    instead="join the stream in FROM, or read it as a table, without STREAM or readStream",
)
_BY_FORM = {
    SubqueryForm.IN_VALUE: Refusal(
        reason="the engine knows it only as a condition of WHERE, joined to others with AND",
        instead="write EXISTS with the comparison inside, or join with the other table",
    ),
    SubqueryForm.EXISTS_OF_TOTAL: Refusal(
        reason="an aggregate without GROUP BY always gives a row, which the engine does not see",
        instead="leave the aggregate out of the subquery, or compare its value",
    ),
    SubqueryForm.JOIN_CONDITION: Refusal(
        reason="the engine can't compute it in the condition of a join",
        instead="move it to WHERE, or into a subquery in FROM on the side that it is about",
    ),
}


def refusal(operator: Operator) -> Refusal | None:
    """Rows of a stream come once, so they can't be looked up again and again."""
    if operator.kind is OperatorKind.RECURSION:
        return _RECURSION
    if any(rows.streaming for rows in operator.inputs[1:]) or operator.subquery is None:
        return _OF_STREAM
    return _BY_FORM.get(operator.subquery)
