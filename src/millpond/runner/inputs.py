"""Binds what a flow's query reads to what is there when it runs: tables, views, micro-batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from millpond.delta import Table
from millpond.engine.protocol import DeltaInput, Input, TableRead
from millpond.errors.graph import TableNotFoundError
from millpond.graph import Catalog, Graph, PipelineSource, ResolvedFlow


@dataclass(frozen=True)
class FlowInputs:
    """The binder of one flow for one micro-batch.

    Attributes:
        streams: The input of each stream of the flow, by its source name; empty for batch queries.
    """

    flow: ResolvedFlow
    graph: Graph
    catalog: Catalog
    streams: Mapping[str, Input]

    def __call__(self, read: TableRead) -> Input:
        """Return what `read` gives in this batch. A table that is not a stream is read whole."""
        source = self.catalog.find(read, reader=self.flow.name)
        if isinstance(source, PipelineSource):
            dataset = self.graph.datasets[source.dataset.name.key]
            if not dataset.dataset.kind.is_stored:
                return dataset.as_input()
            path = self.catalog.table_path(dataset.dataset)
        else:
            path = source.path
        if not read.streaming:
            return DeltaInput(str(path))
        wanted = sorted(read.options.items())
        return next(
            self.streams[stream.source]
            for stream in self.flow.streams
            if stream.path == path and sorted(stream.options.items()) == wanted
        )


def check_upstream(flow: ResolvedFlow, graph: Graph) -> None:
    """Raise where the flow reads a table of the pipeline that no update has made yet."""
    for key in flow.upstream:
        dataset = graph.datasets[key]
        if dataset.path is not None and not Table(dataset.path).exists():
            raise TableNotFoundError.from_unrefreshed(
                str(dataset.name), reader=flow.name, where=flow.flow.location
            )
