"""Tables of a Spark server, as resolving sees them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from millpond import samples
from millpond.definitions import Dataset
from millpond.delta import Metadata
from millpond.engine.protocol import TableRead
from millpond.engine.spark import SparkEngine
from millpond.errors import MillpondError, SourceLocation
from millpond.errors.spark import CatalogNotOnServerError
from millpond.graph import StoredTable
from millpond.names import DEFAULT_CATALOG, TableName
from millpond.runner.spark.conflicts import retried
from millpond.runner.spark.places import Places
from millpond.runner.spark.sql import path_sql, properties_sql, table_sql

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from millpond.engine.spark.session import ClientSession

# What a server says of a name or a location without a table.
_MISSING = frozenset(
    {
        "TABLE_OR_VIEW_NOT_FOUND",
        "SCHEMA_NOT_FOUND",
        "PATH_NOT_FOUND",
        "DELTA_MISSING_DELTA_TABLE",
        "DELTA_TABLE_NOT_FOUND",
        "DELTA_PATH_DOES_NOT_EXIST",
        "DELTA_SCHEMA_NOT_SET",
    }
)
_CATALOG_MISSING = frozenset({"REQUIRES_SINGLE_PART_NAMESPACE", "CATALOG_NOT_FOUND"})
_NOT_THERE = _MISSING | _CATALOG_MISSING


@dataclass(frozen=True)
class TableDetail:
    """What the server tells of a Delta table.

    Attributes:
        lived_s: From when it was made to its newest commit; longer than anything if not known.
    """

    id: str
    location: str
    properties: Mapping[str, str]
    partition_columns: tuple[str, ...]
    cluster_columns: tuple[str, ...]
    features: frozenset[str]
    description: str | None
    lived_s: float


def _lived_s(created: datetime | None, last_modified: datetime | None) -> float:
    if created is None or last_modified is None:
        return math.inf
    return (last_modified - created).total_seconds()


@dataclass(frozen=True)
class SparkTable:
    """A table of the server's catalog, or at a location that the server sees.

    Attributes:
        sql: Its name as SQL text, quoted.
        location: Where it is, of one that is not in the catalog.
    """

    sql: str
    engine: SparkEngine
    location: str | None = None

    @property
    def place(self) -> str:
        return self.sql

    def exists(self) -> bool:
        return self._columns() is not None

    def obstacle(self) -> str | None:
        """None that is known here: the server says so."""
        return None

    def is_same(self, other: StoredTable) -> bool:
        if not isinstance(other, SparkTable):
            return False
        if self.sql.lower() == other.sql.lower():
            return True
        ours, theirs = self.detail(), other.detail()
        return ours is not None and theirs is not None and ours.location == theirs.location

    def columns(self) -> StructType:
        found = self._columns()
        if found is None:
            message = f"{self.sql} is not there"
            raise LookupError(message)
        return found

    def id(self) -> str:
        found = self.detail()
        return self.sql if found is None else found.id

    def check(self, metadata: Metadata) -> None:
        """The server checks what it is asked for when it makes the table."""

    def row_count(self) -> int:
        return int(self.engine.rows(f"SELECT count(*) AS rows FROM {self.sql}")[0]["rows"])

    def newest_version(self) -> int:
        return int(self.engine.rows(f"DESCRIBE HISTORY {self.sql} LIMIT 1")[0]["version"])

    def restore(self, version: int) -> None:
        """Bring a Delta table back to a version, which must not be older than old files stay."""
        self.engine.rows(f"RESTORE TABLE {self.sql} TO VERSION AS OF {version}")

    def properties(self) -> Mapping[str, str]:
        """Those of a Delta table that is there."""
        found = self.detail()
        return {} if found is None else found.properties

    def set_properties(self, properties: Mapping[str, str]) -> None:
        self.alter(f"SET TBLPROPERTIES ({properties_sql(properties)})")

    def alter(self, change: str) -> None:
        retried(lambda: self.engine.rows(f"ALTER TABLE {self.sql} {change}"))

    def append_nothing(self, writer: str, number: int) -> None:
        """Commit a batch without rows under a writer's id."""

        def append(session: ClientSession) -> None:
            rows = session.sql(f"SELECT * FROM {self.sql} WHERE false")
            writing = rows.write.format("delta").mode("append")
            writing.options(txnAppId=writer, txnVersion=str(number)).saveAsTable(self.sql)

        self.engine.asked(append)

    def detail(self) -> TableDetail | None:
        """What the server tells of it; nothing where it is no Delta table, or not there."""
        from pyspark.errors import PySparkException

        try:
            row = self.engine.rows(f"DESCRIBE DETAIL {self.sql}")[0]
        except PySparkException as error:
            if error.getCondition() in _NOT_THERE:
                return None
            raise
        if row["format"] != "delta":
            return None
        return TableDetail(
            id=row["id"],
            location=row["location"],
            properties=dict(row["properties"]),
            partition_columns=tuple(row["partitionColumns"]),
            cluster_columns=tuple(row.get("clusteringColumns") or ()),
            features=frozenset(row.get("tableFeatures") or ()),
            description=row["description"],
            lived_s=_lived_s(row["createdAt"], row["lastModified"]),
        )

    def is_in_known_catalog(self) -> bool:
        """Whether the server has the catalog that its name says."""
        from pyspark.errors import PySparkException

        try:
            self._asked_columns()
        except PySparkException as error:
            return error.getCondition() not in _CATALOG_MISSING
        return True

    def _columns(self) -> StructType | None:
        from pyspark.errors import PySparkException

        try:
            return self._asked_columns()
        except PySparkException as error:
            if error.getCondition() in _NOT_THERE:
                return None
            raise

    def _asked_columns(self) -> StructType:
        from pyspark.sql.connect import proto

        relation = proto.Relation()
        relation.read.named_table.unparsed_identifier = self.sql
        return self.engine.asked(lambda session: session.client.schema(proto.Plan(root=relation)))


@dataclass(frozen=True)
class SparkTables:
    """Finds tables: by their three-part names in the server's catalog, and by location.

    Attributes:
        root: What relative paths start from.
        catalog: The pipeline's own.
    """

    engine: SparkEngine
    places: Places
    root: Path
    configuration: Mapping[str, str]
    catalog: str

    def of(self, dataset: Dataset) -> SparkTable:
        return self.at(dataset.path) if dataset.path else self._table(dataset.name)

    def check_places(self, datasets: Iterable[Dataset]) -> list[MillpondError]:
        """Whether the server has the catalogs in which tables are to be."""
        if self.places.has_tables:
            return []
        first: dict[str, Dataset] = {}
        for dataset in datasets:
            if dataset.kind.is_stored and not dataset.path:
                first.setdefault(dataset.name.catalog, dataset)
        first.pop(DEFAULT_CATALOG, None)
        return [
            self._no_catalog(catalog, where=dataset.location)
            for catalog, dataset in first.items()
            if not self._table(dataset.name).is_in_known_catalog()
        ]

    def named(self, name: TableName, read: TableRead) -> SparkTable | None:
        below_storage = self._table(name)
        if self.places.has_tables and below_storage.exists():
            return below_storage
        table = SparkTable(table_sql(name), self.engine)
        if table.exists():
            return table
        sample = self._sample(name, read)
        if sample is not None or self._is_below_storage(name) or table.is_in_known_catalog():
            return sample
        raise self._no_catalog(name.catalog, where=read.location)

    def event_log(self) -> SparkTable | None:
        """The event log is kept on this machine, so the server has to see its folders."""
        folder = self.places.layout.events
        if not self.places.sees_this_machine or not (folder / "_delta_log").is_dir():
            return None
        return self.at(str(folder.absolute()))

    def at(self, path: str) -> SparkTable:
        is_local_path = not urlparse(path).scheme
        location = str((self.root / path).resolve()) if is_local_path else path
        return SparkTable(path_sql(location), self.engine, location)

    def _table(self, name: TableName) -> SparkTable:
        """The pipeline's own table of a name."""
        location = self.places.table(name)
        sql = table_sql(name) if location is None else path_sql(location)
        return SparkTable(sql, self.engine, location)

    def _no_catalog(self, catalog: str, *, where: SourceLocation | None) -> MillpondError:
        return CatalogNotOnServerError.from_name(
            catalog,
            known=", ".join(row["catalog"] for row in self.engine.rows("SHOW CATALOGS")),
            is_of_spec=catalog.lower() == self.catalog.lower(),
            where=where,
        )

    def _is_below_storage(self, name: TableName) -> bool:
        """Whether a table of that name would lie there, which needs no catalog of the server."""
        return self.places.has_tables and name.catalog.lower() == self.catalog.lower()

    def _sample(self, name: TableName, read: TableRead) -> SparkTable | None:
        """A sample, which is made on this machine."""
        if not self.places.sees_this_machine:
            return None
        folder = samples.locate(
            name.parts,
            layout=self.places.layout,
            configuration=self.configuration,
            where=read.location,
        )
        return None if folder is None else self.at(str(folder.absolute()))
