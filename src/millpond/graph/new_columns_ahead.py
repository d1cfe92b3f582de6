"""What the next update will make of new columns of files, told to the one that meets them.

It is resolved again only what the columns reach: the flow's query, its table, and what reads that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.definitions import DatasetKind
from millpond.delta import widen_schema
from millpond.engine.protocol import EmptyInput, Engine, Input, TableRead
from millpond.errors import MillpondError
from millpond.files.columns import NewColumn
from millpond.graph import schemas
from millpond.graph.catalog import Catalog, StoredSource
from millpond.graph.external import ExternalSources
from millpond.graph.new_columns import Trial
from millpond.graph.resolved import (
    Graph,
    Key,
    ResolvedDataset,
    ResolvedFlow,
    StreamRead,
    stream_key,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class NewColumnsAhead:
    """Tries new columns of a stream in a pipeline that is resolved. Changes nothing.

    Attributes:
        flow: Which follows the stream.
    """

    graph: Graph
    catalog: Catalog
    external: ExternalSources
    engine: Engine
    flow: ResolvedFlow
    stream: StreamRead

    def refused(self, new: Sequence[NewColumn]) -> Mapping[NewColumn, str]:
        """Those that a query or a table can't take, with why."""
        trial = Trial(self._reasons)
        trial.run(list(dict.fromkeys(new)))
        return trial.refused

    def _reasons(self, new: Sequence[NewColumn]) -> Mapping[str, str]:
        from millpond.graph.files import FileRead

        read = self.stream.external
        assert isinstance(read, FileRead)
        columns = read.taking(new, refused={}).schema
        changed: dict[Key, StructType] = {}
        reasons: dict[str, str] = {}
        for dataset in self.graph.datasets.values():
            is_fed = any(flow.name == self.flow.name for flow in dataset.flows)
            if is_fed or dataset.upstream & changed.keys():
                try:
                    found = self._columns(dataset, columns, changed)
                except MillpondError as error:
                    reasons[f"{dataset.name} {error}"] = error.what
                else:
                    changed[dataset.key] = found
        return reasons

    def _columns(
        self, dataset: ResolvedDataset, columns: StructType, changed: Mapping[Key, StructType]
    ) -> StructType:
        """The columns that a dataset will have.

        Raises:
            MillpondError: It can't have them.
        """
        flows = tuple(self._with_columns(flow, columns, changed) for flow in dataset.flows)
        existing = None
        if dataset.dataset.kind is DatasetKind.STREAMING_TABLE and dataset.table is not None:
            existing = dataset.table.columns() if dataset.table.exists() else None
        found = schemas.table_schema(dataset.dataset, flows, existing=existing, engine=self.engine)
        if existing is not None:
            widen_schema(existing, found)
        for flow in flows:
            for problem in schemas.check_declared(dataset.dataset, flow, found):
                raise problem
        return found

    def _with_columns(
        self, flow: ResolvedFlow, columns: StructType, changed: Mapping[Key, StructType]
    ) -> ResolvedFlow:
        def bind(read: TableRead) -> Input:
            return self._bound(read, flow, columns, changed)

        schema = self.engine.schema(flow.plan, bind)
        schemas.check_query(flow.flow, schema)
        return dataclasses.replace(flow, schema=schema)

    def _bound(
        self,
        read: TableRead,
        flow: ResolvedFlow,
        columns: StructType,
        changed: Mapping[Key, StructType],
    ) -> Input:
        if read.format is not None:
            external = self.external.find(read, reader=flow.name)
            is_it = read.streaming and stream_key(read, None) == self.stream.key
            grows = is_it and flow.name == self.flow.name
            return EmptyInput(columns if grows else external.schema, external.name)
        source = self.catalog.find(read, reader=flow.name)
        if isinstance(source, StoredSource):
            return EmptyInput(source.table.columns(), source.name)
        dataset = self.graph.datasets[source.dataset.name.key]
        if dataset.dataset.kind.is_stored:
            return EmptyInput(changed.get(dataset.key, dataset.schema), source.name)
        return dataset.as_input()
