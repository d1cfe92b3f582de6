"""Relations together with what their leaves read, and the few ways in which they are put together.

Sources stand in the order in which `messages.leaves` meets the leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from pyspark.sql.connect import proto

from millpond.engine.connect.expressions import text_expression
from millpond.engine.connect.operators import Source
from millpond.engine.protocol import TableRead
from millpond.names import quote_identifier

# Above the numbers that PySpark gives, and those that binding gives.
_NUMBERS = count(1 << 42)


@dataclass(frozen=True)
class Part:
    """A relation with the sources of its leaves."""

    relation: Any
    sources: tuple[Source, ...]

    @property
    def plan_id(self) -> int:
        return int(self.relation.common.plan_id)

    def aliased(self, name: str) -> Part:
        relation = _fresh()
        relation.subquery_alias.input.CopyFrom(self.relation)
        relation.subquery_alias.alias = name
        return Part(relation, self.sources)

    def named(self, columns: Sequence[str]) -> Part:
        """With other names for all columns."""
        relation = _fresh()
        relation.to_df.input.CopyFrom(self.relation)
        relation.to_df.column_names.extend(columns)
        return Part(relation, self.sources)

    def projected(self, items: Sequence[str]) -> Part:
        relation = _fresh()
        relation.project.input.CopyFrom(self.relation)
        relation.project.expressions.extend(text_expression(item) for item in items)
        return Part(relation, self.sources)

    def filtered(self, condition: str) -> Part:
        relation = _fresh()
        relation.filter.input.CopyFrom(self.relation)
        relation.filter.condition.CopyFrom(text_expression(condition))
        return Part(relation, self.sources)

    def with_column(self, name: str, expression: str) -> Part:
        """With a column behind the others, all of which keep their tables' names."""
        relation = _fresh()
        relation.with_columns.input.CopyFrom(self.relation)
        alias = relation.with_columns.aliases.add()
        alias.name.append(name)
        alias.expr.CopyFrom(text_expression(expression))
        return Part(relation, self.sources)

    def without(self, columns: Collection[str]) -> Part:
        relation = _fresh()
        relation.drop.input.CopyFrom(self.relation)
        relation.drop.column_names.extend(columns)
        return Part(relation, self.sources)

    def renamed(self, names: Mapping[str, str]) -> Part:
        if not names:
            return self
        relation = _fresh()
        relation.with_columns_renamed.input.CopyFrom(self.relation)
        for old, new in names.items():
            rename = relation.with_columns_renamed.renames.add()
            rename.col_name, rename.new_col_name = old, new
        return Part(relation, self.sources)

    def aggregated(self, groupings: Sequence[str], items: Sequence[str]) -> Part:
        """Its columns are those grouped by, then the items."""
        relation = _fresh()
        node = relation.aggregate
        node.input.CopyFrom(self.relation)
        node.group_type = proto.Aggregate.GROUP_TYPE_GROUPBY
        node.grouping_expressions.extend(text_expression(text) for text in groupings)
        node.aggregate_expressions.extend(text_expression(text) for text in items)
        return Part(relation, self.sources)

    def deduplicated(self) -> Part:
        relation = _fresh()
        relation.deduplicate.input.CopyFrom(self.relation)
        relation.deduplicate.all_columns_as_keys = True
        return Part(relation, self.sources)

    def limited(self, rows: int) -> Part:
        relation = _fresh()
        relation.limit.input.CopyFrom(self.relation)
        relation.limit.limit = rows
        return Part(relation, self.sources)

    def watermarked(self, column: str, delay: str) -> Part:
        relation = _fresh()
        relation.with_watermark.input.CopyFrom(self.relation)
        relation.with_watermark.event_time = column
        relation.with_watermark.delay_threshold = delay
        return Part(relation, self.sources)

    def joined(
        self, other: Part, join_type: int, *, condition: str | None, using: Sequence[str] = ()
    ) -> Part:
        relation = _fresh()
        node = relation.join
        node.left.CopyFrom(self.relation)
        node.right.CopyFrom(other.relation)
        node.join_type = join_type
        if condition is not None:
            node.join_condition.CopyFrom(text_expression(condition))
        node.using_columns.extend(using)
        return Part(relation, (*self.sources, *other.sources))

    def united(self, other: Part, *, by_name: bool) -> Part:
        relation = _fresh()
        node = relation.set_op
        node.left_input.CopyFrom(self.relation)
        node.right_input.CopyFrom(other.relation)
        node.set_op_type = proto.SetOperation.SET_OP_TYPE_UNION
        node.is_all, node.by_name = True, by_name
        return Part(relation, (*self.sources, *other.sources))


def read_of(read: TableRead) -> Part:
    relation = _fresh()
    relation.read.is_streaming = read.streaming
    if read.format is not None:
        relation.read.data_source.format = read.format
    elif read.path is None:
        name = ".".join(quote_identifier(part) for part in read.name)
        relation.read.named_table.unparsed_identifier = name
    else:
        relation.read.data_source.format = "delta"
        relation.read.data_source.paths.append(read.path)
    return Part(relation, (read,))


def text_of(sql: Any, source: Source, references: Mapping[str, Part]) -> Part:
    """A query's text, with relations for names in it."""
    relation = _fresh()
    if not references:
        relation.sql.CopyFrom(sql)
        return Part(relation, (source,))
    root = relation.with_relations.root
    root.CopyFrom(_fresh())
    root.sql.CopyFrom(sql)
    sources = [source]
    for name, part in references.items():
        reference = part.aliased(name)
        relation.with_relations.references.add().CopyFrom(reference.relation)
        sources.extend(reference.sources)
    return Part(relation, tuple(sources))


def _fresh() -> Any:
    relation = proto.Relation()
    relation.common.plan_id = next(_NUMBERS)
    return relation
