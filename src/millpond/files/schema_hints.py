"""The text of `schemaHints`: columns as Spark's DDL, but with names that reach into columns."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PART = r"(?:`[^`]+`|[^\s`.:]+)"
_NESTED_NAME = re.compile(rf"(\s*)({_PART}(?:\.{_PART})+)")


def quoted_names(hints: str) -> str:
    """The same with each name of several parts as one, since DDL has only such.

    >>> quoted_names("a INT, b.c MAP<STRING, INT>")
    'a INT, `b.c` MAP<STRING, INT>'
    """
    return ",".join(_with_quoted_name(column) for column in _columns(hints))


def _with_quoted_name(column: str) -> str:
    match = _NESTED_NAME.match(column)
    if match is None:
        return column
    return f"{match[1]}`{match[2].replace('`', '')}`{column[match.end() :]}"


def _columns(hints: str) -> Iterator[str]:
    """What stands between the commas that are in no brackets and no quotes."""
    depth, quote, start = 0, "", 0
    for index, char in enumerate(hints):
        if quote:
            quote = "" if char == quote else quote
        elif char in "`'\"":
            quote = char
        elif char == "," and depth == 0:
            yield hints[start:index]
            start = index + 1
        else:
            depth += (char in "<(") - (char in ">)")
    yield hints[start:]
