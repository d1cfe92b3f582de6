"""Lowers the SQL texts inside a plan: one that is the whole plan, or parts of a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql.connect import proto

from millpond.engine.connect.cuts import Place
from millpond.engine.connect.lowering.queries import External, Lowered, keeps_state, lowered
from millpond.engine.connect.messages import input_relations
from millpond.engine.connect.operators import Source, describe
from millpond.engine.protocol import TableRead
from millpond.engine.sqltext.analysis import TextAnalysis


def with_texts_lowered(relation: Any, sources: Sequence[Source]) -> Lowered:
    """A copy of a relation without texts that hold operators with state over streams.

    Args:
        sources: What its leaves read, in order.

    Raises:
        MillpondError: A text can't be taken apart.
    """
    found = proto.Relation()
    found.CopyFrom(relation)
    lowering = _PlanLowering(iter(sources))
    left = lowering.relation(found)
    return Lowered(found, tuple(left), lowering.places)


class _PlanLowering:
    def __init__(self, sources: Iterator[Source]) -> None:
        self._sources = sources
        self.places: dict[int, Place] = {}

    def relation(self, relation: Any) -> list[Source]:
        """Lower the texts in a relation, in place. Returns what its leaves read now."""
        kind = relation.WhichOneof("rel_type")
        if kind in {"read", "sql", "relation_changes"}:
            source = next(self._sources)
            if isinstance(source, TextAnalysis):
                return self._text(relation, relation.sql, source, {})
            return [source]
        if (
            kind == "with_relations"
            and relation.with_relations.root.WhichOneof("rel_type") == "sql"
        ):
            return self._with_relations(relation)
        return [source for child in input_relations(relation) for source in self.relation(child)]

    def _with_relations(self, relation: Any) -> list[Source]:
        node = relation.with_relations
        analysis = next(self._sources)
        assert isinstance(analysis, TextAnalysis)
        below: list[Source] = []
        externals: dict[str, External] = {}
        for reference in node.references:
            sources = self.relation(reference)
            below += sources
            alias = reference.subquery_alias
            rows = describe(alias.input, sources)[1]
            externals[alias.alias] = External(alias.input, tuple(sources), rows.streaming)
        changed = self._text(relation, node.root.sql, analysis, externals)
        return [*changed, *below] if changed == [analysis] else changed

    def _text(
        self, relation: Any, sql: Any, analysis: TextAnalysis, externals: Mapping[str, External]
    ) -> list[Source]:
        if not keeps_state(analysis, externals=externals, reads_stream=_reads_stream):
            return [analysis]
        found = lowered(analysis, sql, externals=externals, reads_stream=_reads_stream)
        self.places.update(found.places)
        # The number of the text's own part of the plan stays that of all of its rows.
        whole = proto.Relation()
        whole.common.CopyFrom(relation.common)
        whole.filter.input.CopyFrom(found.relation)
        whole.filter.condition.literal.boolean = True
        relation.CopyFrom(whole)
        return [*found.sources]


def _reads_stream(read: TableRead) -> bool:
    return read.streaming
