"""Finds what a name in a query stands for: a dataset of the pipeline, a sample, a stored table.

Reads no data. Whether a found dataset can be read is for its reader to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from millpond.definitions import Dataset, DatasetKind, Pipeline
from millpond.engine.protocol import TableRead
from millpond.errors import MillpondError
from millpond.errors.graph import NotADeltaTableError, TableNotFoundError
from millpond.graph.stored_tables import EVENT_LOG_NAME, StoredTable, StoredTables
from millpond.names import TableName, resolve_name


@dataclass(frozen=True)
class PipelineSource:
    """A dataset that the pipeline defines."""

    dataset: Dataset

    @property
    def name(self) -> str:
        return str(self.dataset.name)


@dataclass(frozen=True)
class StoredSource:
    """A Delta table that is there already.

    Attributes:
        name: What to call it in messages and checkpoints: a three-part name or a path.
    """

    name: str
    table: StoredTable


Source = PipelineSource | StoredSource


class Catalog:
    """Looks names up: views first, then the pipeline's tables, then those that are stored."""

    def __init__(
        self, pipeline: Pipeline, tables: StoredTables, *, catalog: str, schema: str
    ) -> None:
        self._tables = tables
        self._catalog = catalog
        self._schema = schema
        self._datasets = {dataset.name.key: dataset for dataset in pipeline.datasets}
        self._views = {
            dataset.name.table.lower(): dataset
            for dataset in pipeline.datasets
            if dataset.kind is DatasetKind.TEMPORARY_VIEW
        }

    def check_places(self) -> list[MillpondError]:
        """What keeps the pipeline's tables from being where they are to be."""
        return self._tables.check_places(self._datasets.values())

    def table(self, dataset: Dataset) -> StoredTable:
        """The table of a stored dataset."""
        return self._tables.of(dataset)

    def stored_table(self, source: PipelineSource, read: TableRead, *, reader: str) -> StoredTable:
        """The table of a stored dataset, which must be there.

        Raises:
            TableNotFoundError: The dataset was never refreshed.
        """
        table = self.table(source.dataset)
        if not table.exists():
            raise TableNotFoundError.from_unrefreshed(
                source.name, reader=reader, where=read.location
            )
        return table

    def name(self, text: str) -> TableName:
        """The full name for a name that a user gave on the command line."""
        return resolve_name(text, catalog=self._catalog, schema=self._schema)

    def dataset(self, name: TableName) -> Dataset | None:
        return self._datasets.get(name.key)

    def known_names(self) -> Iterable[str]:
        return [str(dataset.name) for dataset in self._datasets.values()]

    def find(self, read: TableRead, *, reader: str) -> Source:
        """Find what `read` reads.

        Args:
            reader: The flow that reads it, for messages.

        Raises:
            TableNotFoundError: No such name.
            NotADeltaTableError: No table at the location.
        """
        if read.path is not None:
            table = self._tables.at(read.path)
            if not table.exists():
                absence = table.obstacle() or "holds no Delta table"
                raise NotADeltaTableError.from_path(
                    read.path, absence, reader=reader, where=read.location
                )
            return self._own_table(table) or StoredSource(table.place, table)
        return self._find_name(read, reader=reader)

    def _find_name(self, read: TableRead, *, reader: str) -> Source:
        if len(read.name) == 1 and (view := self._views.get(read.name[0].lower())):
            return PipelineSource(view)
        catalog = read.catalog or self._catalog
        schema = read.schema or self._schema
        full = TableName(*(catalog, schema, "")[: 3 - len(read.name)], *read.name[-3:])
        if dataset := self._datasets.get(full.key):
            return PipelineSource(dataset)
        stored = self._tables.named(full, read)
        if stored is not None:
            return StoredSource(str(full), stored)
        log = self._tables.event_log() if read.name[-1].lower() == EVENT_LOG_NAME else None
        if log is not None:
            return StoredSource(EVENT_LOG_NAME, log)
        raise TableNotFoundError.from_read(
            str(full), reader=reader, known=self.known_names(), where=read.location
        )

    def _own_table(self, table: StoredTable) -> PipelineSource | None:
        """A dataset read by its location must still run before its reader."""
        for dataset in self._datasets.values():
            if dataset.kind.is_stored and self.table(dataset).is_same(table):
                return PipelineSource(dataset)
        return None
