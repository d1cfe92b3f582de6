"""Tells where the parts of a syntax tree stand in the text: of clauses it holds no places."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from millpond.engine.sqltext.blocks import QUERY_STARTS, Block, Outline
from millpond.engine.sqltext.parsing import identifiers

_SET_WORDS = {exp.Union: ("UNION",), exp.Except: ("EXCEPT", "MINUS"), exp.Intersect: ("INTERSECT",)}


@dataclass(frozen=True)
class Places:
    """Places are indexes of tokens; `None` where a part names nothing that stands in the text."""

    outline: Outline

    def of(self, node: exp.Expr) -> int | None:
        """The first name that stands in a part of the tree."""
        offset = first_offset(node)
        return None if offset is None else self.outline.index_at(offset)

    def of_word(self, word: str) -> int | None:
        """The first token that is a word."""
        tokens = range(len(self.outline.tokens))
        return next((at for at in tokens if self.outline.word(at) == word), None)

    def of_clause(self, node: exp.Expr, word: str) -> int | None:
        """The keyword of a clause of a query."""
        block = self.block(node)
        return None if block is None else block.words.get(word)

    def of_query(self, query: exp.Expr) -> int | None:
        """The word that begins a query in parentheses."""
        first = self.of(query)
        if first is None:
            return None
        opening = self._opening(first, before_query=True)
        return first if opening is None else opening + 1

    def of_set_operation(self, node: exp.SetOperation) -> int | None:
        """The keyword between the two sides of a set operation."""
        words = next(words for cls, words in _SET_WORDS.items() if isinstance(node, cls))
        right = self.of(node.expression)
        if right is not None:
            return self._before(right, words)
        last = max(_offsets(node.this), default=None)
        if last is None:
            return None
        behind = range(self.outline.index_at(last), len(self.outline.tokens))
        return next((at for at in behind if self.outline.word(at) in words), None)

    def of_join(self, join: exp.Join) -> int | None:
        """The word JOIN, or the comma that stands for it."""
        return self._before(self.of(join.this), ("JOIN", ","))

    def block(self, node: exp.Expr) -> Block | None:
        """The block of tokens that a query is; of several put together, that of the last."""
        if isinstance(node, exp.SetOperation):
            index = self.of_set_operation(node)
            return None if index is None else self.outline.owner[index]
        offset = next(_own_offsets(node), None)
        if offset is not None:
            return self.outline.owner[self.outline.index_at(offset)]
        for nested in _from_queries(node):
            inner = self.block(nested)
            if inner is not None:
                return inner.parent
        return None

    def watermarked(
        self, tree: exp.Query, watermarks: Sequence[tuple[int, int]]
    ) -> dict[int, tuple[int, int]]:
        """The WATERMARK clause of each table or subquery that has one, by the node's identity."""
        ends = [
            (end, node)
            for node in tree.find_all(exp.Table, exp.Subquery)
            if (end := self._end(node)) is not None
        ]
        found: dict[int, tuple[int, int]] = {}
        for start, end in watermarks:
            before = [(at, node) for at, node in ends if at <= start]
            if before:
                _, node = max(before, key=lambda one: one[0])
                found[id(node)] = (start, end)
        return found

    def _end(self, source: exp.Expr) -> int | None:
        """The offset behind a table's name, or behind the parenthesis that closes a subquery."""
        if isinstance(source, exp.Table):
            parts = identifiers(source)
            return max(part.meta["end"] for part in parts) + 1 if parts else None
        opening = self._opening_of(source)
        if opening is None:
            return None
        return self.outline.tokens[self.outline.closing(opening)].end

    def _opening_of(self, subquery: exp.Expr) -> int | None:
        inner = subquery.this
        first = self._opening_of(inner) if isinstance(inner, exp.Subquery) else self.of(inner)
        if first is None:
            return None
        return self._opening(
            first, before_query=isinstance(inner, exp.Query) and not isinstance(inner, exp.Subquery)
        )

    def _opening(self, index: int, *, before_query: bool) -> int | None:
        """The parenthesis that is open at a token: the innermost, or that of the query."""
        depth = 0
        for at in range(index - 1, -1, -1):
            word = self.outline.word(at)
            if word == ")":
                depth += 1
            elif word == "(" and depth:
                depth -= 1
            elif word == "(" and (not before_query or self.outline.word(at + 1) in QUERY_STARTS):
                return at
        return None

    def _before(self, index: int | None, words: Collection[str]) -> int | None:
        if index is None:
            return None
        return next((at for at in range(index, -1, -1) if self.outline.word(at) in words), None)


def first_offset(node: exp.Expr) -> int | None:
    """The offset of the first name in a part of the tree."""
    return min(_offsets(node), default=None)


def own_nodes(query: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of a query that are not inside a query of its own."""
    for node in query.walk(prune=lambda node: node is not query and isinstance(node, exp.Query)):
        if not isinstance(node, exp.Query):
            yield node


def _offsets(node: exp.Expr) -> Iterator[int]:
    for identifier in node.find_all(exp.Identifier):
        if "start" in identifier.meta:
            yield identifier.meta["start"]


def _own_offsets(node: exp.Expr) -> Iterator[int]:
    inside_with = {id(cte) for cte in node.find_all(exp.With)}
    for own in node.walk(
        prune=lambda other: (
            other is not node and (isinstance(other, exp.Query) or id(other) in inside_with)
        )
    ):
        if isinstance(own, exp.Identifier) and "start" in own.meta:
            yield own.meta["start"]


def _from_queries(node: exp.Expr) -> Iterator[exp.Query]:
    start = node.args.get("from_")
    if start is not None:
        yield from start.find_all(exp.Query)
