"""Replaces `${name}` and `:name` by values. Values are not searched again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from millpond.errors.sql import UnknownVariableError
from millpond.sql.positions import ExpandedText, Replacement, SourceText
from millpond.sql.tokens import Token, TokenKind, keywords, scan, string_literal

_VARIABLE = re.compile(r"\$\{([^\s{}]+)\}")
_PREFIX = re.compile(r"(?:conf\.|conf:|spark:|sparkconf:)")
_HOLDERS = {TokenKind.STRING, TokenKind.QUOTED, TokenKind.HINT}

# A file that has more is not read on: nobody reads them all, and each takes time and memory.
MAX_PROBLEMS = 500
# Among how many names the likely meant one of an unknown variable is looked for.
_MAX_CANDIDATES = 100

# Behind one of these a colon can't be a path into a VARIANT or the type of a struct's field.
_BEFORE_PARAMETER = keywords(
    "( , = == < > + - * / % => WHERE AND OR NOT ON HAVING LIMIT OFFSET BETWEEN IN LIKE ILIKE RLIKE "
    "SELECT WHEN THEN ELSE CASE IS BY VALUES"
)


def expand_variables(text: str, configuration: Mapping[str, str], *, file: str = "query") -> str:
    """Replace each `${name}` outside comments by its value.

    >>> expand_variables("SELECT * FROM ${schema}.t", {"schema": "sales"})
    'SELECT * FROM sales.t'

    Raises:
        UnknownVariableError: A variable has no value.
    """
    source = SourceText(text, file)
    expanded, problems = expand(
        source, tuple(scan(text)), span=(0, len(text)), variables=configuration
    )
    if problems:
        raise problems[0]
    return expanded.text


def expand(
    source: SourceText,
    tokens: Sequence[Token],
    *,
    span: tuple[int, int],
    variables: Mapping[str, str],
    parameters: Mapping[str, str] | None = None,
) -> tuple[ExpandedText, list[UnknownVariableError]]:
    """Replace the variables and parameters among the tokens of a stretch of `source`.

    Args:
        span: Start and end of the stretch.
        parameters: What `:name` stands for, or `None` to leave it alone.
    """
    replacements: list[Replacement] = []
    problems: list[UnknownVariableError] = []
    literals: dict[str, str] = {}

    for index, token in enumerate(tokens):
        if len(problems) >= MAX_PROBLEMS:
            break
        for start, end, name in _variables(token):
            value = _value(name, variables)
            if value is None:
                problems.append(_unknown(source, start, end, name, variables))
            else:
                replacements.append(Replacement(start, end, value))
        parameter = _parameter(tokens, index)
        if parameters is not None and parameter is not None:
            end = tokens[index + 1].end
            if parameter in parameters:
                if parameter not in literals:
                    literals[parameter] = string_literal(parameters[parameter])
                replacements.append(Replacement(token.start, end, literals[parameter]))
            elif tokens[index - 1].word in _BEFORE_PARAMETER:
                problems.append(_unknown(source, token.start, end, parameter, parameters))

    return ExpandedText(source, *span, tuple(replacements)), problems


def _variables(token: Token) -> Iterator[tuple[int, int, str]]:
    """Start, end and name of each `${name}` in a token."""
    if token.kind is TokenKind.VARIABLE:
        yield token.start, token.end, token.text[2:-1]
    elif token.kind in _HOLDERS and "${" in token.text:
        for match in _VARIABLE.finditer(token.text):
            yield token.start + match.start(), token.start + match.end(), match[1]


def _value(name: str, variables: Mapping[str, str]) -> str | None:
    if name in variables:
        return variables[name]
    return variables.get(_PREFIX.sub("", name, count=1))


def _parameter(tokens: Sequence[Token], index: int) -> str | None:
    """The name, where a parameter `:name` starts at `index`; after an operand it is none."""
    if tokens[index].word != ":" or not 0 < index < len(tokens) - 1:
        return None
    before, colon, name = tokens[index - 1 : index + 2]
    if name.kind is not TokenKind.WORD or name.start != colon.end:
        return None
    joined = before.end == colon.start and before.kind is not TokenKind.SYMBOL
    return None if joined or before.word in {")", "]", "}"} else name.text


def _unknown(
    source: SourceText, start: int, end: int, name: str, known: Mapping[str, str]
) -> UnknownVariableError:
    return UnknownVariableError.from_variable(
        source.text[start:end],
        name=_PREFIX.sub("", name, count=1),
        known=islice(known, _MAX_CANDIDATES),
        where=source.location(start),
        detail=source.caret(start, end),
    )
