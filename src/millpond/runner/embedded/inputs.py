"""Binds what a flow's query reads to what is there when it runs: tables, views, micro-batches."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from millpond.delta import Table, check_data_files
from millpond.engine.protocol import DeltaInput, Input, TableRead
from millpond.graph import (
    LocalSource,
    PipelineSource,
    ResolvedFlow,
    StoredTable,
    delta_table,
    stream_key,
)
from millpond.runner.runtime import ResolvedPipeline
from millpond.streaming import rows_input

_READER = "The query"


@dataclass(frozen=True)
class FlowInputs:
    """The binder of one flow for one micro-batch.

    Attributes:
        streams: The input of each stream of the flow, by its source name; empty for batch queries.
        folder: For files that have to be written for the batch. It need not exist.
    """

    flow: ResolvedFlow
    pipeline: ResolvedPipeline
    streams: Mapping[str, Input]
    folder: Path

    def __call__(self, read: TableRead) -> Input:
        """Return what `read` gives in this batch. A table that is not a stream is read whole."""
        if read.format is not None:
            if read.streaming:
                return self._stream(read, None)
            folder = self.folder / uuid.uuid4().hex
            external = self.pipeline.external.find(read, reader=self.flow.name)
            assert isinstance(external, LocalSource)
            return external.rows(folder=folder, has_metadata=read.metadata)
        catalog = self.pipeline.catalog
        source = catalog.find(read, reader=self.flow.name)
        if isinstance(source, PipelineSource):
            dataset = self.pipeline.graph.datasets[source.dataset.name.key]
            if not dataset.dataset.kind.is_stored:
                return dataset.as_input()
            table = catalog.table(dataset.dataset)
        else:
            table = source.table
        if not read.streaming:
            return table_input(delta_table(table), read, folder=self.folder)
        return self._stream(read, table)

    def _stream(self, read: TableRead, table: StoredTable | None) -> Input:
        wanted = stream_key(read, table)
        return next(
            self.streams[stream.source] for stream in self.flow.streams if stream.key == wanted
        )


@dataclass(frozen=True)
class UserQueryInputs:
    """The binder of a user's own query, which reads everything whole.

    Attributes:
        folder: For files that have to be written for it.
    """

    pipeline: ResolvedPipeline
    folder: Path

    def __call__(self, read: TableRead) -> Input:
        """Return all that `read` names."""
        catalog = self.pipeline.catalog
        if read.format is not None:
            own = self.folder / uuid.uuid4().hex
            external = self.pipeline.external.find(read, reader=_READER)
            assert isinstance(external, LocalSource)
            return external.rows(folder=own, has_metadata=read.metadata)
        source = catalog.find(read, reader=_READER)
        if not isinstance(source, PipelineSource):
            return table_input(delta_table(source.table), read, folder=self.folder)
        found = self.pipeline.graph.datasets.get(source.dataset.name.key)
        if found is not None and not found.dataset.kind.is_stored:
            return found.as_input()
        stored = catalog.stored_table(source, read, reader=_READER)
        return table_input(delta_table(stored), read, folder=self.folder)


def table_input(table: Table, read: TableRead, *, folder: Path) -> Input:
    """A whole table, as of the version that the read asks for, or the newest.

    A table whose log would lead the engine astray is read by its files instead.

    Args:
        table: The table.
        read: The read.
        folder: For files that have to be written for it.

    Raises:
        DataFileMissingError: A file of it is gone.
        DataFileUnreadableError: A file of it is damaged.
    """
    asked = read.options.get("versionasof", "")
    snapshot = table.snapshot_at(int(asked)) if asked.isdecimal() else table.snapshot()
    if not snapshot.has_misleading_bounds:
        check_data_files(snapshot)
        return DeltaInput.of(snapshot)
    files = tuple(snapshot.files.values())
    return rows_input(snapshot, [files], folder=folder / uuid.uuid4().hex, store=table.store)
