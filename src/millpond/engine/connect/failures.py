"""Turns what an engine says about a query into errors with the user's place."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.errors import PySparkException

from millpond.engine.connect.answers import (
    dotted,
    is_too_deep,
    is_unplanned,
    message_of,
    missing_column,
    missing_function,
    names_missing,
    unread_text,
)
from millpond.engine.connect.messages import input_relations, own_expressions
from millpond.engine.connect.plan import ConnectPlan
from millpond.engine.connect.reads import location_of
from millpond.engine.connect.view_rows import violation_in
from millpond.engine.sqltext.analysis import TextAnalysis
from millpond.engine.sqltext.blocks import outline
from millpond.engine.sqltext.source import QueryText
from millpond.errors import MillpondError, SourceLocation
from millpond.errors.delta import DataFileUnreadableError
from millpond.errors.disk_reason import engine_disk_reason
from millpond.errors.engine import (
    QueryAnalysisError,
    QueryRunError,
    QueryTooDeepError,
    UnresolvedColumnError,
    UnresolvedRoutineError,
)
from millpond.errors.runner import StorageNotWritableError
from millpond.files.metadata import METADATA_FIELDS
from millpond.sql.tokens import TokenKind, identifier_value

_BY_ALL = re.compile(r"\bBY\s+ALL\b", re.IGNORECASE)
# How messages begin where the engine can't follow what is in a Parquet file.
_DAMAGED_FILE = re.compile(
    r"Parquet (?:argument )?error: (?!NYI|Arrow: )|Arrow: .*\b(?:ARROW:|arrow )schema\b"
)


@dataclass(frozen=True)
class Subject:
    """What an engine's words are about.

    Attributes:
        name: What messages call it.
        texts: SQL texts in it, in which a name may be found.
        relation: The plan, in whose expressions a name may be found.
        known: Columns that could be meant.
        reads_files: Whether there is `_metadata`, too.
    """

    name: str
    where: SourceLocation | None
    texts: Sequence[QueryText] = ()
    relation: Any = None
    known: Collection[str] = field(default_factory=frozenset)
    reads_files: bool = False

    @classmethod
    def of_plan(cls, plan: ConnectPlan, known: Collection[str] = frozenset()) -> Subject:
        # Of a query in SQL the sources may be parts, and other parts no text any more.
        parts = [source.source for source in plan.sources if isinstance(source, TextAnalysis)]
        texts = parts if plan.text is None else [plan.text]
        reads_files = any(read.is_files for read in plan.reads)
        return cls("The query", plan.location, texts, plan.relation, known, reads_files)


@contextmanager
def analysing(plan: ConnectPlan, known: Collection[str] = frozenset()) -> Iterator[None]:
    """Turn an engine's refusal of a plan into a `MillpondError`."""
    try:
        yield
    except PySparkException as error:
        raise analysis_error(error, Subject.of_plan(plan, known)) from error


@contextmanager
def running(plan: ConnectPlan) -> Iterator[None]:
    """Turn an engine's failure in a running query into a `MillpondError`."""
    try:
        yield
    except PySparkException as error:
        if names_missing(error):
            raise analysis_error(error, Subject.of_plan(plan)) from error
        message = message_of(error)
        told = _disk_error(message, where=plan.location) or _damage(message, where=plan.location)
        violation = violation_in(message, where=plan.location)
        if violation is None and is_unplanned(error):
            raise QueryRunError.unplanned(message, where=plan.location) from error
        raise violation or told or QueryRunError.of(message, where=plan.location) from error


def analysis_error(error: PySparkException, subject: Subject) -> MillpondError:
    """The error for a query or expression that the engine can't analyse."""
    message = message_of(error)
    told = _disk_error(message, where=subject.where) or _damage(message, where=subject.where)
    if told is None and is_too_deep(error):
        told = QueryTooDeepError.of_columns(where=subject.where)
    if told is not None:
        return told
    parts = missing_column(error)
    if parts:
        where, caret = find_name(subject, parts)
        if any(_BY_ALL.search(text.text) for text in subject.texts) and _is_all(parts):
            text = "the engine does not know BY ALL: name the columns instead."
            return QueryAnalysisError.of(
                text, subject=subject.name, where=where, detail=caret or ""
            )
        return UnresolvedColumnError.of(
            dotted(parts),
            subject=subject.name,
            known=subject.known,
            metadata=METADATA_FIELDS if subject.reads_files else (),
            where=where,
            detail=caret,
        )
    name = missing_function(error)
    if name is not None:
        where, caret = find_name(subject, [name])
        return UnresolvedRoutineError.of(name, subject=subject.name, where=where, detail=caret)
    found = unread_text(error)
    if found is not None:
        where, caret = find_name(subject, [found])
        text = f"the engine can't read it from {found!r} on."
        return QueryAnalysisError.of(text, subject=subject.name, where=where, detail=caret or "")
    first_line, _, rest = message.partition("\n")
    return QueryAnalysisError.of(first_line, subject=subject.name, where=subject.where, detail=rest)


def _disk_error(message: str, *, where: SourceLocation | None) -> MillpondError | None:
    """The error where a full disk, or the like, is why the engine failed."""
    reason = engine_disk_reason(message)
    return None if reason is None else StorageNotWritableError.from_engine(reason, where=where)


def _damage(message: str, *, where: SourceLocation | None) -> MillpondError | None:
    """The error where a damaged file is why the engine failed."""
    if _DAMAGED_FILE.match(message) is None:
        return None
    return DataFileUnreadableError.from_engine(message, where=where)


def _is_all(parts: Sequence[str]) -> bool:
    return [part.lower() for part in parts] == ["all"]


def find_name(subject: Subject, parts: Sequence[str]) -> tuple[SourceLocation | None, str | None]:
    """The first place of a dotted name, since the engine does not say which it means.

    Returns:
        The place, and the line with carets, where there is one.
    """
    wanted = [part.lower() for part in parts]
    for text in subject.texts:
        place = _place_in_text(text.text, wanted)
        if place is not None:
            return text.locate(place[0]), text.caret(*place)
    if subject.relation is not None:
        where = _place_in_plan(subject.relation, wanted)
        return where or subject.where, None
    return subject.where, None


def _place_in_text(text: str, wanted: Sequence[str]) -> tuple[int, int] | None:
    tokens = outline(text).tokens
    for index, token in enumerate(tokens):
        if token.kind not in {TokenKind.WORD, TokenKind.QUOTED}:
            continue
        found = [identifier_value(part).lower() for part in tokens[index::2][: len(wanted)]]
        if found == wanted:
            return token.start, tokens[index + 2 * (len(wanted) - 1)].end
    return None


def _place_in_plan(relation: Any, wanted: Sequence[str]) -> SourceLocation | None:
    for child in input_relations(relation):
        found = _place_in_plan(child, wanted)
        if found is not None:
            return found
    for expression in own_expressions(relation):
        kind = expression.WhichOneof("expr_type")
        if kind == "unresolved_attribute":
            text = expression.unresolved_attribute.unparsed_identifier
        elif kind == "expression_string":
            text = expression.expression_string.expression
        elif kind == "unresolved_function":
            text = expression.unresolved_function.function_name
        elif kind == "call_function":
            text = expression.call_function.function_name
        else:
            continue
        if _place_in_text(text, wanted) is not None:
            return location_of(relation)
    return None
