"""Turns an exception into the error of an event record."""

from __future__ import annotations

import traceback
from typing import Any

from millpond.errors import MillpondError
from millpond.events.event import ErrorRecord

# Enough to find the place; a runaway recursion must not fill the log.
MAX_FRAMES = 40
MAX_CAUSES = 5
MAX_ERRORS = 100
# One absurd value in a message must not make the log unreadable.
MAX_MESSAGE_CHARS = 20_000


def error_record(error: BaseException, *, fatal: bool) -> ErrorRecord:
    """The error with its causes, outermost first; of a group, each of its errors.

    Only exceptions that millpond did not raise on purpose carry a stack: it is what a report of a
    bug needs, and says nothing to the reader of an error that has a hint.
    """
    if isinstance(error, BaseExceptionGroup):
        described = tuple(_describe(each) for each in error.exceptions[:MAX_ERRORS])
        return ErrorRecord(fatal=fatal, exceptions=described)
    exceptions: list[dict[str, Any]] = []
    current: BaseException | None = error
    seen: set[int] = set()
    while current is not None and id(current) not in seen and len(exceptions) < MAX_CAUSES:
        seen.add(id(current))
        exceptions.append(_describe(current))
        hidden = current.__suppress_context__
        current = current.__cause__ or (None if hidden else current.__context__)
    return ErrorRecord(fatal=fatal, exceptions=tuple(exceptions))


def summary(error: BaseException) -> str:
    """The first line of an error, for a message."""
    if isinstance(error, BaseExceptionGroup):
        return f"{error.message}, the first: {summary(error.exceptions[0])}"
    if isinstance(error, MillpondError):
        return _shorten(f"[{error.error_class}] {error.what}")
    lines = str(error).strip().splitlines()
    return _shorten(f"{type(error).__name__}: {lines[0]}") if lines else type(error).__name__


def _describe(error: BaseException) -> dict[str, Any]:
    expected = isinstance(error, MillpondError)
    kind = type(error)
    return {
        "class_name": f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."),
        "error_class": error.error_class if isinstance(error, MillpondError) else None,
        "message": _shorten(str(error)),
        "stack": [] if expected else _stack(error),
    }


def _shorten(text: str) -> str:
    if len(text) <= MAX_MESSAGE_CHARS:
        return text
    return f"{text[:MAX_MESSAGE_CHARS]}... ({len(text) - MAX_MESSAGE_CHARS:,} more characters)"


def _stack(error: BaseException) -> list[dict[str, Any]]:
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    return [
        {
            "declaring_class": "",
            "method_name": frame.name,
            "file_name": frame.filename,
            "line_number": frame.lineno or 0,
        }
        for frame in reversed(frames)
    ]
