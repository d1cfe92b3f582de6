"""Finds what a name in a query stands for: a dataset of the pipeline, a sample, a stored table.

Reads no data. Whether a found dataset can be read is for its reader to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

from millpond import samples
from millpond.definitions import Dataset, DatasetKind, Pipeline
from millpond.delta import Table
from millpond.engine.protocol import TableRead
from millpond.errors.graph import NotADeltaTableError, TableNotFoundError
from millpond.names import TableName, resolve_name
from millpond.storage import Layout

EVENT_LOG_NAME = "event_log"


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
    path: Path


Source = PipelineSource | StoredSource


class Catalog:
    """Looks names up: views first, then the pipeline's tables, samples, tables in the storage."""

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        layout: Layout,
        catalog: str,
        schema: str,
        root: Path,
        configuration: Mapping[str, str],
    ) -> None:
        self._layout = layout
        self._catalog = catalog
        self._schema = schema
        self._root = root
        self._configuration = configuration
        self._datasets = {dataset.name.key: dataset for dataset in pipeline.datasets}
        self._views = {
            dataset.name.table.lower(): dataset
            for dataset in pipeline.datasets
            if dataset.kind is DatasetKind.TEMPORARY_VIEW
        }

    def table_path(self, dataset: Dataset) -> Path:
        """The folder of a stored dataset."""
        return self._path(dataset.path) if dataset.path else self._layout.table(dataset.name)

    def stored_path(self, source: PipelineSource, read: TableRead, *, reader: str) -> Path:
        """The folder of a dataset's table, which must be there.

        Raises:
            TableNotFoundError: The dataset was never refreshed.
        """
        path = self.table_path(source.dataset)
        if not Table(path).exists():
            raise TableNotFoundError.from_unrefreshed(
                source.name, reader=reader, where=read.location
            )
        return path

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
            path = self._path(read.path)
            if not Table(path).exists():
                raise NotADeltaTableError.from_path(read.path, reader=reader, where=read.location)
            return self._own_table_at(path) or StoredSource(str(path), path)
        return self._find_name(read, reader=reader)

    def _find_name(self, read: TableRead, *, reader: str) -> Source:
        if len(read.name) == 1 and (view := self._views.get(read.name[0].lower())):
            return PipelineSource(view)
        catalog = read.catalog or self._catalog
        schema = read.schema or self._schema
        full = TableName(*(catalog, schema, "")[: 3 - len(read.name)], *read.name[-3:])
        if dataset := self._datasets.get(full.key):
            return PipelineSource(dataset)
        sample = samples.locate(
            full.parts,
            layout=self._layout,
            configuration=self._configuration,
            where=read.location,
        )
        if sample is not None:
            return StoredSource(str(full), sample)
        stored = self._layout.table(full)
        if Table(stored).exists():
            return StoredSource(str(full), stored)
        if read.name[-1].lower() == EVENT_LOG_NAME and Table(self._layout.events).exists():
            return StoredSource(EVENT_LOG_NAME, self._layout.events)
        raise TableNotFoundError.from_read(
            str(full), reader=reader, known=self.known_names(), where=read.location
        )

    def _own_table_at(self, path: Path) -> PipelineSource | None:
        """A dataset read by its location must still run before its reader."""
        for dataset in self._datasets.values():
            if dataset.kind.is_stored and self.table_path(dataset).resolve() == path.resolve():
                return PipelineSource(dataset)
        return None

    def _path(self, text: str) -> Path:
        location = urlparse(text)
        path = Path(unquote(location.path)) if location.scheme == "file" else Path(text)
        return path if path.is_absolute() else self._root / path
