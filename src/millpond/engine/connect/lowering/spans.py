"""Stretches of a query's text, counted in tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millpond.engine.sqltext.blocks import Outline
from millpond.sql.tokens import TokenKind, identifier_value


@dataclass(frozen=True)
class Span:
    """The tokens from index `start` to before index `end`."""

    start: int
    end: int

    def __bool__(self) -> bool:
        return self.start < self.end


def top_level(outline: Outline, span: Span) -> Iterator[int]:
    """Indexes of the tokens that stand in no parenthesis of the span; opening ones included."""
    index, brackets = span.start, 0
    while index < span.end:
        word = outline.word(index)
        brackets += {"[": 1, "]": -1}.get(word, 0)
        if not brackets:
            yield index
        index = outline.closing(index) + 1 if word == "(" else index + 1


def separated(outline: Outline, span: Span) -> Iterator[Span]:
    """What stands between the commas of a span."""
    start = span.start
    for index in top_level(outline, span):
        if outline.word(index) == ",":
            yield Span(start, index)
            start = index + 1
    if start < span.end:
        yield Span(start, span.end)


def inside(outline: Outline, opening: int) -> Span:
    """What stands in the parenthesis that opens at an index."""
    return Span(opening + 1, outline.closing(opening))


def is_name(outline: Outline, index: int) -> bool:
    """Whether a token can be an identifier."""
    if not 0 <= index < len(outline.tokens):
        return False
    return outline.tokens[index].kind in {TokenKind.WORD, TokenKind.QUOTED}


def name_at(outline: Outline, index: int) -> str:
    """The name that a token stands for."""
    return identifier_value(outline.tokens[index])
