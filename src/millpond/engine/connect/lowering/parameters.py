"""Parameters of a text, `:name` and `?`, in parts of it that the engine gets one by one.

An expression by itself has no arguments, so a parameter in it becomes the literal that it is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.connect import proto

from millpond.engine.connect.lowering.refusals import refused
from millpond.engine.sqltext.analysis import TextAnalysis
from millpond.engine.sqltext.blocks import Outline, outline
from millpond.engine.sqltext.source import Edit
from millpond.sql.tokens import TokenKind, keywords, string_literal

_OPERANDS = {TokenKind.WORD, TokenKind.QUOTED, TokenKind.STRING, TokenKind.NUMBER}
_BEFORE_VALUES = keywords(
    "SELECT DISTINCT ALL WHERE HAVING QUALIFY ON BY LIMIT OFFSET AND OR NOT IN BETWEEN LIKE ILIKE "
    "RLIKE ESCAPE DIV CASE WHEN THEN ELSE INTERVAL"
)
_SUFFIXES = {"byte": "Y", "short": "S", "integer": "", "long": "L"}


@dataclass(frozen=True)
class _Marker:
    """A parameter's first and last token, and what its argument is found by."""

    first: int
    last: int
    key: str | int


class Parameters:
    """The arguments that a text was given."""

    def __init__(self, analysis: TextAnalysis, sql: Any) -> None:
        self._analysis = analysis
        self._sql = sql
        self._markers = list(_markers(analysis.outline)) if _has_arguments(sql) else []

    def edits(self) -> list[Edit]:
        """Edits that put literals in the place of parameters.

        Parameters whose argument is no plain literal are left to `check`.
        """
        tokens = self._analysis.outline.tokens
        return [
            Edit(tokens[marker.first].start, tokens[marker.last].end, text)
            for marker in self._markers
            if (text := self._literal(marker)) is not None
        ]

    def check(self, start: int, end: int) -> None:
        """Raise if a parameter among these tokens can't be written as a literal.

        Raises:
            UnsupportedStreamingOperationError: There is one.
        """
        for marker in self._markers:
            if start <= marker.first < end and self._literal(marker) is None:
                raise refused(
                    self._analysis,
                    marker.first,
                    "A parameter that is no number or text in a query with this operation",
                    reason="the query is taken apart, and only literals go along",
                    instead="write the value into the query",
                )

    def sql(self, text: str) -> Any:
        """A part of the text, blanks in the place of the rest, with the arguments that it needs."""
        found = proto.SQL()
        found.CopyFrom(self._sql)
        found.query = text
        if not (found.pos_args or found.pos_arguments):
            return found
        keys = {self._analysis.outline.tokens[m.first].start: m.key for m in self._markers}
        part = outline(text)
        used = [keys[part.tokens[marker.first].start] for marker in _markers(part)]
        for field in ("pos_args", "pos_arguments"):
            given = list(getattr(self._sql, field))
            found.ClearField(field)
            getattr(found, field).extend(
                given[key] for key in used if isinstance(key, int) and key < len(given)
            )
        return found

    def _literal(self, marker: _Marker) -> str | None:
        sql, key = self._sql, marker.key
        if isinstance(key, str):
            if key in sql.args:
                return _text_of(sql.args[key])
            found = sql.named_arguments.get(key)
        elif key < len(sql.pos_args):
            return _text_of(sql.pos_args[key])
        else:
            found = sql.pos_arguments[key] if key < len(sql.pos_arguments) else None
        if found is None or found.WhichOneof("expr_type") != "literal":
            return None
        return _text_of(found.literal)


def _has_arguments(sql: Any) -> bool:
    return bool(sql.args or sql.pos_args or sql.named_arguments or sql.pos_arguments)


def _markers(found: Outline) -> Iterator[_Marker]:
    number = 0
    for index, token in enumerate(found.tokens):
        if token.word == "?":
            yield _Marker(index, index, number)
            number += 1
        elif token.word == ":" and found.kind(index + 1) is TokenKind.WORD:
            # Not the path of a variant, as in `value:field`.
            before = found.tokens[index - 1]
            is_operand = before.kind in _OPERANDS and before.word not in _BEFORE_VALUES
            if not is_operand and before.word not in {")", "]"}:
                yield _Marker(index, index + 1, found.tokens[index + 1].text)


def _text_of(literal: Any) -> str | None:
    kind = literal.WhichOneof("literal_type") or "null"
    value = getattr(literal, kind)
    if kind in _SUFFIXES:
        # In parentheses, since two minus signs would start a comment.
        return f"({value}{_SUFFIXES[kind]})" if value < 0 else f"{value}{_SUFFIXES[kind]}"
    if kind in {"double", "float"}:
        return f"CAST('{value!r}' AS {kind.upper()})"
    return {
        "null": "NULL",
        "boolean": str(value).upper(),
        "string": string_literal(value) if kind == "string" else None,
    }.get(kind)
