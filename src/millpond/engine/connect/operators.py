"""Describes what a Spark Connect plan does over its inputs, step by step."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.connect import proto
from sqlglot import exp
from sqlglot.errors import ParseError

from millpond.engine.connect.call_sites import site_of
from millpond.engine.connect.functions import AGGREGATING
from millpond.engine.connect.messages import input_relations, own_expressions
from millpond.engine.connect.reads import FileRead, location_of
from millpond.engine.protocol import TableRead
from millpond.engine.shapes import JoinType, Operator, OperatorKind
from millpond.engine.shapes.functions import kind_of_function
from millpond.engine.sqltext.analysis import TextAnalysis
from millpond.engine.sqltext.blocks import outline
from millpond.engine.sqltext.parsing import parse_query
from millpond.errors.engine import UnsupportedReadError
from millpond.sql.tokens import identifier_value

_KINDS = {
    **dict.fromkeys(
        (
            "project",
            "filter",
            "with_columns",
            "with_columns_renamed",
            "drop",
            "to_df",
            "to_schema",
            "subquery_alias",
            "hint",
            "repartition",
            "repartition_by_expression",
            "fill_na",
            "drop_na",
            "replace",
            "map_partitions",
            "unpivot",
            "parse",
        ),
        OperatorKind.STATELESS,
    ),
    "deduplicate": OperatorKind.DISTINCT,
    "limit": OperatorKind.LIMIT,
    "offset": OperatorKind.LIMIT,
    "tail": OperatorKind.LIMIT,
    "sort": OperatorKind.SORT,
    "with_watermark": OperatorKind.WATERMARK,
    "sample": OperatorKind.SAMPLE,
    "sample_by": OperatorKind.SAMPLE,
    "lateral_join": OperatorKind.LATERAL_JOIN,
    "group_map": OperatorKind.AGGREGATION,
    "co_group_map": OperatorKind.AGGREGATION,
    "apply_in_pandas_with_state": OperatorKind.STATEFUL_FUNCTION,
}
_JOIN_TYPES = {
    proto.Join.JOIN_TYPE_INNER: JoinType.INNER,
    proto.Join.JOIN_TYPE_CROSS: JoinType.INNER,
    proto.Join.JOIN_TYPE_LEFT_OUTER: JoinType.LEFT,
    proto.Join.JOIN_TYPE_RIGHT_OUTER: JoinType.RIGHT,
    proto.Join.JOIN_TYPE_FULL_OUTER: JoinType.FULL,
    proto.Join.JOIN_TYPE_LEFT_SEMI: JoinType.SEMI,
    proto.Join.JOIN_TYPE_LEFT_ANTI: JoinType.ANTI,
}
# What a leaf of a plan reads.
Source = TableRead | TextAnalysis | FileRead
_MAY_HOLD_QUERY = re.compile(r"\b(select|from|values|table)\b", re.IGNORECASE)


def describe(
    relation: Any, sources: Sequence[Source], aggregates: Collection[str] = ()
) -> tuple[list[Operator], bool]:
    """The operators of a plan, and whether its rows are a stream.

    Args:
        sources: What its leaves read, in order.
        aggregates: The user's own aggregate functions, in lower case.
    """
    description = _Description(iter(sources), aggregates)
    streaming = description.relation(relation, {})
    return description.operators, streaming


@dataclass
class _Description:
    sources: Iterator[Source]
    aggregates: Collection[str]
    operators: list[Operator] = field(default_factory=list)

    def relation(self, relation: Any, external: dict[str, bool]) -> bool:
        """Describe a relation and all below it. Returns whether its rows are a stream."""
        kind = relation.WhichOneof("rel_type")
        if kind == "read":
            source = next(self.sources)
            return isinstance(source, TableRead) and source.streaming
        if kind == "with_relations":
            return self._with_relations(relation.with_relations, external)
        if kind == "sql":
            return self._text(relation, external)
        inputs = tuple(self.relation(child, external) for child in input_relations(relation))
        self._step(relation, kind or "", inputs)
        self._expressions(relation, any(inputs))
        return any(inputs)

    def _with_relations(self, node: Any, external: dict[str, bool]) -> bool:
        """A query with DataFrames that it refers to by name, or in subqueries."""
        # The leaves come in the order of the message: the root first.
        names = [
            reference.subquery_alias.alias
            for reference in node.references
            if reference.WhichOneof("rel_type") == "subquery_alias"
        ]
        if not names or node.root.WhichOneof("rel_type") != "sql":
            root = self.relation(node.root, external)
            inner = tuple(self.relation(reference, external) for reference in node.references)
            self._add(OperatorKind.SUBQUERY, "A subquery", node.root, (root, *inner))
            return root or any(inner)
        analysis = next(self.sources)
        referenced = {
            reference.subquery_alias.alias: self.relation(reference, external)
            for reference in node.references
        }
        return self._analysed(node.root, analysis, {**external, **referenced})

    def _text(self, relation: Any, external: dict[str, bool]) -> bool:
        return self._analysed(relation, next(self.sources), external)

    def _analysed(self, relation: Any, analysis: Source, external: dict[str, bool]) -> bool:
        if not isinstance(analysis, TextAnalysis):
            message = "a text without an analysis"
            raise TypeError(message)
        found, streaming = analysis.operators(
            external, reads_stream=lambda read: read.streaming, aggregates=self.aggregates
        )
        self.operators.extend(found)
        self._expressions(relation, streaming)
        return streaming

    def _step(self, relation: Any, kind: str, inputs: tuple[bool, ...]) -> None:
        join_type = None
        found = _KINDS.get(kind, OperatorKind.UNKNOWN)
        if kind == "join":
            join_type = _JOIN_TYPES.get(relation.join.join_type)
            found = OperatorKind.UNKNOWN if join_type is None else OperatorKind.JOIN
        elif kind == "set_op":
            found = _set_operation(relation.set_op)
        elif kind == "aggregate":
            pivots = relation.aggregate.group_type == proto.Aggregate.GROUP_TYPE_PIVOT
            found = OperatorKind.PIVOT if pivots else OperatorKind.AGGREGATION
        elif kind == "lateral_join" and _is_generator(relation.lateral_join.right):
            found = OperatorKind.GENERATOR
        self._add(found, _called(relation, kind), relation, inputs, join_type=join_type)

    def _expressions(self, relation: Any, streaming: bool) -> None:
        for expression in own_expressions(relation):
            kind = expression.WhichOneof("expr_type")
            if kind == "expression_string":
                self._expression_text(relation, expression.expression_string.expression, streaming)
            elif kind == "window":
                name = "A window function"
                self._add(OperatorKind.WINDOW_FUNCTION, name, relation, (streaming,))
            elif kind == "unresolved_function":
                self._function(relation, expression.unresolved_function.function_name, streaming)
            elif kind == "call_function":
                self._function(relation, expression.call_function.function_name, streaming)
            elif kind == "common_inline_user_defined_function":
                function = expression.common_inline_user_defined_function
                if function.python_udf.eval_type in AGGREGATING:
                    name = f"The aggregate function {function.function_name}()"
                    self._add(OperatorKind.AGGREGATION, name, relation, (streaming,))
            elif kind == "subquery_expression":
                self._add(OperatorKind.SUBQUERY, "A subquery", relation, (streaming,))

    def _function(self, relation: Any, name: str, streaming: bool) -> None:
        kind = kind_of_function(name, self.aggregates)
        if kind is not None:
            self._add(kind, f"{name}()", relation, (streaming,))

    def _expression_text(self, relation: Any, text: str, streaming: bool) -> None:
        """Describe an expression that was given as text, as to `expr` and `filter`."""
        if _MAY_HOLD_QUERY.search(text):
            tree = parse_query(f"SELECT {text}")
            if isinstance(tree, ParseError) or len(list(tree.find_all(exp.Query))) > 1:
                raise UnsupportedReadError.of(
                    "A subquery in the text of an expression",
                    where=location_of(relation),
                    instead="write the whole query in spark.sql(), or join the DataFrames",
                )
        found = outline(f"SELECT {text}")
        for block in {id(block): block for block in found.owner}.values():
            if "OVER" in block.words:
                self._add(OperatorKind.WINDOW_FUNCTION, "A window function", relation, (streaming,))
            for index in block.calls:
                if not found.is_quantifier(index):
                    self._function(relation, identifier_value(found.tokens[index]), streaming)

    def _add(
        self,
        kind: OperatorKind,
        name: str,
        relation: Any,
        streaming: tuple[bool, ...],
        *,
        join_type: JoinType | None = None,
    ) -> None:
        self.operators.append(
            Operator(kind, name, streaming, join_type=join_type, where=location_of(relation))
        )


def _called(relation: Any, kind: str) -> str:
    """The method that the user called for a step."""
    site = site_of(relation.common.plan_id)
    return f"{site.function}()" if site and site.function else kind.replace("_", " ")


def _set_operation(node: Any) -> OperatorKind:
    if node.set_op_type != proto.SetOperation.SET_OP_TYPE_UNION:
        return OperatorKind.SET_OPERATION
    return OperatorKind.UNION_ALL if node.is_all else OperatorKind.UNION_DISTINCT


def _is_generator(relation: Any) -> bool:
    return bool(relation.WhichOneof("rel_type") == "unresolved_table_valued_function")
