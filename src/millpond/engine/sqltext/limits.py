"""The number of rows that a LIMIT lets through."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

# What `LIMIT ALL` is in the tree.
_ALL = "ALL"
_MOST = (1 << 31) - 1


def is_all(limit: exp.Expr) -> bool:
    """Whether it is `LIMIT ALL`, which lets every row through."""
    value = limit.args.get("expression")
    return isinstance(value, exp.Var) and value.name.upper() == _ALL


def limit_count(limit: exp.Expr, parameters: Mapping[str, int] | None = None) -> int | None:
    """The number of rows, or `None` where it is not known without running something.

    Numbers may be computed with, as in `LIMIT 2 * 50`.

    Args:
        parameters: Values of named parameters, `:n`.

    >>> from sqlglot import parse_one
    >>> limit_count(parse_one("SELECT a FROM t LIMIT 2 * 50").args["limit"])
    100
    """
    value = limit.args.get("expression")
    if not isinstance(limit, exp.Limit) or not isinstance(value, exp.Expr):
        return None
    if isinstance(value, exp.Placeholder):
        return (parameters or {}).get(value.name)
    if any(value.find_all(exp.Column, exp.Query, exp.Func)):
        return None
    value = simplify(value.copy())
    if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdecimal():
        return None
    count = int(value.name)
    return count if count <= _MOST else None
