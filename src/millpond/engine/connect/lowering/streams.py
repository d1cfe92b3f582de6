"""Which parts of a query read streams, and which hold operators that keep state over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from millpond.engine.connect.lowering.grammar import Cte, Nested, Query, Select, Term, With
from millpond.engine.connect.lowering.relations import Item, Relation
from millpond.engine.connect.lowering.spans import Span, name_at
from millpond.engine.protocol import TableRead
from millpond.engine.shapes import OperatorKind
from millpond.engine.shapes.functions import kind_of_function
from millpond.engine.sqltext.analysis import TextAnalysis


@dataclass(frozen=True)
class Visible:
    """A CTE that a name stands for.

    Attributes:
        scope: What its own query can name.
        clause: The WITH that it is of.
    """

    cte: Cte
    scope: CteScope
    clause: With


@dataclass(frozen=True)
class CteScope:
    """The CTEs that a part of a query can name, from the outermost in."""

    ctes: tuple[Visible, ...] = ()

    def inside(self, query: Query) -> CteScope:
        """What can be named behind the WITH of a query."""
        scope = self
        for cte in query.ctes.ctes if query.ctes else ():
            assert query.ctes is not None
            # A recursive query may name itself, which has no end here: over streams it is refused.
            scope = CteScope((*scope.ctes, Visible(cte, scope, query.ctes)))
        return scope

    def find(self, name: str) -> Visible | None:
        folded = name.lower()
        return next(
            (found for found in reversed(self.ctes) if found.cte.name.lower() == folded), None
        )


class Streams:
    """Answers for one text.

    Args:
        externals: By name, whether a DataFrame that the text names is a stream.
        reads_stream: Whether a table is read as a stream.
    """

    def __init__(
        self,
        analysis: TextAnalysis,
        externals: Mapping[str, bool],
        reads_stream: Callable[[TableRead], bool],
    ) -> None:
        self._outline = analysis.outline
        self._externals = externals
        # By a query's span: a CTE may be asked about once for each of its uses.
        self._streaming: dict[Span, bool] = {}
        self._keeping: dict[Span, bool] = {}
        self._tables = {
            reference.name_start: reads_stream(reference.read) for reference in analysis.references
        }

    def query(self, query: Query, scope: CteScope) -> bool:
        """Whether a query's rows are a stream."""
        if query.span not in self._streaming:
            inside = scope.inside(query)
            self._streaming[query.span] = any(self._term(term, inside) for term in query.terms)
        return self._streaming[query.span]

    def keeps_state(self, query: Query, scope: CteScope) -> bool:
        """Whether state over a stream is kept anywhere in what a query gives its rows from."""
        if query.span not in self._keeping:
            inside = scope.inside(query)
            self._keeping[query.span] = any(
                self._term_keeps_state(term, inside) for term in query.terms
            ) or (self.query(query, scope) and self._combines(query))
        return self._keeping[query.span]

    def _combines(self, query: Query) -> bool:
        """Whether a query looks at more than one row of its terms."""
        limited = self._limits(query) or "OFFSET" in query.tail or query.misplaced is not None
        # Without ALL, a union compares rows, as the other set operations do.
        return limited or any(not operator.is_all for operator in query.operators)

    def items(self, select: Select, scope: CteScope) -> list[Item]:
        """Those of a SELECT's tables and subqueries that are streams, joins in parentheses open."""
        return [item for item in self._open_items(select.relations) if self.item(item, scope)]

    def item(self, item: Item, scope: CteScope) -> bool:
        """Whether the rows of something in FROM are a stream."""
        if item.query is not None:
            return self.query(item.query, scope)
        if item.relations:
            return any(self.item(inner, scope) for inner in self._open_items(item.relations))
        found = self.cte(item, scope)
        if found is not None:
            return self.query(found.cte.query, found.scope)
        if not item.names:
            return False
        start = self._outline.tokens[item.name_start].start
        is_external = len(item.names) == 1 and self._externals.get(item.names[0], False)
        return self._tables.get(start, is_external)

    def item_keeps_state(self, item: Item, scope: CteScope) -> bool:
        """Whether state is kept inside something in FROM."""
        if item.watermark is not None and self.item(item, scope):
            return True
        if item.query is not None:
            return self.keeps_state(item.query, scope)
        if item.relations:
            inner = list(self._open_items(item.relations))
            streams = [each for each in inner if self.item(each, scope)]
            return len(streams) > 1 or any(self.item_keeps_state(each, scope) for each in streams)
        found = self.cte(item, scope)
        return found is not None and self.keeps_state(found.cte.query, found.scope)

    def cte(self, item: Item, scope: CteScope) -> Visible | None:
        """The CTE that something in FROM names, if it does."""
        return scope.find(item.names[0]) if len(item.names) == 1 else None

    def _limits(self, query: Query) -> bool:
        limit = query.tail.get("LIMIT")
        return limit is not None and self._outline.word(limit.body.start) != "ALL"

    def aggregates(self, select: Select) -> bool:
        """Whether a SELECT gives one row for several."""
        if {"GROUP", "HAVING"} & select.clauses.keys():
            return True
        block = self._outline.owner[select.span.start]
        calls = [
            index
            for index in block.calls
            if any(item.start <= index < item.end for item in select.items)
        ]
        return any(
            kind_of_function(name_at(self._outline, index)) is OperatorKind.AGGREGATION
            for index in calls
        )

    def _open_items(self, relations: tuple[Relation, ...]) -> Iterator[Item]:
        for relation in relations:
            for item in (relation.item, *(join.item for join in relation.joins)):
                is_open = item.relations and item.alias is None and item.watermark is None
                yield from self._open_items(item.relations) if is_open else (item,)

    def _term(self, term: Term, scope: CteScope) -> bool:
        if isinstance(term, Select):
            return bool(self.items(term, scope))
        return isinstance(term, Nested) and self.query(term.query, scope)

    def _term_keeps_state(self, term: Term, scope: CteScope) -> bool:
        if isinstance(term, Nested):
            return self.keeps_state(term.query, scope)
        if not isinstance(term, Select):
            return False
        streams = self.items(term, scope)
        if not streams:
            return False
        if len(streams) > 1 or term.distinct is not None or self.aggregates(term):
            return True
        return self.item_keeps_state(streams[0], scope)
