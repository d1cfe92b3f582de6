"""What an engine says went wrong with a query: Spark by a condition with parameters, Sail in words.

Nothing here knows of the query; `failures` finds the user's place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.errors import PySparkException

from millpond.engine.connect.plan import PLACEHOLDER
from millpond.errors.names import InvalidNameError
from millpond.names import quote_identifier, split_name
from millpond.storage import without_scratch

_MISSING_COLUMN = re.compile(r"attribute ObjectName\(\[(.*?)\]\) is missing from the schema")
_IDENTIFIER = re.compile(r'Identifier\("((?:[^"\\]|\\.)*)"\)')
_MISSING_FUNCTION = re.compile(r"unknown function: (\S+)")
_SYNTAX = re.compile(r"found (.*) at \d+:\d+ expected")
_UNPLANNED = ("No field named ", "Physical plan does not support logical expression ")
_UNREADABLE = "Exception deserializing response!"
_PLACEHOLDERS = re.compile(rf"`?{PLACEHOLDER.format(number=r'[0-9]+')}`?")
_STACK = re.compile(r"\n\nStack [Tt]race.*|\s*JVM stacktrace:.*", re.DOTALL)
# Spark writes the condition before its message, and behind it the state, the place, the plan.
_CONDITION = re.compile(r"\A\s*\[[A-Z0-9_.]+\]\s*")
_BEHIND = re.compile(r"\s*SQLSTATE: [0-9A-Z]{5}.*|\s*== SQL.*", re.DOTALL)


def message_of(error: PySparkException) -> str:
    """The engine's own words."""
    return words_of(str(error.getMessage() or error))


def words_of(text: str) -> str:
    """The words of a message, without what stands around them."""
    text = _BEHIND.sub("", _CONDITION.sub("", _STACK.sub("", text)))
    return without_scratch(_PLACEHOLDERS.sub("(table)", text).strip())


def missing_column(error: PySparkException) -> tuple[str, ...]:
    """The parts of the name of a column that the engine misses; none if that is not it."""
    if _condition(error).startswith(("UNRESOLVED_COLUMN", "UNRESOLVED_USING_COLUMN")):
        return _parts(_parameters(error).get("objectName", ""))
    found = _MISSING_COLUMN.search(message_of(error))
    if found is None:
        return ()
    return tuple(part.replace('\\"', '"') for part in _IDENTIFIER.findall(found.group(1)))


def dotted(parts: Sequence[str]) -> str:
    """A name in its parts as it may be written."""
    return ".".join(map(quote_identifier, parts))


def missing_function(error: PySparkException) -> str | None:
    """The name of a function that the engine misses."""
    if _condition(error) == "UNRESOLVED_ROUTINE":
        return ".".join(_parts(_parameters(error).get("routineName", "")))
    found = _MISSING_FUNCTION.search(message_of(error))
    return None if found is None else found.group(1)


def unread_text(error: PySparkException) -> str | None:
    """The word at which the engine can't read a text any more."""
    if _condition(error).startswith("PARSE_"):
        return str(_parameters(error).get("error", "")).strip("'")
    found = _SYNTAX.search(message_of(error))
    return None if found is None else found.group(1)


def is_unplanned(error: PySparkException) -> bool:
    """Whether Sail understands a query and then can't plan it: nothing was run."""
    return message_of(error).startswith(_UNPLANNED)


def is_too_deep(error: PySparkException) -> bool:
    """Whether an engine's answer can't be read: protobuf stops at messages nested 100 deep."""
    return _UNREADABLE in message_of(error)


def names_missing(error: PySparkException) -> bool:
    """Whether an engine misses a column or function."""
    return bool(missing_column(error) or missing_function(error))


def _condition(error: PySparkException) -> str:
    return error.getCondition() or ""


def _parameters(error: PySparkException) -> dict[str, str]:
    return error.getMessageParameters() or {}


def _parts(name: str) -> tuple[str, ...]:
    try:
        return split_name(name)
    except InvalidNameError:
        return (name,)
