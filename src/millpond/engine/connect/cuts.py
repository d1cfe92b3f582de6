"""Marks the operators of a plan that keep state from batch to batch: there it is cut.

A marked operator is wrapped in a hint that carries a `Cut`. The hint travels with the relation
through binding and views, and never reaches the engine: the operator is computed and replaced
before.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.connect import proto

from millpond.engine.connect.call_sites import site_of
from millpond.engine.connect.expressions import CUT_HINT
from millpond.engine.connect.messages import input_relations
from millpond.engine.protocol import TableRead
from millpond.engine.shapes import Rows
from millpond.engine.sqltext.analysis import TextAnalysis
from millpond.errors import SourceLocation
from millpond.errors.engine import UnsupportedStreamingOperationError

_NAMES = {
    "deduplicate": "deduplicate",
    "limit": "limit",
    "with_watermark": "watermark",
    "join": "join",
    "aggregate": "aggregate",
}


@dataclass(frozen=True)
class Place:
    """What the user wrote for an operator, and where.

    Attributes:
        detail: The line of text with a caret below the place, where there is one.
    """

    name: str
    where: SourceLocation | None = None
    detail: str | None = None


@dataclass(frozen=True)
class Cut:
    """An operator with state.

    Attributes:
        operator: Its id, which is the same in each update as long as the query's operators are.
        reads: For each of its inputs, which of the plan's reads are streams that it comes from.
        streams: The same by the streams' own names, once the plan is bound: views have none.
    """

    operator: str
    place: Place
    reads: tuple[tuple[int, ...], ...] = ()
    streams: tuple[tuple[str, ...], ...] = ()

    def refused(self, reason: str, *, instead: str) -> UnsupportedStreamingOperationError:
        """The error for an operator that turns out to be impossible."""
        return UnsupportedStreamingOperationError.of(
            self.place.name,
            reason=reason,
            instead=instead,
            where=self.place.where,
            detail=self.place.detail,
        )


def marked(relation: Any, sources: Sequence[Any], places: Mapping[int, Place]) -> Any:
    """A copy of a relation in which every operator with state over a stream is marked.

    Args:
        sources: What the leaves read, in order.
        places: By the number of a part of the plan, what to call it; for other parts the line of
            Python code is known.
    """
    found = proto.Relation()
    found.CopyFrom(relation)
    reads = [read for source in sources for read in _reads(source)]
    _Marker(iter(sources), places, reads).relation(found, {})
    return found


def cut_of(relation: Any) -> Cut | None:
    """The cut that a relation is marked with, or `None`."""
    if relation.WhichOneof("rel_type") != "hint" or relation.hint.name != CUT_HINT:
        return None
    content = json.loads(relation.hint.parameters[0].literal.string)
    where = content.pop("where")
    place = Place(
        content["name"],
        where=None if where is None else SourceLocation(*where),
        detail=content["detail"],
    )
    return Cut(
        content["operator"],
        place,
        reads=tuple(map(tuple, content["reads"])),
        streams=tuple(map(tuple, content["streams"])),
    )


def cuts(relation: Any) -> Iterator[tuple[Any, Cut]]:
    """Every marked relation with its cut, those below others first."""
    for child in input_relations(relation):
        yield from cuts(child)
    found = cut_of(relation)
    if found is not None:
        yield relation, found


def without_cuts(relation: Any) -> Any:
    """A copy of a relation that an engine can analyse, though its watermarks are left out."""
    found = proto.Relation()
    found.CopyFrom(relation)
    for marked_relation, _ in [*cuts(found)]:
        inner = proto.Relation()
        inner.CopyFrom(marked_relation.hint.input)
        if inner.WhichOneof("rel_type") == "with_watermark":
            _leave_out(inner)
        marked_relation.CopyFrom(inner)
    return found


def prefix_operators(relation: Any, prefix: str) -> None:
    """Put a prefix before the ids of all operators, in place: the plan becomes part of another."""
    for marked_relation, cut in cuts(relation):
        _write(marked_relation, replace(cut, operator=prefix + cut.operator))


def name_streams(relation: Any, names: Sequence[Collection[str]]) -> None:
    """Tell a marked relation which streams the plan's reads are, in place.

    Args:
        names: For each read of the plan, in order.
    """
    cut = cut_of(relation)
    assert cut is not None
    streams = tuple(
        tuple(sorted({name for read in reads for name in names[read]})) for reads in cut.reads
    )
    _write(relation, replace(cut, streams=streams))


def _reads(source: Any) -> Sequence[TableRead]:
    if isinstance(source, TextAnalysis):
        return source.reads
    return [source] if isinstance(source, TableRead) else []


def _write(hint: Any, cut: Cut) -> None:
    where = cut.place.where
    content = {
        "operator": cut.operator,
        "name": cut.place.name,
        "where": None if where is None else [where.file, where.line, where.column],
        "detail": cut.place.detail,
        "reads": cut.reads,
        "streams": cut.streams,
    }
    del hint.hint.parameters[:]
    hint.hint.parameters.add().literal.string = json.dumps(content)


def _leave_out(relation: Any) -> None:
    """Take a watermark away: over a table that is no stream it means nothing."""
    below = proto.Relation()
    below.CopyFrom(relation.with_watermark.input)
    relation.filter.input.CopyFrom(below)
    relation.filter.condition.literal.boolean = True


@dataclass
class _Marker:
    sources: Iterator[Any]
    places: Mapping[int, Place]
    reads: Sequence[TableRead]
    count: int = 0

    def relation(self, relation: Any, external: Mapping[str, Rows]) -> Rows:
        """Mark what is below a relation, and itself. Returns what streams its rows come from."""
        kind = relation.WhichOneof("rel_type")
        if kind == "read":
            source = next(self.sources)
            return Rows.of_read(source) if isinstance(source, TableRead) else Rows()
        if kind == "sql":
            return self._text(next(self.sources), external)
        if kind == "with_relations":
            return self._with_relations(relation.with_relations, external)
        inputs = [self.relation(child, external) for child in input_relations(relation)]
        streaming = [rows.streaming for rows in inputs]
        keeps_state = all(streaming) if kind == "join" else any(streaming)
        if kind in _NAMES and keeps_state:
            self._mark(relation, kind, inputs)
        elif kind == "with_watermark":
            _leave_out(relation)
        return Rows.of_inputs(inputs)

    def _with_relations(self, node: Any, external: Mapping[str, Rows]) -> Rows:
        if node.root.WhichOneof("rel_type") != "sql":
            root = self.relation(node.root, external)
            return Rows.of_inputs(
                [root, *(self.relation(reference, external) for reference in node.references)]
            )
        analysis = next(self.sources)
        named = {
            reference.subquery_alias.alias: self.relation(reference, external)
            for reference in node.references
        }
        return self._text(analysis, {**external, **named})

    @staticmethod
    def _text(analysis: Any, external: Mapping[str, Rows]) -> Rows:
        if not isinstance(analysis, TextAnalysis):
            message = "a text without an analysis"
            raise TypeError(message)
        return analysis.describe(external)[1]

    def _mark(self, relation: Any, kind: str, inputs: Sequence[Rows]) -> None:
        inner = proto.Relation()
        inner.CopyFrom(relation)
        relation.Clear()
        relation.hint.input.CopyFrom(inner)
        relation.hint.name = CUT_HINT
        reads = tuple(tuple(map(self.reads.index, rows.reads)) for rows in inputs)
        operator = f"{self.count}-{_NAMES[kind]}"
        _write(relation, Cut(operator, self._place(inner, kind), reads=reads))
        self.count += 1

    def _place(self, relation: Any, kind: str) -> Place:
        plan_id = relation.common.plan_id
        if plan_id in self.places:
            return self.places[plan_id]
        site = site_of(plan_id)
        if site is None:
            return Place(_NAMES[kind])
        return Place(f"{site.function}()" if site.function else _NAMES[kind], site.location)
