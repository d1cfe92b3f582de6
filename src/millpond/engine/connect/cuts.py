"""Marks the operators of a plan that keep state from batch to batch: there it is cut.

A marked operator is wrapped in a hint that carries a `Cut`. The hint travels with the relation
through binding and views, and never reaches the engine: the operator is computed and replaced
before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.connect import proto

from millpond.engine.connect.call_sites import site_of
from millpond.engine.connect.messages import input_relations
from millpond.engine.protocol import TableRead
from millpond.engine.shapes import Rows
from millpond.engine.sqltext.analysis import TextAnalysis
from millpond.errors import SourceLocation
from millpond.errors.engine import UnsupportedStreamingOperationError

_HINT = "millpond_cut"
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
    """

    operator: str
    place: Place

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
    _Marker(iter(sources), places).relation(found, {})
    return found


def cut_of(relation: Any) -> Cut | None:
    """The cut that a relation is marked with, or `None`."""
    if relation.WhichOneof("rel_type") != "hint" or relation.hint.name != _HINT:
        return None
    content = json.loads(relation.hint.parameters[0].literal.string)
    where = content.pop("where")
    place = Place(
        content["name"],
        where=None if where is None else SourceLocation(*where),
        detail=content["detail"],
    )
    return Cut(content["operator"], place)


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


def _write(hint: Any, cut: Cut) -> None:
    where = cut.place.where
    content = {
        "operator": cut.operator,
        "name": cut.place.name,
        "where": None if where is None else [where.file, where.line, where.column],
        "detail": cut.place.detail,
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
    count: int = 0

    def relation(self, relation: Any, external: Mapping[str, bool]) -> bool:
        """Mark what is below a relation, and itself. Returns whether its rows are a stream."""
        kind = relation.WhichOneof("rel_type")
        if kind == "read":
            source = next(self.sources)
            return isinstance(source, TableRead) and source.streaming
        if kind == "sql":
            return self._text(next(self.sources), external)
        if kind == "with_relations":
            return self._with_relations(relation.with_relations, external)
        inputs = [self.relation(child, external) for child in input_relations(relation)]
        keeps_state = all(inputs) if kind == "join" else any(inputs)
        if kind in _NAMES and keeps_state:
            self._mark(relation, kind)
        elif kind == "with_watermark":
            _leave_out(relation)
        return any(inputs)

    def _with_relations(self, node: Any, external: Mapping[str, bool]) -> bool:
        if node.root.WhichOneof("rel_type") != "sql":
            root = self.relation(node.root, external)
            inner = [self.relation(reference, external) for reference in node.references]
            return root or any(inner)
        analysis = next(self.sources)
        named = {
            reference.subquery_alias.alias: self.relation(reference, external)
            for reference in node.references
        }
        return self._text(analysis, {**external, **named})

    @staticmethod
    def _text(analysis: Any, external: Mapping[str, bool]) -> bool:
        if not isinstance(analysis, TextAnalysis):
            message = "a text without an analysis"
            raise TypeError(message)
        rows = {name: Rows(streaming=streams) for name, streams in external.items()}
        return analysis.describe(rows)[1].streaming

    def _mark(self, relation: Any, kind: str) -> None:
        inner = proto.Relation()
        inner.CopyFrom(relation)
        relation.Clear()
        relation.hint.input.CopyFrom(inner)
        relation.hint.name = _HINT
        _write(relation, Cut(f"{self.count}-{_NAMES[kind]}", self._place(inner, kind)))
        self.count += 1

    def _place(self, relation: Any, kind: str) -> Place:
        plan_id = relation.common.plan_id
        if plan_id in self.places:
            return self.places[plan_id]
        site = site_of(plan_id)
        if site is None:
            return Place(_NAMES[kind])
        return Place(f"{site.function}()" if site.function else _NAMES[kind], site.location)
