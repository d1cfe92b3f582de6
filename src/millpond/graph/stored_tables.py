"""Tables that are stored, in folders or in the catalog of a server, as resolving sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlparse

from millpond import samples
from millpond.definitions import Dataset
from millpond.delta import Metadata, Table, check_definition
from millpond.engine.protocol import TableRead
from millpond.errors import MillpondError
from millpond.names import TableName
from millpond.storage import Layout

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

EVENT_LOG_NAME = "event_log"


class StoredTable(Protocol):
    """A Delta table, which need not be there yet."""

    @property
    def place(self) -> str:
        """Where it is, which tells it from others."""
        ...

    def exists(self) -> bool: ...

    def is_same(self, other: StoredTable) -> bool:
        """Whether another is the same table, under whatever name."""
        ...

    def columns(self) -> StructType:
        """Its columns, in order."""
        ...

    def id(self) -> str:
        """The id in its metadata, which stays when it is moved."""
        ...

    def check(self, metadata: Metadata) -> None:
        """Raise for what it can't be made to have."""
        ...


class StoredTables(Protocol):
    """Finds tables."""

    def of(self, dataset: Dataset) -> StoredTable:
        """The table of a stored dataset."""
        ...

    def check_places(self, datasets: Iterable[Dataset]) -> list[MillpondError]:
        """What keeps tables of datasets from being anywhere, once for all of them."""
        ...

    def named(self, name: TableName, read: TableRead) -> StoredTable | None:
        """The table that a name stands for, if it is there and the pipeline does not define it."""
        ...

    def event_log(self) -> StoredTable | None:
        """The event log, once there is one."""
        ...

    def at(self, path: str) -> StoredTable:
        """The table at a location."""
        ...


@dataclass(frozen=True)
class FolderTable:
    """A table in a folder of this machine."""

    path: Path

    @property
    def place(self) -> str:
        return str(self.path)

    @cached_property
    def _table(self) -> Table:
        return Table(self.path)

    def exists(self) -> bool:
        return self._table.exists()

    def is_same(self, other: StoredTable) -> bool:
        return isinstance(other, FolderTable) and self.path.resolve() == other.path.resolve()

    def columns(self) -> StructType:
        return self._table.snapshot().metadata.schema

    def id(self) -> str:
        return self._table.snapshot().metadata.id

    def check(self, metadata: Metadata) -> None:
        check_definition(self.path, metadata)


@dataclass(frozen=True)
class FolderTables:
    """Tables in the storage folder of a pipeline, samples, and those in any other folder.

    Attributes:
        root: What relative paths start from.
    """

    layout: Layout
    root: Path
    configuration: Mapping[str, str]
    # What was read of a table's log need not be read again.
    _known: dict[Path, FolderTable] = field(default_factory=dict, compare=False, repr=False)

    def of(self, dataset: Dataset) -> FolderTable:
        return self.at(dataset.path) if dataset.path else self._table(dataset.name)

    def check_places(self, datasets: Iterable[Dataset]) -> list[MillpondError]:
        """A folder may be anywhere: whether it can be made, an update says."""
        del datasets
        return []

    def named(self, name: TableName, read: TableRead) -> FolderTable | None:
        sample = samples.locate(
            name.parts,
            layout=self.layout,
            configuration=self.configuration,
            where=read.location,
        )
        if sample is not None:
            return self._in(sample)
        stored = self._table(name)
        return stored if stored.exists() else None

    def event_log(self) -> FolderTable | None:
        log = self._in(self.layout.events)
        return log if log.exists() else None

    def at(self, path: str) -> FolderTable:
        location = urlparse(path)
        folder = Path(unquote(location.path)) if location.scheme == "file" else Path(path)
        return self._in(folder if folder.is_absolute() else self.root / folder)

    def _table(self, name: TableName) -> FolderTable:
        return self._in(self.layout.table(name))

    def _in(self, folder: Path) -> FolderTable:
        return self._known.setdefault(folder, FolderTable(folder))


def folder_of(table: StoredTable | None) -> Path:
    """The folder of a table that is in one."""
    assert isinstance(table, FolderTable)
    return table.path
