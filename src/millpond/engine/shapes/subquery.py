"""Subqueries in expressions, and queries that read themselves."""

from millpond.engine.shapes.operator import Operator, OperatorKind, Refusal

KINDS = (OperatorKind.SUBQUERY, OperatorKind.RECURSION)


def refusal(operator: Operator) -> Refusal | None:
    """Only subqueries in FROM are followed."""
    if operator.kind is OperatorKind.RECURSION:
        return Refusal(
            reason="a stream can't be read by the query that it comes from",
            instead="recurse in a materialized view that reads the target table",
        )
    return Refusal(
        reason="only subqueries in FROM are",
        instead="join the stream with the other table instead",
    )
