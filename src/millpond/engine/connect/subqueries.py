"""Subqueries in the expressions of a plan, and how each is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.connect import proto

from millpond.engine.connect.messages import own_expressions
from millpond.engine.shapes import OperatorKind, SubqueryForm
from millpond.engine.shapes.functions import kind_of_function

_FORMS = {
    proto.SubqueryExpression.SUBQUERY_TYPE_SCALAR: SubqueryForm.SCALAR,
    proto.SubqueryExpression.SUBQUERY_TYPE_EXISTS: SubqueryForm.EXISTS,
    proto.SubqueryExpression.SUBQUERY_TYPE_IN: SubqueryForm.IN_VALUE,
}
# Steps that give a row for each row of an aggregate below them.
_ON_TOP = frozenset({"project", "with_columns", "subquery_alias", "filter", "limit", "to_df"})


def forms_in(relation: Any) -> dict[int, SubqueryForm]:
    """How the expressions of a relation use subqueries, by the numbers of the subqueries' plans.

    A use that is left out is none that is known, such as a table argument.
    """
    kind = relation.WhichOneof("rel_type")
    found = {
        subquery.plan_id: SubqueryForm.JOIN_CONDITION if kind == "join" else form
        for subquery in _subqueries(relation)
        if (form := _FORMS.get(subquery.subquery_type)) is not None
    }
    if kind == "filter":
        for plan_id in _conditions(relation.filter.condition, under_or=False):
            found[plan_id] = SubqueryForm.IN
    return found


def is_total(relation: Any) -> bool:
    """Whether a relation aggregates all rows to one."""
    kind = relation.WhichOneof("rel_type")
    if kind == "aggregate":
        return not relation.aggregate.grouping_expressions
    if kind == "project" and any(
        kind_of_function(expression.unresolved_function.function_name) is OperatorKind.AGGREGATION
        for expression in own_expressions(relation)
        if expression.WhichOneof("expr_type") == "unresolved_function"
    ):
        return True
    return kind in _ON_TOP and is_total(getattr(relation, kind).input)


def _subqueries(relation: Any) -> Iterator[Any]:
    for expression in own_expressions(relation):
        if expression.WhichOneof("expr_type") == "subquery_expression":
            yield expression.subquery_expression


def _conditions(expression: Any, *, under_or: bool) -> Iterator[int]:
    """Numbers of IN subqueries for which null and false are the same.

    The opposite only of one column, and only where nothing but AND stands around it: there the
    engine minds nulls.
    """
    kind = expression.WhichOneof("expr_type")
    if kind == "subquery_expression":
        yield from _plan_id_of_in(expression)
    if kind != "unresolved_function":
        return
    function = expression.unresolved_function
    match function.function_name:
        case "and" | "or" as name:
            for argument in function.arguments:
                yield from _conditions(argument, under_or=under_or or name == "or")
        case "not" if not under_or:
            (argument,) = function.arguments
            if argument.WhichOneof("expr_type") == "subquery_expression" and (
                len(argument.subquery_expression.in_subquery_values) == 1
            ):
                yield from _plan_id_of_in(argument)


def _plan_id_of_in(expression: Any) -> Iterator[int]:
    subquery = expression.subquery_expression
    if subquery.subquery_type == proto.SubqueryExpression.SUBQUERY_TYPE_IN:
        yield subquery.plan_id
