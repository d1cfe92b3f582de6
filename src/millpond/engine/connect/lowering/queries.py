"""Lowers a query that holds operators with state over streams to a relation.

The user's own text runs wherever nothing in it keeps state. What does becomes a relation, and what
stands around it again a text, which names the relation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from millpond.engine.connect.cuts import Place
from millpond.engine.connect.lowering.grammar import (
    Nested,
    Query,
    QueryReader,
    Select,
    SetOperator,
    Term,
)
from millpond.engine.connect.lowering.items import Lowerings
from millpond.engine.connect.lowering.joins import relations_part
from millpond.engine.connect.lowering.parameters import Parameters
from millpond.engine.connect.lowering.parts import Part
from millpond.engine.connect.lowering.refusals import refused
from millpond.engine.connect.lowering.selects import select_part
from millpond.engine.connect.lowering.spans import Span
from millpond.engine.connect.lowering.streams import CteScope, Streams
from millpond.engine.connect.lowering.texts import Texts
from millpond.engine.connect.operators import Source
from millpond.engine.protocol import TableRead
from millpond.engine.sqltext.analysis import TextAnalysis
from millpond.engine.sqltext.limits import count_of_text


@dataclass(frozen=True)
class External:
    """A DataFrame that a text names, as in `spark.sql("SELECT * FROM {df}", df=df)`.

    Attributes:
        sources: What its leaves read, in order.
    """

    relation: Any
    sources: tuple[Source, ...]
    is_streaming: bool


@dataclass(frozen=True)
class Lowered:
    """A query's relation.

    Attributes:
        sources: What its leaves read, in order.
        places: By number of a part of the plan, what the user wrote for the operator that it is.
    """

    relation: Any
    sources: tuple[Source, ...]
    places: Mapping[int, Place]


def keeps_state(
    analysis: TextAnalysis,
    *,
    externals: Mapping[str, External],
    reads_stream: Callable[[TableRead], bool],
) -> bool:
    """Whether a text holds an operator that keeps state over a stream, as far as it can be read."""
    if analysis.tree is None:
        return False
    return _streams(analysis, externals, reads_stream).keeps_state(_query(analysis), CteScope())


def lowered(
    analysis: TextAnalysis,
    sql: Any,
    *,
    externals: Mapping[str, External],
    reads_stream: Callable[[TableRead], bool],
) -> Lowered:
    """The relation of a text.

    Args:
        sql: The `SQL` message that holds the text, with the arguments of its parameters.
        externals: The DataFrames that it names, by their names in it.

    Raises:
        MillpondError: It can't be taken apart.
    """
    streams = _streams(analysis, externals, reads_stream)
    parameters = Parameters(analysis, sql)
    parts = {name: Part(each.relation, each.sources) for name, each in externals.items()}
    texts = Texts(analysis, streams, parameters, parts)
    lowering = _Lowering(analysis, streams, texts, parts)
    part = lowering.query(_query(analysis), CteScope())
    return Lowered(part.relation, part.sources, lowering.places)


def _streams(
    analysis: TextAnalysis,
    externals: Mapping[str, External],
    reads_stream: Callable[[TableRead], bool],
) -> Streams:
    flags = {name: each.is_streaming for name, each in externals.items()}
    return Streams(analysis, flags, reads_stream)


def _query(analysis: TextAnalysis) -> Query:
    outline = analysis.outline
    end = len(outline.tokens)
    if outline.word(end - 1) == ";":
        end -= 1
    return QueryReader(outline, dict(analysis.findings.watermarks)).query(Span(0, end))


class _Lowering:
    def __init__(
        self,
        analysis: TextAnalysis,
        streams: Streams,
        texts: Texts,
        externals: Mapping[str, Part],
    ) -> None:
        self._analysis = analysis
        self._outline = analysis.outline
        self._streams = streams
        self._texts = texts
        self.places: dict[int, Place] = {}
        self._lowerings = Lowerings(
            analysis=analysis,
            streams=streams,
            texts=texts,
            externals=externals,
            places=self.places,
            query=self.query,
            relations=lambda relations, scope: relations_part(self._lowerings, relations, scope),
        )

    def query(self, query: Query, scope: CteScope) -> Part:
        """A query's rows."""
        scope_inside = scope.inside(query)
        if not self._streams.keeps_state(query, scope):
            return self._texts.query(_body(query), scope_inside)
        if query.misplaced is not None:
            raise self._unfollowed(query.misplaced)
        part = self._term(query.terms[0], scope_inside)
        for operator, term in zip(query.operators, query.terms[1:], strict=True):
            self._check_union(operator)
            part = part.united(self._term(term, scope_inside), by_name=operator.by_name)
        return self._with_tail(query, part)

    def _term(self, term: Term, scope: CteScope) -> Part:
        if isinstance(term, Nested):
            return self.query(term.query, scope)
        if isinstance(term, Select):
            return select_part(self._lowerings, term, scope)
        return self._texts.query(term.span, scope)

    def _with_tail(self, query: Query, part: Part) -> Part:
        for word, clause in query.tail.items():
            # DISTRIBUTE BY says nothing of which rows there are.
            if word not in {"LIMIT", "DISTRIBUTE"}:
                raise self._unfollowed(clause.at)
        limit = query.tail.get("LIMIT")
        if limit is None or self._outline.word(limit.body.start) == "ALL":
            return part
        text = self._texts.expression(limit.body)
        count = count_of_text(text)
        if count is None:
            raise refused(
                self._analysis,
                limit.body.start,
                f"LIMIT {text}",
                reason="the number of rows must be known before the stream is read",
                instead="write a number, as in LIMIT 100",
            )
        return self._lowerings.placed(part.limited(count), "LIMIT", limit.at)

    def _check_union(self, operator: SetOperator) -> None:
        if not operator.name.startswith("UNION") or not operator.is_all:
            raise refused(
                self._analysis,
                operator.at,
                operator.name,
                reason="it compares rows of all batches",
                instead="write UNION ALL",
            )

    def _unfollowed(self, index: int) -> Exception:
        token = self._outline.tokens[index]
        by = " BY" if self._outline.word(index + 1) == "BY" else ""
        return refused(
            self._analysis,
            index,
            f"{token.text}{by} in a query that keeps state",
            reason="the rows of a stream have no end and no order",
            instead="leave it out",
        )


def _body(query: Query) -> Span:
    """The tokens of a query behind its WITH."""
    return Span(query.terms[0].span.start, query.span.end)
