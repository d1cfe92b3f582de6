"""Subqueries in the expressions of a SELECT, and how each is used."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp

from millpond.engine.shapes import OperatorKind, SubqueryForm
from millpond.engine.shapes.functions import kind_of_function
from millpond.engine.sqltext.places import own_nodes


def nested_queries(select: exp.Expr) -> Iterator[exp.Query]:
    """Queries inside a query's expressions, not those that it reads from."""
    for key, value in select.args.items():
        if key in {"with_", "from_", "joins", "this", "expression"}:
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr):
                yield from queries_in(part)


def queries_in(expression: exp.Expr) -> Iterator[exp.Query]:
    """The outermost queries in an expression."""
    for node in expression.walk(prune=lambda node: isinstance(node, exp.Query)):
        if isinstance(node, exp.Query):
            yield node


def form_of(query: exp.Query, aggregates: Collection[str]) -> SubqueryForm:
    """How the expression around a subquery uses it.

    Args:
        aggregates: The user's own aggregate functions, in lower case.
    """
    parent = query.parent
    if isinstance(parent, exp.In) and parent.args.get("query") is query:
        return SubqueryForm.IN if _is_condition(parent) else SubqueryForm.IN_VALUE
    if isinstance(parent, exp.Exists):
        is_total = _is_total(query, aggregates)
        return SubqueryForm.EXISTS_OF_TOTAL if is_total else SubqueryForm.EXISTS
    return SubqueryForm.SCALAR


def _is_condition(node: exp.In) -> bool:
    """Whether null and false are the same for an IN: a row must meet it, or meet its opposite.

    The opposite only of one column, and only where nothing but AND stands around it: there the
    engine minds nulls.
    """
    parent = _parent(node)
    negated = isinstance(parent, exp.Not)
    if negated:
        if isinstance(node.this, exp.Tuple):
            return False
        parent = _parent(parent)
    around = exp.And if negated else (exp.And, exp.Or)
    while isinstance(parent, around):
        parent = _parent(parent)
    return isinstance(parent, exp.Where)


def _parent(node: exp.Expr) -> exp.Expr:
    """What a node stands in, parentheses left out."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    assert parent is not None
    return parent


def _is_total(query: exp.Expr, aggregates: Collection[str]) -> bool:
    """Whether a query aggregates all rows to one."""
    while isinstance(query, exp.Subquery):
        query = query.this
    if not isinstance(query, exp.Select) or query.args.get("group"):
        return False
    return any(_aggregates(node, aggregates) for node in own_nodes(query))


def _aggregates(node: exp.Expr, aggregates: Collection[str]) -> bool:
    if isinstance(node, exp.Window):
        return False
    if isinstance(node, exp.AggFunc):
        return not isinstance(node.parent, exp.Window)
    name = node.name if isinstance(node, exp.Anonymous) else ""
    return kind_of_function(name, aggregates) is OperatorKind.AGGREGATION
