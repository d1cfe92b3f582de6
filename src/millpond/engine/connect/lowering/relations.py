"""Reads what stands in FROM: tables, subqueries and joins, each with where it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.engine.connect.lowering.spans import (
    Span,
    inside,
    is_name,
    name_at,
    separated,
    top_level,
)
from millpond.engine.sqltext.blocks import QUERY_STARTS, SET_OPERATIONS, Outline
from millpond.engine.sqltext.streams import name_end
from millpond.sql.tokens import TokenKind, keywords

if TYPE_CHECKING:
    from millpond.engine.connect.lowering.grammar import Query

_JOIN_WORDS = keywords("INNER CROSS LEFT RIGHT FULL OUTER SEMI ANTI NATURAL")
# Clauses that belong to a whole query, not to its last SELECT.
TAIL = keywords("ORDER SORT CLUSTER DISTRIBUTE WINDOW LIMIT OFFSET")
_EXTRAS = keywords("TABLESAMPLE REPEATABLE PIVOT UNPIVOT")


@dataclass(frozen=True)
class Item:
    """A table, subquery or parenthesised join, with what belongs to it.

    Attributes:
        core: What is read, without watermark and alias.
        names: Parts of a table's name; empty where it is none.
        name_start: Token at which the name starts.
        query: Of a subquery.
        relations: Of a join in parentheses.
        watermark: Tokens of its WATERMARK clause.
        alias: Its alias, or `None`.
        columns: Names that the alias gives to columns.
        options: Tokens of its `WITH (...)`.
        extra: First token of a TABLESAMPLE, PIVOT or the like, or `None`.
        unread: First token of what is none of these, or `None`.
        lateral: Whether LATERAL stands before it.
    """

    span: Span
    core: Span
    names: tuple[str, ...] = ()
    name_start: int = 0
    query: Query | None = None
    relations: tuple[Relation, ...] = ()
    watermark: Span | None = None
    alias: str | None = None
    columns: tuple[str, ...] = ()
    options: Span | None = None
    extra: int | None = None
    unread: int | None = None
    lateral: bool = False


@dataclass(frozen=True)
class Join:
    """A join with what stands to its right.

    Attributes:
        at: Its word JOIN.
        words: The words before JOIN.
        rest: Tokens that are no part of a join, such as a PIVOT behind it.
    """

    at: int
    words: tuple[str, ...]
    item: Item
    on: Span | None = None
    using: tuple[str, ...] = ()
    rest: Span | None = None


@dataclass(frozen=True)
class Relation:
    """What stands between two commas of FROM; `comma` is the one before it."""

    item: Item
    joins: tuple[Join, ...]
    comma: int | None = None


class RelationReader:
    """Reads FROM clauses of one text.

    Args:
        watermarks: Start and end offset of each WATERMARK clause.
        query: Reads a query.
    """

    def __init__(
        self, outline: Outline, watermarks: Mapping[int, int], query: Callable[[Span], Query]
    ) -> None:
        self._outline = outline
        self._watermarks = watermarks
        self._query = query

    def relations(self, span: Span) -> tuple[Relation, ...]:
        return tuple(
            self._relation(part, comma=part.start - 1 if part.start > span.start else None)
            for part in separated(self._outline, span)
        )

    def _relation(self, span: Span, *, comma: int | None) -> Relation:
        joins = [at for at in top_level(self._outline, span) if self._is_join(span, at)]
        heads = [self._head(span, at) for at in joins]
        ends = [*heads, span.end][1:]
        item = self._item(Span(span.start, heads[0] if heads else span.end))
        found = [
            self._join(Span(head, end), at)
            for head, at, end in zip(heads, joins, ends, strict=True)
        ]
        return Relation(item, tuple(found), comma)

    def _is_join(self, span: Span, index: int) -> bool:
        return (
            self._outline.word(index) == "JOIN"
            and index > span.start
            and self._outline.word(index - 1) != "."
        )

    def _head(self, span: Span, join: int) -> int:
        """The first of the words that tell the type of a join."""
        index = join
        while index - 1 > span.start and self._outline.word(index - 1) in _JOIN_WORDS:
            index -= 1
        return index

    def _join(self, span: Span, at: int) -> Join:
        outline = self._outline
        words = tuple(outline.word(index) for index in range(span.start, at))
        criteria = next(
            (index for index in top_level(outline, Span(at + 1, span.end)) if self._is_on(index)),
            span.end,
        )
        item = self._item(Span(at + 1, criteria))
        if outline.word(criteria) == "ON" and criteria < span.end:
            return Join(at, words, item, on=Span(criteria + 1, span.end))
        if criteria == span.end:
            return Join(at, words, item)
        columns = inside(outline, criteria + 1)
        using = tuple(name_at(outline, part.start) for part in separated(outline, columns))
        return Join(at, words, item, using=using, rest=Span(columns.end + 1, span.end))

    def _is_on(self, index: int) -> bool:
        word = self._outline.word(index)
        return word == "ON" or (word == "USING" and self._outline.word(index + 1) == "(")

    def _item(self, span: Span) -> Item:
        outline = self._outline
        lateral = outline.word(span.start) == "LATERAL"
        start = span.start + lateral
        if outline.word(start) == "(":
            return self._parenthesised(span, start, lateral=lateral)
        stream = outline.word(start) == "STREAM" and self._names_stream(start)
        in_parentheses = stream and outline.word(start + 1) == "("
        first = start + stream + in_parentheses
        if not is_name(outline, first):
            return Item(span, Span(start, span.end), lateral=lateral, unread=start)
        behind = name_end(outline, first)
        names = tuple(name_at(outline, index) for index in range(first, behind, 2))
        if not stream and outline.word(behind) == "(" and behind < span.end:
            call = Span(start, outline.closing(behind) + 1)
            return self._finished(span, call, lateral=lateral)
        core = Span(start, self._travelled(behind + in_parentheses))
        return self._finished(span, core, lateral=lateral, names=names, name_start=first)

    def _names_stream(self, index: int) -> bool:
        outline = self._outline
        follows = outline.tokens[index + 1] if index + 1 < len(outline.tokens) else None
        if follows is None:
            return False
        named = follows.kind in {TokenKind.WORD, TokenKind.QUOTED}
        return follows.word == "(" or (named and follows.word not in {"AS", "WATERMARK"})

    def _travelled(self, index: int) -> int:
        """Behind `VERSION AS OF 3` and the like."""
        outline = self._outline
        at = index + 1 if outline.word(index) == "FOR" else index
        travels = (outline.word(at + 1), outline.word(at + 2)) == ("AS", "OF")
        return at + 4 if travels else index

    def _parenthesised(self, span: Span, start: int, *, lateral: bool) -> Item:
        body = inside(self._outline, start)
        core = Span(start, body.end + 1)
        if self._is_query(body):
            return self._finished(span, core, lateral=lateral, query=self._query(body))
        return self._finished(span, core, lateral=lateral, relations=self.relations(body))

    def _is_query(self, span: Span) -> bool:
        outline = self._outline
        if outline.word(span.start) in QUERY_STARTS:
            return True
        if outline.word(span.start) != "(":
            return False
        behind = outline.closing(span.start) + 1
        ends = behind >= span.end or outline.word(behind) in SET_OPERATIONS | TAIL
        return ends and self._is_query(inside(outline, span.start))

    def _finished(self, span: Span, core: Span, **known: object) -> Item:
        """The item with what stands behind what it reads."""
        outline, index = self._outline, core.end
        found: dict[str, object] = {}
        while index < span.end:
            start, word = outline.tokens[index].start, outline.word(index)
            if start in self._watermarks:
                end = outline.index_at(self._watermarks[start] - 1) + 1
                found["watermark"], index = Span(index, end), end
            elif word == "WITH" and outline.word(index + 1) == "(":
                end = outline.closing(index + 1) + 1
                found["options"], index = Span(index, end), end
            elif word in _EXTRAS and outline.word(index + 1) == "(":
                found.setdefault("extra", index)
                if word in {"PIVOT", "UNPIVOT"}:
                    # It gives a table of its own, with its own alias.
                    found.pop("alias", None)
                index = outline.closing(index + 1) + 1
            elif "alias" not in found and is_name(outline, index):
                alias, index = self._alias(index, span.end)
                found.update(alias)
            else:
                found["unread"] = index
                break
        return Item(span, core, **known, **found)  # type: ignore[arg-type]  # by the fields' names

    def _alias(self, index: int, end: int) -> tuple[dict[str, object], int]:
        """An alias with its columns, and the index behind it."""
        outline = self._outline
        at = index + 1 if outline.word(index) == "AS" else index
        behind = at + 1
        found: dict[str, object] = {"alias": name_at(outline, at)}
        if outline.word(behind) == "(" and behind < end:
            parts = separated(outline, inside(outline, behind))
            found["columns"] = tuple(name_at(outline, part.start) for part in parts)
            behind = outline.closing(behind) + 1
        return found, behind
