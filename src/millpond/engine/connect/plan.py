"""A query as a Spark Connect plan whose reads are found, and can be bound to inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql.connect import proto

from millpond.definitions import SqlQuery
from millpond.engine.connect.cuts import cuts, marked, name_streams, prefix_operators
from millpond.engine.connect.file_metadata import (
    is_shadowed,
    showing_metadata,
    visible_columns,
    with_metadata_carried,
    without_metadata,
)
from millpond.engine.connect.lateral_joins import with_generators
from millpond.engine.connect.lowering.in_plans import with_texts_lowered
from millpond.engine.connect.messages import (
    flatten_references,
    input_relations,
    leaves,
    own_expressions,
)
from millpond.engine.connect.operators import Source, describe
from millpond.engine.connect.reads import location_of, table_read
from millpond.engine.connect.view_rows import kept_rows
from millpond.engine.protocol import (
    Binder,
    DeltaInput,
    EmptyInput,
    Input,
    PlanInput,
    TableRead,
)
from millpond.engine.shapes import HasWatermark, Operator, OperatorKind, check, no_watermark
from millpond.engine.sqltext.analysis import CanRead, TextAnalysis, analyse
from millpond.engine.sqltext.blocks import outline
from millpond.engine.sqltext.parsing import check_depth
from millpond.engine.sqltext.source import QueryText
from millpond.errors import SourceLocation
from millpond.errors.engine import CyclicViewError, UnsupportedReadError

# An input in the place of a read.
InputRelation = Callable[[Input], Any]
Finish = Callable[[Any, Sequence[Source]], Any]
PLACEHOLDER = "__millpond_input_{number}"
# PySpark numbers the parts of plans from 0 on; parts that are added here must not meet them.
_FIRST_PLAN_NUMBER = 1 << 40
_NOWHERE = SourceLocation("<spark.sql>")


@dataclass(frozen=True)
class ConnectPlan:
    """A relation, with what each of its leaves reads.

    Attributes:
        subject: What messages call the query.
        sources: For each leaf in order: a read, or the text of a query.
        is_streaming: Whether its rows are a stream.
        operators: What it does, step by step.
        findings: What was found out about operators with state, by their ids: the same for every
            batch.
        marks_state: Whether its operators that keep state over streams are marked, for an engine
            that does not know streams.
        plain: The plan for files that have a column `_metadata` of their own, where the query
            names one: nothing is kept from its stars.
    """

    relation: Any
    location: SourceLocation
    sources: tuple[Source, ...]
    is_streaming: bool = False
    text: QueryText | None = None
    operators: tuple[Operator, ...] = ()
    findings: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    marks_state: bool = True
    plain: ConnectPlan | None = field(default=None, compare=False, repr=False)

    @property
    def reads(self) -> tuple[TableRead, ...]:
        found: list[TableRead] = []
        for source in self.sources:
            if isinstance(source, TextAnalysis):
                found.extend(source.reads)
            else:
                found.append(source)
        return tuple(found)

    @property
    def handed_on(self) -> TableRead | None:
        """The read whose rows the query gives as they are, where it does nothing else."""
        if len(self.sources) != 1:
            return None
        source, kind = self.sources[0], self.relation.WhichOneof("rel_type")
        if isinstance(source, TextAnalysis):
            return source.reads[0] if kind == "sql" and source.is_whole_table else None
        return source if kind == "read" else None

    def renamed(self, names: Sequence[str]) -> ConnectPlan:
        """The plan with other names for its columns."""
        relation = proto.Relation()
        relation.to_df.input.CopyFrom(self.relation)
        relation.to_df.column_names.extend(names)
        plain = None if self.plain is None else self.plain.renamed(names)
        return replace(self, relation=relation, plain=plain)

    def bind(self, binder: Binder, input_relation: InputRelation) -> Any:
        """The relation with an input in the place of every read.

        Raises:
            CyclicViewError: A view among the inputs reads itself.
        """
        return _Binding(binder, input_relation, marks_state=self.marks_state).bind(self, ())


def plan_of_text(
    query: SqlQuery,
    *,
    can_read: CanRead,
    aggregates: Collection[str] = (),
    has_watermark: HasWatermark = no_watermark,
    marks_state: bool = True,
) -> ConnectPlan:
    """The plan of an SQL query.

    Args:
        has_watermark: Whether a stream is a view that sets a watermark.
        marks_state: Whether operators with state over streams are marked, to be computed here.

    Raises:
        MillpondError: It can't be read, or does what no flow supports.
    """
    text = QueryText.of_query(query)
    relation = proto.Relation(sql=proto.SQL(query=query.text))
    analysis = analyse(text, can_read=can_read)
    for read in analysis.reads:
        _check_options(read)
    operators, rows = analysis.describe({}, aggregates=aggregates)
    check(operators, has_watermark=has_watermark)
    plan = ConnectPlan(
        relation,
        query.location,
        (analysis,),
        rows.streaming,
        text,
        tuple(operators),
        marks_state=marks_state,
    )
    return _finished(plan)


def plan_of_relation(
    relation: Any,
    *,
    location: SourceLocation,
    can_read: CanRead,
    aggregates: Collection[str] = (),
    has_watermark: HasWatermark = no_watermark,
    marks_state: bool = True,
    catalog: str | None = None,
    schema: str | None = None,
) -> ConnectPlan:
    """The plan of a DataFrame.

    Args:
        has_watermark: Whether a stream is a view that sets a watermark.
        marks_state: Whether operators with state over streams are marked, to be computed here.

    Raises:
        MillpondError: It reads what can't be read, or does what no flow supports.
    """
    _check_expressions(relation, location)
    externals = _externals(relation)
    sources = [
        _source(leaf, can_read=can_read, catalog=catalog, schema=schema, externals=externals)
        for leaf in leaves(relation)
    ]
    plan = ConnectPlan(relation, location, tuple(sources), marks_state=marks_state)
    for read in plan.reads:
        _check_options(read)
    operators, rows = describe(relation, sources, aggregates)
    check(operators, has_watermark=has_watermark)
    relation = with_generators(relation)
    return _finished(
        replace(plan, relation=relation, is_streaming=rows.streaming, operators=tuple(operators))
    )


def _check_expressions(relation: Any, location: SourceLocation) -> None:
    """Raise for the text of an expression that is nested deeper than an engine can read."""
    where = location_of(relation) or location
    for expression in own_expressions(relation):
        if expression.WhichOneof("expr_type") == "expression_string":
            text = QueryText(expression.expression_string.expression, where)
            check_depth(outline(text.text), text)
    for child in input_relations(relation):
        _check_expressions(child, location)


def _finished(plan: ConnectPlan) -> ConnectPlan:
    """The plan with its operators that keep state marked, those in SQL texts made visible."""
    if not plan.marks_state and not _has_distinct_text(plan):
        return _with_metadata(plan)
    found = with_texts_lowered(plan.relation, plan.sources)
    visible = replace(plan, relation=found.relation, sources=found.sources)
    if not plan.marks_state:
        return _with_metadata(visible)
    return _with_metadata(
        visible, finish=lambda relation, sources: marked(relation, sources, found.places)
    )


def _has_distinct_text(plan: ConnectPlan) -> bool:
    """Whether a text may say DISTINCT of a stream.

    Spark takes that for an aggregate, which needs a watermark and gives rows when that passes. Of
    `distinct()` in Python it gives them at once.
    """
    is_distinct = any(
        operator.kind is OperatorKind.DISTINCT and operator.is_streaming
        for operator in plan.operators
    )
    return is_distinct and any(isinstance(source, TextAnalysis) for source in plan.sources)


def _with_metadata(
    plan: ConnectPlan, *, finish: Finish = lambda relation, _: relation
) -> ConnectPlan:
    """The plan with `_metadata` of files carried to where it is named.

    Args:
        finish: The last change to the plan's relation, with what its leaves read.
    """
    relation, sources = with_metadata_carried(plan.relation, plan.sources, location=plan.location)
    plain = replace(plan, relation=finish(plan.relation, plan.sources))
    if not any(isinstance(source, TableRead) and source.metadata for source in sources):
        return plain
    return replace(plan, relation=finish(relation, sources), sources=sources, plain=plain)


def _source(
    leaf: Any,
    *,
    can_read: CanRead,
    catalog: str | None,
    schema: str | None,
    externals: frozenset[str],
) -> Source:
    kind = leaf.WhichOneof("rel_type")
    if kind == "read":
        return table_read(leaf, catalog=catalog, schema=schema)
    if kind == "relation_changes":
        raise UnsupportedReadError.of(
            "Reading the changes of a table",
            where=location_of(leaf),
            instead="read the table itself, or stream it with the option skipChangeCommits",
        )
    text = QueryText(leaf.sql.query, location_of(leaf) or _NOWHERE, catalog=catalog, schema=schema)
    return analyse(text, can_read=can_read, external=externals)


def _externals(relation: Any) -> frozenset[str]:
    """Names of DataFrames that SQL texts of a plan refer to."""
    found: set[str] = set()
    if relation.WhichOneof("rel_type") == "with_relations":
        found.update(
            reference.subquery_alias.alias
            for reference in relation.with_relations.references
            if reference.WhichOneof("rel_type") == "subquery_alias"
        )
    for child in input_relations(relation):
        found |= _externals(child)
    return frozenset(found)


def sets_watermark(binder: Binder, read: TableRead) -> bool:
    """Whether what a read is bound to is a view that sets a watermark, or reads one that does."""
    found = binder(read)
    if not isinstance(found, PlanInput) or not isinstance(found.plan, ConnectPlan):
        return False
    if any(operator.kind is OperatorKind.WATERMARK for operator in found.plan.operators):
        return True
    return any(sets_watermark(binder, inner) for inner in found.plan.reads if inner.streaming)


def stream_names(binder: Binder, read: TableRead) -> tuple[str, ...]:
    """The names of the streams that a read follows, through views; none while a batch runs."""
    if not read.streaming:
        return ()
    found = binder(read)
    if isinstance(found, PlanInput):
        return tuple(name for inner in found.plan.reads for name in stream_names(binder, inner))
    return (found.source,) if isinstance(found, EmptyInput) and found.source else ()


class _Binding:
    """One binding of a plan, the plans of its views included."""

    def __init__(self, binder: Binder, input_relation: InputRelation, *, marks_state: bool) -> None:
        self._binder = binder
        self._marks_state = marks_state
        self._found: dict[TableRead, Input] = {}
        self._input_relation = input_relation
        self._number = 0
        self._views = 0
        self._plan_number = _FIRST_PLAN_NUMBER

    def bind(self, plan: ConnectPlan, above: tuple[int, ...]) -> Any:
        if plan.plain is not None and self._has_own_metadata(plan):
            plan = plan.plain
        bound = proto.Relation()
        bound.CopyFrom(plan.relation)
        keeping_state = [relation for relation, _ in cuts(bound)]
        if above and keeping_state:
            # The plan of a view: the same view may be in the query more than once.
            self._views += 1
            prefix_operators(bound, f"view{self._views}-")
        above = (*above, id(plan))
        for leaf, source in zip([*leaves(bound)], plan.sources, strict=True):
            if isinstance(source, TextAnalysis):
                self._bind_text(leaf, source, above)
            else:
                self._bind_read(leaf, source, above)
        if keeping_state:
            streams = [stream_names(self._bound_to, read) for read in plan.reads]
            for relation in keeping_state:
                name_streams(relation, streams)
        if not self._marks_state:
            flatten_references(bound)
        return bound

    def _bind_read(self, leaf: Any, read: TableRead, above: tuple[int, ...]) -> None:
        relation = proto.Relation()
        relation.common.CopyFrom(leaf.common)
        found = self._input(read, above)
        if read.name:
            # The table's name still qualifies its columns, as in col("t.c").
            relation.subquery_alias.input.CopyFrom(found)
            relation.subquery_alias.alias = read.name[-1]
        else:
            found.common.CopyFrom(leaf.common)
            relation = found
        leaf.CopyFrom(relation)

    def _has_own_metadata(self, plan: ConnectPlan) -> bool:
        asked = (read for read in plan.reads if read.metadata)
        return any(is_shadowed(read, self._bound_to(read)) for read in asked)

    def _bind_text(self, leaf: Any, analysis: TextAnalysis, above: tuple[int, ...]) -> None:
        names = [self._placeholder() for _ in analysis.references]
        relation = proto.Relation()
        relation.common.CopyFrom(leaf.common)
        root = relation.with_relations.root
        root.sql.CopyFrom(leaf.sql)
        root.sql.query = analysis.bound(
            names,
            columns=self._star_columns(analysis),
            for_streaming=not self._marks_state,
        )
        for name, read in zip(names, analysis.reads, strict=True):
            reference = relation.with_relations.references.add()
            self._plan_number += 1
            reference.common.plan_id = self._plan_number
            reference.subquery_alias.input.CopyFrom(self._input(read, above))
            reference.subquery_alias.alias = name
        if names:
            leaf.CopyFrom(relation)
        else:
            leaf.sql.query = root.sql.query

    def _star_columns(self, analysis: TextAnalysis) -> Mapping[int, Sequence[str]]:
        """Of the files whose `_metadata` a text names, the columns that a star gives."""
        if not analysis.metadata.stars:
            return {}
        asked = [(at, read) for at, read in enumerate(analysis.reads) if read.metadata]
        found = [(at, visible_columns(read, self._bound_to(read))) for at, read in asked]
        return {at: columns for at, columns in found if columns is not None}

    def _bound_to(self, read: TableRead) -> Input:
        """What a read is bound to: asked for once, since it may take reading files."""
        if read not in self._found:
            self._found[read] = self._binder(read)
        return self._found[read]

    def _placeholder(self) -> str:
        self._number += 1
        return PLACEHOLDER.format(number=self._number)

    def _input(self, read: TableRead, above: Sequence[int]) -> Any:
        found = self._bound_to(read)
        if isinstance(found, DeltaInput):
            found = replace(found, version=_version(read, found.version))
        if not isinstance(found, PlanInput):
            visible = visible_columns(read, found)
            if visible is None:
                return self._input_relation(without_metadata(found))
            return showing_metadata(self._input_relation(found), visible)
        if not isinstance(found.plan, ConnectPlan):
            message = f"a plan of another engine: {type(found.plan).__name__}"
            raise TypeError(message)
        if id(found.plan) in above:
            raise CyclicViewError.through(".".join(read.name), where=read.location)
        bound = self.bind(found.plan, tuple(above))
        return kept_rows(
            bound, found.expectations, view=".".join(read.name), numbered=self._marks_state
        )


def _version(read: TableRead, version: int | None) -> int | None:
    """The version that a read asks for by its options, unless it is bound to one already."""
    asked = read.options.get("versionasof")
    if asked is None or version is not None:
        return version
    if not asked.isdecimal():
        raise UnsupportedReadError.of(
            f"The version {asked!r}", where=read.location, instead="give the number of a version"
        )
    return int(asked)


def _check_options(read: TableRead) -> None:
    """Raise for an option that would change which rows a table read gives, and can't be had."""
    changes = any(
        read.options.get(option, "false").lower() == "true"
        for option in ("readchangefeed", "readchangedata")
    )
    if changes or (not read.streaming and {"startingversion", "endingversion"} & {*read.options}):
        raise UnsupportedReadError.of(
            "Reading the changes of a table",
            where=read.location,
            instead="read the table itself, or stream it with the option skipChangeCommits",
        )
    if "timestampasof" in read.options:
        raise UnsupportedReadError.of(
            "Reading a table as of a timestamp",
            where=read.location,
            instead="give the number of a version: VERSION AS OF n, or the option versionAsOf",
        )
