"""The number of rows that a LIMIT lets through."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.optimizer.simplify import simplify

from millpond.engine.sqltext.parsing import parse_query

# What `LIMIT ALL` is in the tree.
_ALL = "ALL"
_MOST = (1 << 31) - 1


def is_all(limit: exp.Expr) -> bool:
    """Whether it is `LIMIT ALL`, which lets every row through."""
    value = limit.args.get("expression")
    return isinstance(value, exp.Var) and value.name.upper() == _ALL


def limit_count(limit: exp.Expr) -> int | None:
    """The number of rows, or `None` where it is not known without running something.

    Numbers may be computed with, as in `LIMIT 2 * 50`.
    """
    value = limit.args.get("expression")
    if not isinstance(limit, exp.Limit) or not isinstance(value, exp.Expr):
        return None
    if any(value.find_all(exp.Column, exp.Query, exp.Func)):
        return None
    value = simplify(value.copy())
    if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdecimal():
        return None
    count = int(value.name)
    return count if count <= _MOST else None


def count_of_text(text: str) -> int | None:
    """The number of rows of a LIMIT whose text is known, parameters put in.

    >>> count_of_text("2 * 50")
    100
    >>> count_of_text("length('abc')")
    """
    tree = parse_query(f"SELECT 1 LIMIT {text}")
    return None if isinstance(tree, ParseError) else limit_count(tree.args["limit"])
