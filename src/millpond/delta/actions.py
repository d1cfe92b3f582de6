"""The actions of a Delta log as values, and their JSON.

Follows the section "Actions" of Delta's PROTOCOL.md. Unknown fields and actions are ignored, as it
demands. What the actions mean together is `snapshot.py`'s concern.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import unquote

from millpond.delta.stats import FileStats

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

JsonObject = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class DeletionVector:
    """Which rows of a data file are deleted: a reference to a bitmap, or the bitmap itself.

    Attributes:
        storage_type: `u` for a file named by a UUID, `p` for an absolute path, `i` for inline.
        path_or_inline: Z85 of the UUID (after an optional folder), the path, or Z85 of the bitmap.
        offset: Where the bitmap's size field starts in its file; `None` for inline ones.
        size_bytes: Length of the bitmap with its magic number.
        cardinality: How many rows are deleted.
    """

    storage_type: str
    path_or_inline: str
    offset: int | None
    size_bytes: int
    cardinality: int

    @property
    def unique_id(self) -> str:
        """What distinguishes this vector from others of the same data file."""
        suffix = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline}{suffix}"

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(
            storage_type=value["storageType"],
            path_or_inline=value["pathOrInlineDv"],
            offset=value.get("offset"),
            size_bytes=value["sizeInBytes"],
            cardinality=value["cardinality"],
        )

    def to_json(self) -> JsonObject:
        value: JsonObject = {
            "storageType": self.storage_type,
            "pathOrInlineDv": self.path_or_inline,
        }
        if self.offset is not None:
            value["offset"] = self.offset
        return value | {"sizeInBytes": self.size_bytes, "cardinality": self.cardinality}


@dataclass(frozen=True)
class AddFile:
    """A data file of a table, less the rows that its deletion vector names.

    Attributes:
        path: As in the log: percent-encoded, relative to the table's folder or absolute.
        partition_values: The text of each partition column's value, `None` for null.
        stats_text: The statistics as JSON text; `stats` is the parsed form.
    """

    path: str
    size_bytes: int
    modification_time_ms: int
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    stats_text: str | None = None
    deletion_vector: DeletionVector | None = None
    data_change: bool = True
    tags: Mapping[str, str | None] | None = None

    @cached_property
    def stats(self) -> FileStats | None:
        """The parsed statistics, or `None` where the file has none that can be read."""
        if not self.stats_text:
            return None
        try:
            return FileStats.from_text(self.stats_text)
        except (ValueError, AttributeError):
            return None

    @property
    def num_rows(self) -> int | None:
        """Rows that are not deleted, or `None` where the statistics do not say."""
        if self.stats is None or self.stats.num_records is None:
            return None
        deleted = self.deletion_vector.cardinality if self.deletion_vector else 0
        return self.stats.num_records - deleted

    @cached_property
    def decoded_path(self) -> str:
        """The path as the file system knows it, relative or absolute."""
        return local_path(self.path)

    @property
    def deletion_vector_id(self) -> str | None:
        return self.deletion_vector.unique_id if self.deletion_vector else None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        vector = value.get("deletionVector")
        return cls(
            path=_given(value, "path", str),
            size_bytes=_given(value, "size", int),
            modification_time_ms=value.get("modificationTime") or 0,
            partition_values=value.get("partitionValues") or {},
            stats_text=value.get("stats"),
            deletion_vector=DeletionVector.from_json(vector) if vector else None,
            data_change=value.get("dataChange") is not False,
            tags=value.get("tags"),
        )

    def to_json(self) -> JsonObject:
        value: JsonObject = {
            "path": self.path,
            "partitionValues": dict(self.partition_values),
            "size": self.size_bytes,
            "modificationTime": self.modification_time_ms,
            "dataChange": self.data_change,
        }
        if self.stats_text is not None:
            value["stats"] = self.stats_text
        if self.tags:
            value["tags"] = dict(self.tags)
        if self.deletion_vector is not None:
            value["deletionVector"] = self.deletion_vector.to_json()
        return value


def local_path(path: str) -> str:
    """A path of the log as the file system knows it, relative or absolute.

    >>> local_path("p=a%20b/part.parquet"), local_path("file:/data/part.parquet")
    ('p=a b/part.parquet', '/data/part.parquet')
    """
    decoded = unquote(path)
    # Hadoop writes URLs of this machine's files with one slash, others with three.
    if decoded.startswith("file:/"):
        return "/" + decoded.removeprefix("file:").lstrip("/")
    return decoded


@dataclass(frozen=True)
class RemoveFile:
    """The end of a data file with a certain deletion vector, or with none."""

    path: str
    deletion_time_ms: int | None = None
    data_change: bool = True
    size_bytes: int | None = None
    partition_values: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None

    @property
    def decoded_path(self) -> str:
        """The path as the file system knows it, relative or absolute."""
        return local_path(self.path)

    @property
    def deletion_vector_id(self) -> str | None:
        return self.deletion_vector.unique_id if self.deletion_vector else None

    @classmethod
    def of(cls, file: AddFile, *, time_ms: int, data_change: bool) -> Self:
        return cls(
            path=file.path,
            deletion_time_ms=time_ms,
            data_change=data_change,
            size_bytes=file.size_bytes,
            partition_values=file.partition_values,
            deletion_vector=file.deletion_vector,
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        vector = value.get("deletionVector")
        return cls(
            path=_given(value, "path", str),
            deletion_time_ms=value.get("deletionTimestamp"),
            data_change=value.get("dataChange") is not False,
            size_bytes=value.get("size"),
            partition_values=value.get("partitionValues"),
            deletion_vector=DeletionVector.from_json(vector) if vector else None,
        )

    def to_json(self) -> JsonObject:
        value: JsonObject = {"path": self.path, "dataChange": self.data_change}
        if self.deletion_time_ms is not None:
            value["deletionTimestamp"] = self.deletion_time_ms
        if self.size_bytes is not None and self.partition_values is not None:
            value |= {
                "extendedFileMetadata": True,
                "partitionValues": dict(self.partition_values),
                "size": self.size_bytes,
            }
        if self.deletion_vector is not None:
            value["deletionVector"] = self.deletion_vector.to_json()
        return value


@dataclass(frozen=True)
class Metadata:
    """What a table is: its columns, its partitioning, its properties.

    Attributes:
        schema: Spark's type of a row.
        configuration: The table properties.
    """

    id: str
    schema: StructType
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_time_ms: int | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        from pyspark.sql.types import StructType

        schema = StructType.fromJson(json.loads(value["schemaString"]))
        partition_columns = tuple(value.get("partitionColumns") or ())
        for column in partition_columns:
            if column not in schema.names:
                message = f"the schema has no partition column {column!r}"
                raise ValueError(message)
        return cls(
            id=_given(value, "id", str),
            schema=schema,
            partition_columns=partition_columns,
            configuration=dict(value.get("configuration") or {}),
            name=value.get("name"),
            description=value.get("description"),
            created_time_ms=value.get("createdTime"),
        )

    def to_json(self) -> JsonObject:
        value: JsonObject = {
            "id": self.id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": self.schema.json(),
            "partitionColumns": list(self.partition_columns),
            "configuration": dict(self.configuration),
        }
        optional = {
            "name": self.name,
            "description": self.description,
            "createdTime": self.created_time_ms,
        }
        return value | {key: given for key, given in optional.items() if given is not None}


@dataclass(frozen=True)
class Protocol:
    """What a client must be able to do to read, or write, a table."""

    min_reader_version: int
    min_writer_version: int
    reader_features: frozenset[str] = frozenset()
    writer_features: frozenset[str] = frozenset()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(
            min_reader_version=_given(value, "minReaderVersion", int),
            min_writer_version=_given(value, "minWriterVersion", int),
            reader_features=frozenset(value.get("readerFeatures") or ()),
            writer_features=frozenset(value.get("writerFeatures") or ()),
        )

    def to_json(self) -> JsonObject:
        value: JsonObject = {
            "minReaderVersion": self.min_reader_version,
            "minWriterVersion": self.min_writer_version,
        }
        if self.min_reader_version >= 3:
            value["readerFeatures"] = sorted(self.reader_features)
        if self.min_writer_version >= 7:
            value["writerFeatures"] = sorted(self.writer_features)
        return value


@dataclass(frozen=True)
class Commit:
    """One entry of the log.

    Attributes:
        timestamp_ms: When it was made: the in-commit timestamp, else the entry's file time.
        app_versions: The last batch of each application that this commit records.
        commit_info: Provenance, as the writer chose to give it.
        change_files: The number of change data files, which millpond does not read.
    """

    version: int
    timestamp_ms: int
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    app_versions: Mapping[str, int] = field(default_factory=dict)
    commit_info: Mapping[str, Any] = field(default_factory=dict)
    change_files: int = 0

    @classmethod
    def from_actions(
        cls, actions: Iterable[Mapping[str, Any]], *, version: int, timestamp_ms: int
    ) -> Self:
        """Sort the actions of one log entry by their kind.

        Raises:
            KeyError: An action lacks a field that it must have.
            TypeError, AttributeError, ValueError, RecursionError: Something in one is of another
                kind than it must be.
        """
        adds: list[AddFile] = []
        removes: list[RemoveFile] = []
        metadata: Metadata | None = None
        protocol: Protocol | None = None
        app_versions: dict[str, int] = {}
        commit_info: Mapping[str, Any] = {}
        change_files = 0
        for action in actions:
            if (value := action.get("add")) is not None:
                adds.append(AddFile.from_json(value))
            elif (value := action.get("remove")) is not None:
                removes.append(RemoveFile.from_json(value))
            elif (value := action.get("txn")) is not None:
                app_versions[value["appId"]] = value["version"]
            elif (value := action.get("metaData")) is not None:
                metadata = Metadata.from_json(value)
            elif (value := action.get("protocol")) is not None:
                protocol = Protocol.from_json(value)
            elif (value := action.get("commitInfo")) is not None:
                commit_info = value
            elif action.get("cdc") is not None:
                change_files += 1
        return cls(
            version=version,
            timestamp_ms=commit_info.get("inCommitTimestamp") or timestamp_ms,
            adds=tuple(adds),
            removes=tuple(removes),
            metadata=metadata,
            protocol=protocol,
            app_versions=app_versions,
            commit_info=commit_info,
            change_files=change_files,
        )


def _given(value: Mapping[str, Any], key: str, kind: type[T]) -> T:
    """A field that must be there, and of a kind.

    Raises:
        KeyError: It is missing.
        TypeError: It is something else.
    """
    found = value[key]
    if not isinstance(found, kind):
        raise TypeError(f"{key} is {found!r}")
    return found
