"""A whole source file: each statement read on its own, so that every problem is found at once."""

from __future__ import annotations

from collections.abc import Mapping

from millpond.definitions import Dataset, Flow, Pipeline
from millpond.errors import MillpondError
from millpond.errors.sql import (
    SqlFlowNotSupportedError,
    SqlStatementNotSupportedError,
    SqlSyntaxError,
)
from millpond.sql.create import parse_create
from millpond.sql.cursor import Cursor
from millpond.sql.positions import ExpandedText, SourceText
from millpond.sql.session import Session
from millpond.sql.settings import parse_set, parse_use
from millpond.sql.statements import RawStatement, prepare, split
from millpond.sql.tokens import keywords
from millpond.sql.variables import MAX_PROBLEMS, expand

# How much text the values of variables may come to in one file.
MAX_REPLACED_CHARS = 2_000_000

_BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"

_ACTIONS = keywords(
    "ALTER ANALYZE BEGIN CACHE CALL CLEAR COMMENT COPY DECLARE DELETE DESC DESCRIBE DROP EXECUTE "
    "EXPLAIN GRANT INSERT LIST LOAD MERGE MSCK OPTIMIZE REFRESH REPAIR RESET RESTORE REVOKE SELECT "
    "SHOW TABLE TRUNCATE UNCACHE UNDROP UPDATE VACUUM VALUES WITH FROM"
)


def parse_file(
    text: str,
    *,
    file: str,
    catalog: str,
    schema: str,
    configuration: Mapping[str, str],
) -> tuple[Pipeline, list[MillpondError]]:
    """Read the definitions of a SQL source file.

    Args:
        text: The file's text; a byte order mark is taken off.
        file: Its name for messages, as the user would write it.
        catalog: Default catalog, until the file says `USE CATALOG`.
        schema: Default schema, until the file says `USE SCHEMA`.
        configuration: The pipeline's settings, for `${name}` and `:name`.

    Returns:
        What the statements without a problem define, and the problems in the order of the file;
        after `MAX_PROBLEMS` of them the rest of the file is not read.
    """
    source = SourceText(text.removeprefix(_BYTE_ORDER_MARK), file)
    session = Session(catalog=catalog, schema=schema, configuration=configuration)
    datasets: list[Dataset] = []
    flows: list[Flow] = []
    problems: list[MillpondError] = []
    for part in split(source):
        if len(problems) >= MAX_PROBLEMS:
            break
        if not isinstance(part, RawStatement):
            problems.append(part)
            continue
        try:
            found = _parse_statement(source, part, session, problems)
        except MillpondError as problem:
            problems.append(problem)
        else:
            datasets.extend(found.datasets)
            flows.extend(found.flows)
    problems.sort(key=_place)
    return Pipeline(tuple(datasets), tuple(flows)), problems


def _parse_statement(
    source: SourceText, raw: RawStatement, session: Session, problems: list[MillpondError]
) -> Pipeline:
    expanded, unknown = expand(
        source,
        raw.tokens,
        span=raw.span,
        variables=session.variables,
        parameters=session.configuration,
    )
    if unknown:
        problems.extend(unknown)
        return Pipeline()
    _check_growth(expanded, session)
    cursor = Cursor(prepare(expanded, raw))
    if cursor.at("CREATE"):
        return parse_create(cursor, session)
    if cursor.at("SET"):
        parse_set(cursor, session)
        return Pipeline()
    if cursor.at("USE"):
        parse_use(cursor, session)
        return Pipeline()
    if cursor.at("APPLY", "CHANGES") or cursor.at("AUTO", "CDC"):
        kind = f"{cursor.token.word} {cursor.ahead(1).word}"
        raise SqlFlowNotSupportedError.from_kind(kind, **cursor.place())
    if cursor.at_any(_ACTIONS):
        raise SqlStatementNotSupportedError.from_statement(cursor.token.word, **cursor.place())
    raise cursor.unexpected("CREATE", "SET", "USE")


def _check_growth(expanded: ExpandedText, session: Session) -> None:
    """Values of values, or long ones put in often, would fill the memory before anything fails."""
    chars = sum(len(replacement.value) for replacement in expanded.replacements)
    if session.replaced_chars + chars > MAX_REPLACED_CHARS:
        start, end, _ = expanded.replacements[0]
        raise SqlSyntaxError.from_growth(
            MAX_REPLACED_CHARS,
            where=expanded.source.location(start),
            detail=expanded.source.caret(start, end),
        )
    session.replaced_chars += chars


def _place(problem: MillpondError) -> tuple[int, int]:
    where = problem.where
    return (where.line or 0, where.column or 0) if where else (0, 0)
