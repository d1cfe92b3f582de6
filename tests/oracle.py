"""The closed form of REPLACE USING over plain Python values: what a target must hold, whatever came when.

It knows nothing of batches, files or SQL: a group-by-max over every valid row ever read, with
Spark's equality and order. Tables in the tests are compared with it as multisets.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cmp_to_key
from typing import Any

Row = Mapping[str, Any]


def canonical(value: Any) -> Any:
    """A hashable form that is equal exactly where Spark takes two values of a type for the same."""
    match value:
        case float():
            form: Any = ("nan",) if math.isnan(value) else ("float", value + 0.0)
        case bool():
            form = ("bool", value)
        case Mapping():
            form = ("struct", *(canonical(part) for part in value.values()))
        case list() | tuple():
            form = ("array", *(canonical(part) for part in value))
        case bytearray() | memoryview():
            form = bytes(value)
        case _:
            form = value
    return form


def compare(left: Any, right: Any) -> int:
    """Spark's order of two values of one type: -1, 0 or 1. Null is the least, NaN the greatest."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if isinstance(left, Mapping):
        return _compare_parts(list(left.values()), list(right.values()))
    if isinstance(left, list | tuple):
        return _compare_parts(left, right) or _sign(len(left), len(right))
    if isinstance(left, float) and (math.isnan(left) or math.isnan(right)):
        return math.isnan(left) - math.isnan(right)
    if isinstance(left, str):
        return _sign(left.encode(), right.encode())
    return _sign(left, right)


def expected(
    rows: Iterable[Row], *, keys: tuple[str, ...], sequence: Callable[[Row], Any]
) -> list[Row]:
    """The rows that are at the highest sequence of their key, each as often as it was read."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(canonical(row[key]) for key in keys), []).append(row)
    kept: list[Row] = []
    for group in groups.values():
        highest = max((sequence(row) for row in group), key=cmp_to_key(compare))
        kept.extend(row for row in group if compare(sequence(row), highest) == 0)
    return kept


def multiset(rows: Iterable[Row], *, columns: Iterable[str]) -> Counter[Any]:
    """Rows as a multiset of the named columns."""
    names = list(columns)
    return Counter(tuple(canonical(row[name]) for name in names) for row in rows)


def _compare_parts(left: Iterable[Any], right: Iterable[Any]) -> int:
    for one, other in zip(left, right, strict=False):
        if order := compare(one, other):
            return order
    return 0


def _sign(left: Any, right: Any) -> int:
    return (left > right) - (left < right)
