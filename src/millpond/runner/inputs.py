"""Binds what a flow's query reads to what is there when it runs: tables, views, micro-batches."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from millpond.delta import Table
from millpond.engine.protocol import DeltaInput, Input, TableRead
from millpond.errors.graph import TableNotFoundError
from millpond.graph import (
    Catalog,
    ExternalSources,
    Graph,
    PipelineSource,
    ResolvedFlow,
    stream_key,
)
from millpond.storage import Store
from millpond.streaming import rows_input


@dataclass(frozen=True)
class FlowInputs:
    """The binder of one flow for one micro-batch.

    Attributes:
        streams: The input of each stream of the flow, by its source name; empty for batch queries.
        folder: For files that have to be written for the batch. It need not exist.
    """

    flow: ResolvedFlow
    graph: Graph
    catalog: Catalog
    external: ExternalSources
    streams: Mapping[str, Input]
    folder: Path
    store: Store

    def __call__(self, read: TableRead) -> Input:
        """Return what `read` gives in this batch. A table that is not a stream is read whole."""
        if read.format is not None:
            if read.streaming:
                return self._stream(read, None)
            folder = self.folder / uuid.uuid4().hex
            external = self.external.find(read, reader=self.flow.name)
            return external.rows(folder=folder, has_metadata=read.metadata)
        source = self.catalog.find(read, reader=self.flow.name)
        if isinstance(source, PipelineSource):
            dataset = self.graph.datasets[source.dataset.name.key]
            if not dataset.dataset.kind.is_stored:
                return dataset.as_input()
            path = self.catalog.table_path(dataset.dataset)
        else:
            path = source.path
        if not read.streaming:
            return table_input(path, read, folder=self.folder, store=self.store)
        return self._stream(read, path)

    def _stream(self, read: TableRead, path: Path | None) -> Input:
        wanted = stream_key(read, path)
        return next(
            self.streams[stream.source] for stream in self.flow.streams if stream.key == wanted
        )


def table_input(path: Path, read: TableRead, *, folder: Path, store: Store) -> Input:
    """A whole table, as of the version that the read asks for, or the newest.

    A table whose log would lead the engine astray is read by its files instead.

    Args:
        path: The table's folder.
        read: The read.
        folder: For files that have to be written for it.
        store: For reading the table's log.
    """
    asked = read.options.get("versionasof", "")
    table = Table(path, store)
    snapshot = table.snapshot_at(int(asked)) if asked.isdecimal() else table.snapshot()
    if not snapshot.has_misleading_bounds:
        return DeltaInput(str(path), int(asked) if asked.isdecimal() else None)
    files = tuple(snapshot.files.values())
    return rows_input(snapshot, [files], folder=folder / uuid.uuid4().hex, store=store)


def check_upstream(flow: ResolvedFlow, graph: Graph) -> None:
    """Raise where the flow reads a table of the pipeline that no update has made yet."""
    for key in flow.upstream:
        dataset = graph.datasets[key]
        if dataset.path is not None and not Table(dataset.path).exists():
            raise TableNotFoundError.from_unrefreshed(
                str(dataset.name), reader=flow.name, where=flow.flow.location
            )
