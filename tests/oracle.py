"""The closed form of REPLACE USING over plain Python values: what a target must hold, whatever came when.

`expected` knows nothing of batches, files or SQL: a group-by-max over every valid row ever read,
with Spark's equality and order. `following` is the rule for one batch, which is needed where rows
came into the table by another way. Tables in the tests are compared with both as multisets.
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
    kept: list[Row] = []
    for group in _by_key(rows, keys).values():
        highest = _highest(group, sequence)
        kept.extend(row for row in group if compare(sequence(row), highest) == 0)
    return kept


def following(
    stored: Iterable[Row],
    batch: Iterable[Row],
    *,
    keys: tuple[str, ...],
    sequence: Callable[[Row], Any],
) -> list[Row]:
    """The rows of the target after a batch of valid rows; stored rows count whoever wrote them."""
    target = _by_key(stored, keys)
    for key, group in _by_key(batch, keys).items():
        newest = _highest(group, sequence)
        incoming = [row for row in group if compare(sequence(row), newest) == 0]
        held = target.get(key, [])
        order = compare(newest, _highest(held, sequence)) if held else 1
        if order > 0:
            target[key] = incoming
        elif order == 0:
            target[key] = held + incoming
    return [row for group in target.values() for row in group]


def multiset(rows: Iterable[Row], *, columns: Iterable[str]) -> Counter[Any]:
    """Rows as a multiset of the named columns."""
    names = list(columns)
    return Counter(tuple(canonical(row[name]) for name in names) for row in rows)


def _by_key(rows: Iterable[Row], keys: tuple[str, ...]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(canonical(row[key]) for key in keys), []).append(row)
    return groups


def _highest(rows: Iterable[Row], sequence: Callable[[Row], Any]) -> Any:
    return max((sequence(row) for row in rows), key=cmp_to_key(compare))


def _compare_parts(left: Iterable[Any], right: Iterable[Any]) -> int:
    for one, other in zip(left, right, strict=False):
        if order := compare(one, other):
            return order
    return 0


def _sign(left: Any, right: Any) -> int:
    return (left > right) - (left < right)
