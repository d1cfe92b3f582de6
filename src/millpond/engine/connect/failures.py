"""Turns what an engine says about a query into errors with the user's place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from millpond.engine.connect.plan import PLACEHOLDER, ConnectPlan
from millpond.engine.sqltext.blocks import outline
from millpond.engine.sqltext.source import QueryText
from millpond.errors import MillpondError, SourceLocation
from millpond.errors.engine import (
    QueryAnalysisError,
    QueryRunError,
    UnresolvedColumnError,
    UnresolvedRoutineError,
)
from millpond.names import quote_identifier
from millpond.sql.tokens import TokenKind, identifier_value

_MISSING_COLUMN = re.compile(r"attribute ObjectName\(\[(.*?)\]\) is missing from the schema")
_IDENTIFIER = re.compile(r'Identifier\("((?:[^"\\]|\\.)*)"\)')
_MISSING_FUNCTION = re.compile(r"unknown function: (\S+)")
_SYNTAX = re.compile(r"found .* at \d+:\d+ expected")
_PLACEHOLDERS = re.compile(re.escape(PLACEHOLDER).replace(r"\{number\}", r"\d+"))
_STACK = re.compile(r"\n\nStack [Tt]race.*|\n\nJVM stacktrace.*", re.DOTALL)


def message_of(error: PySparkException) -> str:
    """The engine's own words."""
    text = error.getMessage() or str(error)
    return _PLACEHOLDERS.sub("(table)", _STACK.sub("", str(text))).strip()


def is_syntax_error(error: PySparkException) -> bool:
    return _SYNTAX.search(message_of(error)) is not None


@contextmanager
def analysing(plan: ConnectPlan) -> Iterator[None]:
    """Turn an engine's refusal of a plan into a `MillpondError`."""
    try:
        yield
    except PySparkException as error:
        raise analysis_error(
            message_of(error), subject="The query", where=plan.location, text=plan.text
        ) from error


@contextmanager
def running(plan: ConnectPlan) -> Iterator[None]:
    """Turn an engine's failure in a running query into a `MillpondError`."""
    try:
        yield
    except PySparkException as error:
        message = message_of(error)
        missing = _MISSING_COLUMN.search(message) or _MISSING_FUNCTION.search(message)
        if missing or is_syntax_error(error):
            raise analysis_error(
                message, subject="The query", where=plan.location, text=plan.text
            ) from error
        raise QueryRunError.of(message, where=plan.location) from error


def analysis_error(
    message: str, *, subject: str, where: SourceLocation | None, text: QueryText | None = None
) -> MillpondError:
    """The error for a query or expression that the engine can't analyse."""
    column = _MISSING_COLUMN.search(message)
    if column is not None:
        parts = [part.replace('\\"', '"') for part in _IDENTIFIER.findall(column.group(1))]
        place, caret = _find_name(text, parts)
        return UnresolvedColumnError.of(
            ".".join(quote_identifier(part) for part in parts),
            subject=subject,
            where=place or where,
            detail=caret,
        )
    function = _MISSING_FUNCTION.search(message)
    if function is not None:
        name = function.group(1)
        place, caret = _find_name(text, [name])
        return UnresolvedRoutineError.of(name, subject=subject, where=place or where, detail=caret)
    first_line, _, rest = message.partition("\n")
    return QueryAnalysisError.of(first_line, subject=subject, where=where, detail=rest)


def _find_name(
    text: QueryText | None, parts: list[str]
) -> tuple[SourceLocation | None, str | None]:
    """The place of a dotted name in a query's text: the first, since the engine does not say."""
    if text is None:
        return None, None
    tokens = outline(text.text).tokens
    wanted = [part.casefold() for part in parts]
    for index, token in enumerate(tokens):
        if token.kind not in {TokenKind.WORD, TokenKind.QUOTED}:
            continue
        found = [identifier_value(part).casefold() for part in tokens[index::2][: len(wanted)]]
        if found == wanted:
            last = tokens[index + 2 * (len(wanted) - 1)]
            return text.locate(token.start), text.caret(token.start, last.end)
    return None, None
