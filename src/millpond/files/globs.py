"""Patterns of paths and names, as Hadoop and Auto Loader read them: `*`, `?`, `[a-c]`, `{a,b}`."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SPECIAL = frozenset("*?[]{}\\")


def is_glob(text: str) -> bool:
    """Whether a path is a pattern; a backslash makes it one, so that it can be taken off."""
    return not _SPECIAL.isdisjoint(text)


def fixed_prefix(pattern: str) -> str:
    """The folder that everything a pattern matches lies in, as far as it is written out.

    >>> fixed_prefix("/data/2026-*/x.csv")
    '/data'
    """
    parts = pattern.split("/")
    for index, part in enumerate(parts):
        if is_glob(part):
            return "/".join(parts[:index]) or "/"
    return pattern


def alternatives(pattern: str) -> list[str]:
    """The patterns that braces stand for, each without any.

    >>> alternatives("/a/{b,c{d,e}}.csv")
    ['/a/b.csv', '/a/cd.csv', '/a/ce.csv']
    """
    opening = _first(pattern, "{", start=0)
    closing = _matching_brace(pattern, opening) if opening >= 0 else -1
    if closing < 0:
        return [pattern]
    before, after = pattern[:opening], pattern[closing + 1 :]
    choices = list(_split_choices(pattern[opening + 1 : closing]))
    return [one for choice in choices for one in alternatives(f"{before}{choice}{after}")]


def to_regex(pattern: str, *, crosses_folders: bool = False) -> str:
    """A regular expression for a pattern without braces.

    Args:
        crosses_folders: Whether `*` reaches over `/`.
    """
    out: list[str] = []
    index = 0
    while index < len(pattern):
        char = pattern[index]
        if char == "\\" and index + 1 < len(pattern):
            out.append(re.escape(pattern[index + 1]))
            index += 1
        elif char == "*":
            out.append(".*" if crosses_folders else "[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[" and (end := _end_of_set(pattern, index)) > 0:
            out.append(_set(pattern[index + 1 : end]))
            index = end
        else:
            out.append(re.escape(char))
        index += 1
    return "".join(out)


def compiled(pattern: str) -> re.Pattern[str]:
    """What tells whether a whole name matches a pattern, with braces or not."""
    choices = "|".join(to_regex(one) for one in alternatives(pattern))
    return re.compile(rf"(?:{choices})\Z", re.DOTALL)


def unescaped(text: str) -> str:
    """A part of a pattern that holds nothing but backslashes, as the name that it means."""
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def has_wildcard(part: str) -> bool:
    return any(_first(part, char, start=0) >= 0 for char in "*?[")


def _first(text: str, char: str, *, start: int) -> int:
    index = start
    while index < len(text):
        if text[index] == "\\":
            index += 1
        elif text[index] == char:
            return index
        index += 1
    return -1


def _matching_brace(text: str, opening: int) -> int:
    depth = 0
    for index, char in _unescaped_chars(text):
        if index < opening:
            continue
        depth += (char == "{") - (char == "}")
        if depth == 0:
            return index
    return -1


def _split_choices(text: str) -> Iterator[str]:
    depth, start = 0, 0
    for index, char in _unescaped_chars(text):
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            yield text[start:index]
            start = index + 1
    yield text[start:]


def _unescaped_chars(text: str) -> Iterator[tuple[int, str]]:
    index = 0
    while index < len(text):
        if text[index] == "\\":
            index += 2
            continue
        yield index, text[index]
        index += 1


def _end_of_set(pattern: str, opening: int) -> int:
    # A closing bracket right at the start is a member.
    start = opening + 2 if pattern[opening + 1 : opening + 2] in {"^", "!"} else opening + 1
    return pattern.find("]", start + 1)


def _set(members: str) -> str:
    negated = members[0] in "^!"
    inside = members[1:] if negated else members
    found: list[str] = []
    index = 0
    while index < len(inside):
        low, dash, high = (
            inside[index],
            inside[index + 1 : index + 2],
            inside[index + 2 : index + 3],
        )
        if dash == "-" and high:
            # A range the wrong way round holds nothing; `re` would not take it.
            if low <= high:
                found.append(f"{re.escape(low)}-{re.escape(high)}")
            index += 3
        else:
            found.append(re.escape(low))
            index += 1
    if negated:
        return f"[^/{''.join(found)}]"
    return f"(?!/)[{''.join(found)}]" if found else "(?!)"
