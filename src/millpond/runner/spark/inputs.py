"""Binds what a query reads to what the server reads by itself: its tables, files, topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from millpond.engine.protocol import Input, ServerInput, TableRead
from millpond.graph import PipelineSource, StoredTable
from millpond.options import stream_limits
from millpond.runner.runtime import ResolvedPipeline
from millpond.runner.spark.sources import SparkSource
from millpond.runner.spark.tables import SparkTable


@dataclass(frozen=True)
class ServerInputs:
    """The binder of a query that runs on the server.

    Attributes:
        reader: Who reads, for messages.
        configuration: The pipeline's settings, of which limits of a micro-batch matter here.
    """

    reader: str
    pipeline: ResolvedPipeline
    configuration: Mapping[str, str]

    def __call__(self, read: TableRead) -> Input:
        """Return what `read` names, as a stream where it asks for one."""
        if read.format is not None:
            source = self.pipeline.external.find(read, reader=self.reader)
            assert isinstance(source, SparkSource)
            return replace(source.input, has_metadata=read.metadata)
        catalog = self.pipeline.catalog
        found = catalog.find(read, reader=self.reader)
        if not isinstance(found, PipelineSource):
            return self._table(found.table, read)
        dataset = self.pipeline.graph.datasets.get(found.dataset.name.key)
        if dataset is not None and not dataset.dataset.kind.is_stored:
            return dataset.as_input()
        return self._table(catalog.stored_table(found, read, reader=self.reader), read)

    def _table(self, table: StoredTable, read: TableRead) -> Input:
        assert isinstance(table, SparkTable)
        limits = stream_limits(self.configuration) if read.streaming else {}
        options = {**limits, **read.options}
        if table.location is None:
            return ServerInput(table=table.sql, options=options, streaming=read.streaming)
        return ServerInput(
            format="delta", paths=(table.location,), options=options, streaming=read.streaming
        )
