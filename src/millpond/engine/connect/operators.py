"""Describes what a Spark Connect plan does over its inputs, step by step."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql.connect import proto
from sqlglot import exp
from sqlglot.errors import ParseError

from millpond.engine.connect.call_sites import site_of
from millpond.engine.connect.functions import AGGREGATING
from millpond.engine.connect.lateral_joins import generator_of
from millpond.engine.connect.messages import input_relations, own_expressions
from millpond.engine.connect.reads import location_of
from millpond.engine.connect.subqueries import forms_in, is_total
from millpond.engine.protocol import TableRead
from millpond.engine.shapes import JoinType, Operator, OperatorKind, Rows, SubqueryForm
from millpond.engine.shapes.functions import kind_of_function
from millpond.engine.sqltext.analysis import TextAnalysis
from millpond.engine.sqltext.blocks import outline
from millpond.engine.sqltext.parsing import parse_query
from millpond.errors.engine import UnsupportedReadError
from millpond.sql.tokens import identifier_value

# What each kind of relation does. Those with a function of their own below are left out.
KINDS: Mapping[str, OperatorKind] = {
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
    # Rows that are given, counted out, or made by a function.
    **dict.fromkeys(
        (
            "local_relation",
            "cached_local_relation",
            "chunked_cached_local_relation",
            "range",
            "unresolved_table_valued_function",
            "common_inline_user_defined_table_function",
            "common_inline_user_defined_data_source",
        ),
        OperatorKind.SOURCE,
    ),
    "limit": OperatorKind.LIMIT,
    "offset": OperatorKind.OFFSET,
    "tail": OperatorKind.OFFSET,
    "sort": OperatorKind.SORT,
    "with_watermark": OperatorKind.WATERMARK,
    "sample": OperatorKind.SAMPLE,
    "sample_by": OperatorKind.SAMPLE,
    "co_group_map": OperatorKind.GROUP_FUNCTION,
    "apply_in_pandas_with_state": OperatorKind.STATEFUL_FUNCTION,
    "collect_metrics": OperatorKind.METRICS,
    **dict.fromkeys(
        ("summary", "describe", "crosstab", "cov", "corr", "approx_quantile", "freq_items"),
        OperatorKind.AGGREGATION,
    ),
    **dict.fromkeys(
        (
            "transpose",
            "as_of_join",
            "nearest_by_join",
            "show_string",
            "html_string",
            "cached_remote_relation",
            "catalog",
            "ml_relation",
            "extension",
            "unknown",
        ),
        OperatorKind.UNKNOWN,
    ),
}
_GROUPINGS = {
    proto.Aggregate.GROUP_TYPE_ROLLUP: OperatorKind.SUBTOTALS,
    proto.Aggregate.GROUP_TYPE_CUBE: OperatorKind.SUBTOTALS,
    proto.Aggregate.GROUP_TYPE_GROUPING_SETS: OperatorKind.SUBTOTALS,
    proto.Aggregate.GROUP_TYPE_PIVOT: OperatorKind.PIVOT,
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
# Expressions that look at one row, whatever is inside them.
_PLAIN_EXPRESSIONS = frozenset(
    {
        "literal",
        "unresolved_attribute",
        "unresolved_star",
        "unresolved_regex",
        "unresolved_extract_value",
        "unresolved_named_lambda_variable",
        "alias",
        "cast",
        "sort_order",
        "lambda_function",
        "update_fields",
        "named_argument_expression",
        "direct_shuffle_partition_id",
    }
)
# The others: those that are looked into, and those that are refused.
DECIDED_EXPRESSIONS = _PLAIN_EXPRESSIONS | {
    "unresolved_function",
    "call_function",
    "expression_string",
    "window",
    "common_inline_user_defined_function",
    "subquery_expression",
    "merge_action",
    "typed_aggregate_expression",
    "extension",
}
# What a leaf of a plan reads.
Source = TableRead | TextAnalysis
_MAY_HOLD_QUERY = re.compile(r"\b(select|from|values|table)\b", re.IGNORECASE)


def describe(
    relation: Any, sources: Sequence[Source], aggregates: Collection[str] = ()
) -> tuple[list[Operator], Rows]:
    """The operators of a plan, and what is known of its rows.

    Args:
        sources: What its leaves read, in order.
        aggregates: The user's own aggregate functions, in lower case.
    """
    description = _Description(iter(sources), aggregates)
    rows = description.relation(relation, {})
    return description.operators, rows


@dataclass
class _Description:
    sources: Iterator[Source]
    aggregates: Collection[str]
    operators: list[Operator] = field(default_factory=list)
    # By the number of a subquery's plan, the operators that stand for its uses.
    subqueries: dict[int, list[int]] = field(default_factory=dict)

    def relation(self, relation: Any, external: Mapping[str, Rows]) -> Rows:
        """Describe a relation and all below it. Returns what is known of its rows."""
        kind = relation.WhichOneof("rel_type")
        if kind == "read":
            return self._read(relation, next(self.sources))
        if kind == "with_relations":
            return self._with_relations(relation.with_relations, external)
        if kind == "sql":
            return self._text(relation, next(self.sources), external)
        inputs = tuple(self.relation(child, external) for child in input_relations(relation))
        rows = Rows.of_inputs(inputs)
        self._step(relation, kind or "unknown", inputs)
        self._expressions(relation, rows)
        if kind == "with_watermark":
            return replace(rows, watermark=rows.streaming)
        return rows

    def _read(self, relation: Any, source: Source) -> Rows:
        rows, name = Rows(), ""
        if isinstance(source, TableRead):
            rows, name = Rows.of_read(source), ".".join(source.name)
        self._add(OperatorKind.SOURCE, name or _called(relation, "read"), relation, (rows,))
        return rows

    def _with_relations(self, node: Any, external: Mapping[str, Rows]) -> Rows:
        """A query with DataFrames that it refers to by name, or in subqueries."""
        # The leaves come in the order of the message: the root first.
        if node.root.WhichOneof("rel_type") == "sql":
            analysis = next(self.sources)
            named = {
                reference.subquery_alias.alias: self.relation(reference, external)
                for reference in node.references
            }
            return self._text(node.root, analysis, {**external, **named})
        root = self.relation(node.root, external)
        for reference in node.references:
            inner = self.relation(reference, external)
            uses = self.subqueries.pop(reference.common.plan_id, [])
            for index in uses:
                self._complete(index, inner, reference)
            if inner.streaming and not uses:
                self._add(OperatorKind.SUBQUERY, "A subquery", node.root, (root, inner))
            root = Rows.of_inputs((root, inner)) if inner.streaming else root
        return root

    def _complete(self, index: int, inner: Rows, reference: Any) -> None:
        """Add what only a subquery's own plan tells to the operator of one of its uses."""
        use = self.operators[index]
        if use.subquery is SubqueryForm.EXISTS and is_total(reference):
            use = replace(
                use, name="EXISTS with an aggregate", subquery=SubqueryForm.EXISTS_OF_TOTAL
            )
        self.operators[index] = replace(use, inputs=(*use.inputs[:1], inner))

    def _text(self, relation: Any, analysis: Source, external: Mapping[str, Rows]) -> Rows:
        if not isinstance(analysis, TextAnalysis):
            message = "a text without an analysis"
            raise TypeError(message)
        found, rows = analysis.describe(external, aggregates=self.aggregates)
        self.operators.extend(found)
        self._expressions(relation, rows)
        return rows

    def _step(self, relation: Any, kind: str, inputs: tuple[Rows, ...]) -> None:
        join_type = None
        found = KINDS.get(kind, OperatorKind.UNKNOWN)
        if kind == "join":
            join_type = _JOIN_TYPES.get(relation.join.join_type)
            found = OperatorKind.UNKNOWN if join_type is None else OperatorKind.JOIN
        elif kind in _KINDS_OF_NODE:
            found = _KINDS_OF_NODE[kind](getattr(relation, kind))
        self._add(found, _called(relation, kind), relation, inputs, join_type=join_type)

    def _expressions(self, relation: Any, rows: Rows) -> None:
        # What a grouping aggregates is part of it.
        aggregates = relation.WhichOneof("rel_type") == "aggregate"
        forms = forms_in(relation)
        for expression in own_expressions(relation):
            kind = expression.WhichOneof("expr_type")
            if kind in _PLAIN_EXPRESSIONS:
                continue
            if kind == "subquery_expression":
                self._subquery(relation, expression.subquery_expression.plan_id, rows, forms)
                continue
            for found, name in self._found(relation, expression, kind):
                if not (aggregates and found is OperatorKind.AGGREGATION):
                    self._add(found, name, relation, (rows,))

    def _found(
        self, relation: Any, expression: Any, kind: str | None
    ) -> Iterator[tuple[OperatorKind, str]]:
        """What an expression does that looks at more than one row."""
        match kind:
            case "expression_string":
                yield from self._in_text(relation, expression.expression_string.expression)
            case "window":
                yield OperatorKind.WINDOW_FUNCTION, "A window function"
            case "unresolved_function" | "call_function":
                yield from self._function(getattr(expression, kind).function_name)
            case "common_inline_user_defined_function":
                function = expression.common_inline_user_defined_function
                if function.python_udf.eval_type in AGGREGATING:
                    name = f"The aggregate function {function.function_name}()"
                    yield OperatorKind.AGGREGATION, name
            case _:
                name = (kind or "unknown").replace("_", " ")
                yield OperatorKind.UNKNOWN, f"An expression of the kind {name}"

    def _function(self, name: str) -> Iterator[tuple[OperatorKind, str]]:
        kind = kind_of_function(name, self.aggregates)
        if kind is not None:
            yield kind, f"{name}()"

    def _in_text(self, relation: Any, text: str) -> Iterator[tuple[OperatorKind, str]]:
        """Look into an expression that was given as text, as to `expr` and `filter`."""
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
                yield OperatorKind.WINDOW_FUNCTION, "A window function"
            for index in block.calls:
                if not found.is_quantifier(index):
                    yield from self._function(identifier_value(found.tokens[index]))

    def _subquery(
        self, relation: Any, plan_id: int, rows: Rows, forms: Mapping[int, SubqueryForm]
    ) -> None:
        form = forms.get(plan_id)
        name = "IN with a subquery" if form is SubqueryForm.IN_VALUE else "A subquery"
        self.subqueries.setdefault(plan_id, []).append(len(self.operators))
        self._add(OperatorKind.SUBQUERY, name, relation, (rows,), subquery=form)

    def _add(
        self,
        kind: OperatorKind,
        name: str,
        relation: Any,
        inputs: tuple[Rows, ...],
        *,
        join_type: JoinType | None = None,
        subquery: SubqueryForm | None = None,
    ) -> None:
        where = location_of(relation)
        self.operators.append(
            Operator(kind, name, inputs, join_type=join_type, subquery=subquery, where=where)
        )


def _called(relation: Any, kind: str) -> str:
    """The method that the user called for a step."""
    site = site_of(relation.common.plan_id)
    return f"{site.function}()" if site and site.function else kind.replace("_", " ")


def _set_operation(node: Any) -> OperatorKind:
    if node.set_op_type != proto.SetOperation.SET_OP_TYPE_UNION:
        return OperatorKind.SET_OPERATION
    return OperatorKind.UNION_ALL if node.is_all else OperatorKind.UNION_DISTINCT


def _aggregate(node: Any) -> OperatorKind:
    if node.group_type != proto.Aggregate.GROUP_TYPE_GROUPBY:
        return _GROUPINGS.get(node.group_type, OperatorKind.UNKNOWN)
    return OperatorKind.GROUPING if node.grouping_expressions else OperatorKind.AGGREGATION


def _deduplicate(node: Any) -> OperatorKind:
    if node.within_watermark:
        return OperatorKind.DISTINCT_WITHIN_WATERMARK
    return OperatorKind.DISTINCT


def _lateral_join(node: Any) -> OperatorKind:
    """A join with rows that a generator makes of each row, or a subquery for each row."""
    is_generator = generator_of(node.right) is not None
    return OperatorKind.GENERATOR if is_generator else OperatorKind.LATERAL_JOIN


def _group_map(node: Any) -> OperatorKind:
    keeps_state = node.HasField("transform_with_state_info") or node.is_map_groups_with_state
    return OperatorKind.STATEFUL_FUNCTION if keeps_state else OperatorKind.GROUP_FUNCTION


_KINDS_OF_NODE = {
    "set_op": _set_operation,
    "aggregate": _aggregate,
    "deduplicate": _deduplicate,
    "lateral_join": _lateral_join,
    "group_map": _group_map,
}
# Every kind of relation whose meaning over a stream was decided, one way or the other.
DECIDED = frozenset({*KINDS, *_KINDS_OF_NODE, "join", "read", "sql", "with_relations"})
