"""Tells whether a query's operators can go on with what those of an earlier update kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millpond.errors import SourceLocation
from millpond.errors.state import StateIncompatibleError

# What a description says of an operator for messages: what the user calls it, and the file, line
# and column where it stands.
SHOWN = frozenset({"name", "where"})
# What may have changed, in words. The first that did is told.
_WORDS: Mapping[str, str] = {
    "streams": "what {name} reads",
    "type": "the type of {name}",
    "keys": "the columns that {name} compares",
    "count": "the number of {name}",
    "window": "the window of {name}",
    "session_keys": "what {name} tells sessions apart by",
    "computed": "what {name} groups by",
    "condition": "the condition of {name}",
    "using": "the columns of {name}",
    "columns": "the columns that come to {name}",
    "sides": "the columns that come to {name}",
    "column": "the column of {name}",
    "event_time": "the event time of {name}",
    "within_watermark": "how long {name} remembers a row",
    "inputs": "what comes to {name}, of which the query has more than one,",
}


def check_same(
    before: Mapping[str, Any], now: Mapping[str, Any], *, flow: str | None = None
) -> None:
    """Compare descriptions of operators, by their ids. All are plain JSON.

    Raises:
        StateIncompatibleError: They differ in more than what is `SHOWN`.
    """
    if gone := sorted(before.keys() - now.keys()):
        names = [_name(operator, before) for operator in gone]
        raise StateIncompatibleError.from_removed(names, flow=flow)
    if new := sorted(now.keys() - before.keys()):
        names = [_name(operator, now) for operator in new]
        raise StateIncompatibleError.from_added(names, flow=flow, where=_where(now[new[0]]))
    for operator in now:
        _check_operator(operator, before, now, flow=flow)


def _check_operator(
    operator: str, before: Mapping[str, Any], now: Mapping[str, Any], *, flow: str | None
) -> None:
    old, new = before[operator], now[operator]
    parts = [*_WORDS, *sorted((old.keys() | new.keys()) - _WORDS.keys() - SHOWN)]
    changed = next((part for part in parts if _differ(part, old.get(part), new.get(part))), None)
    if changed is None:
        return
    words = _WORDS.get(changed, f"{changed} of {{name}}")
    raise StateIncompatibleError.from_operator(
        words.format(name=_name(operator, now)),
        before=_text(old.get(changed)),
        now=_text(new.get(changed)),
        flow=flow,
        where=_where(new),
    )


def _differ(part: str, old: Any, new: Any) -> bool:
    if part == "streams" and old is not None and new is not None and len(old) == len(new):
        # Rows of a stream that comes in are rows like others. One that is gone was exchanged.
        return any(set(before) - set(now) for before, now in zip(old, new, strict=True))
    return bool(old != new)


def _name(operator: str, descriptions: Mapping[str, Any]) -> str:
    return str(descriptions[operator].get("name", operator))


def _where(description: Mapping[str, Any]) -> SourceLocation | None:
    where = description.get("where")
    return None if where is None else SourceLocation(*where)


def _text(value: Any) -> str | None:
    """What can be shown of a part of a description; `None` where that tells a reader nothing."""
    match value:
        case str() | int():
            return str(value)
        case {"expressionString": str(text)}:
            return text
        case [*parts] if all(isinstance(part, str) for part in parts):
            return ", ".join(parts)
        case [*parts]:
            texts = [_text(part) for part in parts]
            return None if None in texts else "; ".join(map(str, texts))
    return None
