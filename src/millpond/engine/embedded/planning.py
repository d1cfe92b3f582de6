"""Asks the engine whether it can compute a query that it could analyse.

Sail resolves every subquery in an expression, and finds only when it plans the run that it can't
compute some of them. Planning reads no data.
"""

from __future__ import annotations

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.connect import proto

from millpond.engine.connect.answers import message_of
from millpond.engine.connect.plan import ConnectPlan
from millpond.engine.shapes import Operator, OperatorKind
from millpond.errors.engine import QueryAnalysisError

# Begins what Sail explains of a plan that it can't make.
_FAILED = "Physical plan error: "


def check_planned(plan: ConnectPlan, root: Any, client: Any) -> None:
    """Raise where a stream's rows are looked up in a subquery that can't be computed.

    Args:
        root: The plan over bound inputs.

    Raises:
        QueryAnalysisError: There is such a subquery.
    """
    subqueries = [
        operator
        for operator in plan.operators
        if operator.kind is OperatorKind.SUBQUERY and operator.is_streaming
    ]
    if not subqueries:
        return
    try:
        explained = client._analyze(  # noqa: SLF001 - as DataFrame.explain does
            "explain", plan=proto.Plan(root=root), explain_mode="simple"
        ).explain_string
    except PySparkException as error:
        raise _error(message_of(error), plan, subqueries) from error
    _, failed, problem = str(explained).partition(_FAILED)
    if failed:
        raise _error(problem, plan, subqueries)


def _error(message: str, plan: ConnectPlan, subqueries: list[Operator]) -> QueryAnalysisError:
    """The error, at the subquery if there is no other."""
    alone = subqueries[0] if len(subqueries) == 1 else None
    return QueryAnalysisError.of(
        "the engine can't compute a subquery in one of its expressions. Write it as a subquery in "
        f"FROM, and join with that. The engine says: {message.splitlines()[0]}",
        subject="The query",
        where=(alone.where if alone else None) or plan.location,
        detail=(alone.detail if alone else None) or "",
    )
