"""Turns definitions into a graph: evaluates queries, finds what they read, checks what they give.

Resolution follows reads: a dataset is resolved when a query asks for its columns, so that user
functions may look at the schema of a table that does not exist yet. Reads no data.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from millpond.definitions import Dataset, DatasetKind, Flow, FlowKind, Language, Pipeline
from millpond.delta import widen_schema
from millpond.engine.protocol import (
    EmptyInput,
    Engine,
    Input,
    QueryPlan,
    TableRead,
)
from millpond.engine.shapes import Operator, OperatorKind, check_replace_using
from millpond.errors import MillpondError, SourceLocation
from millpond.errors.graph import (
    CircularDependencyError,
    FlowIsStreamingError,
    FlowNotStreamingError,
    UpstreamFailedError,
    ViewReadMismatchError,
)
from millpond.errors.replace_using import ReplaceUsingNotStreamingError
from millpond.graph import expectations, properties, replace_using, schemas
from millpond.graph.catalog import Catalog, PipelineSource, StoredSource
from millpond.graph.empty_files import check_used, file_key
from millpond.graph.external import ExternalSources, LocalSources
from millpond.graph.new_columns import Resolution, resolve_with_new_columns
from millpond.graph.resolved import (
    Graph,
    Key,
    ResolvedDataset,
    ResolvedFlow,
    StreamKey,
    StreamRead,
    stream_key,
)
from millpond.graph.targets import check_targets
from millpond.names import TableName
from millpond.streaming import DeltaReadOptions


def resolve(
    pipeline: Pipeline,
    engine: Engine,
    catalog: Catalog,
    external: ExternalSources,
    *,
    anew: Callable[[TableName], bool] = lambda _name: False,
) -> tuple[Graph, list[MillpondError]]:
    """Resolve every dataset and flow.

    Args:
        external: Finds what is no table.
        anew: Of which datasets the flows begin anew, so that nothing is taken over that was found
            out about their sources.

    Returns:
        The graph of all that could be resolved, and every problem found. A dataset that reads a
        failed one is left out without a problem of its own.
    """
    targets, no_places = check_targets(pipeline), catalog.check_places()
    # A query that reads where no table can be has the same problem.
    told = {problem.what for problem in no_places}

    def once() -> Resolution:
        resolver = _Resolver(pipeline, engine, catalog, external, failed=targets.failed, anew=anew)
        # A view over files, and tables that read the same files, follow one that begins anew.
        for dataset in sorted(pipeline.datasets, key=lambda found: not anew(found.name)):
            resolver.visit(dataset)
        others = (problem for problem in resolver.problems if problem.what not in told)
        problems = (*targets.problems, *no_places, *others)
        return Resolution(Graph(resolver.resolved), problems, tuple(resolver.clashes))

    if isinstance(external, LocalSources):
        found = resolve_with_new_columns(once, external)
    else:
        found = once()
    return found.graph, [*found.problems]


class _Resolver:
    def __init__(
        self,
        pipeline: Pipeline,
        engine: Engine,
        catalog: Catalog,
        external: ExternalSources,
        *,
        failed: frozenset[Key],
        anew: Callable[[TableName], bool],
    ) -> None:
        self.resolved: dict[Key, ResolvedDataset] = {}
        self.problems: list[MillpondError] = []
        self.clashes: list[MillpondError] = []
        self._engine = engine
        self._catalog = catalog
        self._external = external
        self._anew = anew
        self._failed: set[Key] = set(failed)
        self._open: list[Dataset] = []
        self._flows: dict[Key, list[Flow]] = defaultdict(list)
        for flow in pipeline.flows:
            self._flows[flow.target.key].append(flow)

    def visit(self, dataset: Dataset) -> None:
        """Resolve one dataset, and first what it reads; keep its problems."""
        if dataset.name.key in self.resolved or dataset.name.key in self._failed:
            return
        before = len(self.problems)
        self._open.append(dataset)
        flows: list[ResolvedFlow] = []
        upstream_failed = False
        try:
            for flow in self._flows[dataset.name.key]:
                try:
                    flows.append(self._resolve_flow(flow, dataset))
                except UpstreamFailedError:
                    upstream_failed = True
                except MillpondError as problem:
                    self.problems.append(problem)
            if upstream_failed or len(self.problems) > before:
                self._failed.add(dataset.name.key)
                return
            found = self._resolve_dataset(dataset, tuple(flows))
            if found is None:
                self._failed.add(dataset.name.key)
            else:
                self.resolved[dataset.name.key] = found
        finally:
            self._open.pop()

    def _resolve_dataset(
        self, dataset: Dataset, flows: tuple[ResolvedFlow, ...]
    ) -> ResolvedDataset | None:
        problems: list[MillpondError] = []
        if dataset.kind is DatasetKind.STREAMING_TABLE and all(
            flow.kind is FlowKind.MATERIALIZED_VIEW for flow in flows
        ):
            dataset = dataclasses.replace(dataset, kind=DatasetKind.MATERIALIZED_VIEW)
        table = self._catalog.table(dataset) if dataset.kind.is_stored else None
        existing = None
        if dataset.kind is DatasetKind.STREAMING_TABLE and table and table.exists():
            existing = table.columns()
        try:
            schema = schemas.table_schema(dataset, flows, existing=existing, engine=self._engine)
        except MillpondError as problem:
            self.problems.append(problem)
            return None
        if existing is not None:
            # The update says so when it sets the table up: a full refresh can help.
            try:
                widen_schema(existing, schema)
            except MillpondError as clash:
                self.clashes.append(clash)
        for flow in flows:
            if dataset.kind.is_stored:
                problems.extend(schemas.check_nested_names(flow))
            problems.extend(schemas.check_declared(dataset, flow, schema))
            problems.extend(expectations.check(dataset, flow, self._engine))
        problems.extend(schemas.check_columns(dataset, schema))
        problems.extend(check_used(dataset, flows))
        if table is not None and not problems:
            problems.extend(properties.check(dataset, schema, table))
        self.problems.extend(problems)
        if problems:
            return None
        return ResolvedDataset(dataset=dataset, schema=schema, flows=flows, table=table)

    def _resolve_flow(self, flow: Flow, dataset: Dataset) -> ResolvedFlow:
        anew = self._begins_anew()

        def bind(read: TableRead) -> Input:
            if read.format is not None:
                external = self._external.find(read, reader=flow.name, anew=anew)
                return EmptyInput(external.schema, external.name)
            return self._bind(read, reader=flow.name)

        try:
            self._engine.check_settings(flow.spark_conf)
        except MillpondError as error:
            error.where = flow.location
            raise
        with self._engine.defining(bind):
            plan = self._engine.plan(flow.query)
        streams, inputs, upstream = self._follow(plan, reader=flow.name, anew=anew)
        kind = _checked_kind(flow, dataset, plan, streams=bool(streams))
        if kind is FlowKind.REPLACE_USING:
            check_replace_using(self._operators(plan, reader=flow.name), flow=flow.name)
        schema = self._engine.schema(plan, bind)
        names = schemas.declared_names(dataset, flow, schema)
        if names:
            plan = self._engine.renamed(plan, names)
            schema = self._engine.schema(plan, bind)
        resolved = ResolvedFlow(
            flow=flow,
            kind=kind,
            plan=plan,
            schema=schema,
            streams=streams,
            inputs=inputs,
            upstream=upstream,
            state=self._engine.state(plan, bind),
        )
        schemas.check_query(flow, schema)
        if kind is FlowKind.REPLACE_USING:
            order = replace_using.check(flow, schema, self._engine)
            return dataclasses.replace(
                resolved,
                keys=order.keys,
                sequence_type=order.sequence_type,
                sequence_column=order.sequence_column,
                file_key=file_key(
                    flow,
                    dataset,
                    plan,
                    self._engine,
                    keys=order.keys,
                    sequence_column=order.sequence_column,
                    streams=streams,
                ),
            )
        return resolved

    def _operators(self, plan: QueryPlan, *, reader: str) -> Iterator[Operator]:
        """What a plan does, and what the views do that it reads."""
        yield from plan.operators
        for read in plan.reads:
            if read.format is not None:
                continue
            source = self._catalog.find(read, reader=reader)
            if isinstance(source, PipelineSource):
                found = self._upstream(source.dataset, read)
                if not found.dataset.kind.is_stored:
                    yield from self._operators(found.flows[0].plan, reader=str(found.name))

    def _bind(self, read: TableRead, *, reader: str) -> Input:
        """The input that is enough to analyse a query: the columns of what it reads."""
        source = self._catalog.find(read, reader=reader)
        if isinstance(source, StoredSource):
            try:
                # A table that is read by its path may be moved.
                name = source.name if read.path is None else source.table.id()
                return EmptyInput(source.table.columns(), name)
            except MillpondError as error:
                error.where = error.where or read.location
                raise
        found = self._upstream(source.dataset, read)
        if found.dataset.kind.is_stored:
            return EmptyInput(found.schema, source.name)
        _check_view_read(found, read, reader=reader)
        return found.as_input()

    def _upstream(self, dataset: Dataset, read: TableRead) -> ResolvedDataset:
        names = [open_dataset.name for open_dataset in self._open]
        if dataset.name in names:
            circle = [*names[names.index(dataset.name) :], dataset.name]
            raise CircularDependencyError.from_path(
                [str(name) for name in circle], where=read.location
            )
        self.visit(dataset)
        if dataset.name.key in self._failed:
            raise UpstreamFailedError(str(dataset.name))
        return self.resolved[dataset.name.key]

    def _begins_anew(self) -> bool:
        """Whether the dataset at hand begins anew, or what a view is being read for."""
        for dataset in reversed(self._open):
            if self._anew(dataset.name):
                return True
            if dataset.kind.is_stored:
                return False
        return False

    def _follow(
        self, plan: QueryPlan, *, reader: str, anew: bool
    ) -> tuple[tuple[StreamRead, ...], tuple[str, ...], frozenset[Key]]:
        """Everything that a plan reads, through views as well."""
        streams: dict[StreamKey, StreamRead] = {}
        inputs: dict[str, None] = {}
        upstream: set[Key] = set()
        for read in plan.reads:
            if read.format is not None:
                inputs[" ".join(read.paths) or read.format] = None
                if read.streaming:
                    external = self._external.find(read, reader=reader, anew=anew)
                    key = stream_key(read, None)
                    stream = StreamRead(
                        external.name,
                        key,
                        read.options,
                        external=external,
                        read=read,
                        has_metadata=read.metadata,
                    )
                    streams[key] = _together(streams.get(key), stream)
                continue
            source = self._catalog.find(read, reader=reader)
            inputs[source.name] = None
            if isinstance(source, PipelineSource):
                found = self._upstream(source.dataset, read)
                if not found.dataset.kind.is_stored:
                    _check_view_read(found, read, reader=reader)
                    upstream |= found.upstream
                    for given in found.flows[0].streams:
                        stream = self._through(found, given, reader=reader, anew=anew)
                        streams[stream.key] = _together(streams.get(stream.key), stream)
                    continue
                upstream.add(found.key)
                table = self._catalog.table(found.dataset)
            else:
                table = source.table
            if read.streaming:
                DeltaReadOptions.parse(read.written_options, where=read.location)
                key = stream_key(read, table)
                stream = StreamRead(source.name, key, read.options, table=table)
                streams[key] = _together(streams.get(key), stream)
        return _named(streams.values()), tuple(inputs), frozenset(upstream)

    def _through(
        self, view: ResolvedDataset, stream: StreamRead, *, reader: str, anew: bool
    ) -> StreamRead:
        """A stream of a view as its reader has it, whose inferred columns are its own."""
        if stream.read is None:
            return stream
        external = self._external.find(stream.read, reader=reader, anew=anew)
        views = (view.flows[0].name, *stream.views)
        return dataclasses.replace(stream, external=external, views=views)


def _together(known: StreamRead | None, stream: StreamRead) -> StreamRead:
    """One stream for two reads of it, with all that either asks of it."""
    if known is None:
        return stream
    return dataclasses.replace(
        stream,
        has_metadata=stream.has_metadata or known.has_metadata,
        reads=stream.reads + known.reads,
    )


def _named(streams: Iterable[StreamRead]) -> tuple[StreamRead, ...]:
    """Give each stream a name of its own where something is read with different options.

    The files that it takes of a folder tell it from others in whatever order a query has them.
    """
    given = list(streams)
    bases = [stream.place for stream in given]
    named: dict[str, StreamRead] = {}
    for stream, base in zip(given, bases, strict=True):
        pattern = _pattern(stream) if bases.count(base) > 1 else None
        whole = base if pattern is None else f"{base} {pattern}"
        name, number = whole, 1
        while name in named:
            number += 1
            name = f"{whole}#{number}"
        named[name] = dataclasses.replace(stream, source=name)
    return tuple(named.values())


def _pattern(stream: StreamRead) -> str | None:
    """The names of the files that it takes, if it says so."""
    options = {key.removeprefix("cloudfiles."): value for key, value in stream.options.items()}
    return options.get("pathglobfilter") or options.get("filenamepattern")


def _check_view_read(found: ResolvedDataset, read: TableRead, *, reader: str) -> None:
    view_streams = bool(found.flows[0].streams)
    if view_streams != read.streaming:
        raise ViewReadMismatchError.from_read(
            str(found.name), reader=reader, view_streams=view_streams, where=read.location
        )


def _first_source(plan: QueryPlan, flow: Flow) -> tuple[str | None, SourceLocation, str | None]:
    """What a query that reads no stream reads instead, and where; or the query's own place."""
    for operator in plan.operators:
        if operator.kind is OperatorKind.SOURCE:
            return operator.name, operator.where or flow.query.location, operator.detail
    return None, flow.query.location, None


def _checked_kind(flow: Flow, dataset: Dataset, plan: QueryPlan, *, streams: bool) -> FlowKind:
    """The kind of flow that the query makes it, or an error where the two don't fit."""
    if flow.kind is FlowKind.REPLACE_USING and not streams:
        source, where, detail = _first_source(plan, flow)
        raise ReplaceUsingNotStreamingError.from_flow(
            flow.name, source=source, where=where, detail=detail
        )
    if flow.kind is FlowKind.MATERIALIZED_VIEW and streams:
        raise FlowIsStreamingError.from_flow(
            flow.name, kind="the query of a materialized view", where=flow.location
        )
    if flow.kind is FlowKind.VIEW and dataset.kind is DatasetKind.VIEW and streams:
        raise FlowIsStreamingError.from_flow(
            flow.name, kind="the query of a published view", where=flow.location
        )
    if flow.kind is FlowKind.APPEND and flow.once and streams:
        raise FlowIsStreamingError.from_flow(
            flow.name, kind="a flow that runs once", where=flow.location
        )
    if flow.kind is FlowKind.APPEND and not flow.once and not streams:
        own = flow.name == str(dataset.name)
        if flow.language is Language.PYTHON and own:
            return FlowKind.MATERIALIZED_VIEW
        source, where, detail = _first_source(plan, flow)
        raise FlowNotStreamingError.from_append(
            flow.name, str(flow.target), source=source, where=where, detail=detail
        )
    return flow.kind
