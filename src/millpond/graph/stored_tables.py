"""Tables that are stored, in folders or in the catalog of a server, as resolving sees them."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlparse

from millpond import samples
from millpond.definitions import Dataset
from millpond.delta import Metadata, Table, check_definition
from millpond.engine.protocol import TableRead
from millpond.errors import MillpondError
from millpond.errors.graph import TableLocationError
from millpond.names import TableName
from millpond.storage import Layout, Store

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

EVENT_LOG_NAME = "event_log"
# What says of a path that no table is there, whatever happens.
_NO_PLACE = frozenset(
    {errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES, errno.EPERM, errno.EINVAL}
)
_ELSEWHERE = re.compile(r"(?!file:)[a-z][a-z0-9+.-]+:/+", re.IGNORECASE)


class StoredTable(Protocol):
    """A Delta table, which need not be there yet."""

    @property
    def place(self) -> str:
        """Where it is, which tells it from others."""
        ...

    def exists(self) -> bool: ...

    def obstacle(self) -> str | None:
        """What keeps a table from being there, as a predicate of its location."""
        ...

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
    """A table in a folder of this machine.

    Attributes:
        scheme: That of the URL it would have elsewhere, where there can be none.
    """

    table: Table
    scheme: str | None = None

    @property
    def place(self) -> str:
        return str(self.table.path)

    def exists(self) -> bool:
        return self._look()[0]

    def obstacle(self) -> str | None:
        return self._look()[1]

    def _look(self) -> tuple[bool, str | None]:
        """Whether there is a table, and if not, what keeps it from being there."""
        if self.scheme is not None:
            elsewhere = f"the embedded engine has no tables in {self.scheme}"
            return False, f"is no folder of this machine: {elsewhere}"
        try:
            return self.table.exists(), None
        except ValueError as error:  # As of a NUL.
            return False, f"can't be looked at ({error})"
        except OSError as error:
            if error.errno not in _NO_PLACE:
                raise
            return False, f"can't be looked at ({error.strerror})"

    def is_same(self, other: StoredTable) -> bool:
        return (
            isinstance(other, FolderTable)
            and self.table.path.resolve() == other.table.path.resolve()
        )

    def columns(self) -> StructType:
        return self.table.snapshot().metadata.schema

    def id(self) -> str:
        return self.table.snapshot().metadata.id

    def check(self, metadata: Metadata) -> None:
        check_definition(self.table.path, metadata)


@dataclass(frozen=True)
class FolderTables:
    """Tables in the storage folder of a pipeline, samples, and those in any other folder.

    Each is the same object whoever asks, so that its log is read once.

    Attributes:
        store: Through which tables are read and written.
        root: What relative paths start from.
    """

    layout: Layout
    store: Store
    root: Path
    configuration: Mapping[str, str]
    _known: dict[Path, FolderTable] = field(default_factory=dict, compare=False, repr=False)

    def of(self, dataset: Dataset) -> FolderTable:
        return self.at(dataset.path) if dataset.path else self._table(dataset.name)

    def check_places(self, datasets: Iterable[Dataset]) -> list[MillpondError]:
        """Whether folders of this machine may be there; if they can be made, an update says."""
        return [
            TableLocationError.from_dataset(
                str(dataset.name),
                dataset.path or table.place,
                obstacle,
                where=dataset.location,
            )
            for dataset in datasets
            if dataset.kind.is_stored
            and (obstacle := (table := self.of(dataset)).obstacle()) is not None
        ]

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
        elsewhere = _ELSEWHERE.match(path)
        if elsewhere is not None:
            return FolderTable(Table(self.root / path, self.store), elsewhere[0])
        location = urlparse(path)
        folder = Path(unquote(location.path)) if location.scheme == "file" else Path(path)
        return self._in(folder if folder.is_absolute() else self.root / folder)

    def _table(self, name: TableName) -> FolderTable:
        return self._in(self.layout.table(name))

    def _in(self, folder: Path) -> FolderTable:
        return self._known.setdefault(folder, FolderTable(Table(folder, self.store)))


def delta_table(table: StoredTable | None) -> Table:
    """The Delta table of one that is in a folder."""
    assert isinstance(table, FolderTable)
    return table.table
