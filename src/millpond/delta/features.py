"""Which features of the Delta protocol millpond honours, for reading and for writing.

Follows "Table Features" of Delta's PROTOCOL.md. Some features only matter once a property or a
column uses them; a table that merely lists those stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millpond.delta.actions import Metadata, Protocol
from millpond.errors.delta import UnsupportedTableFeatureError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

READER_FEATURES = frozenset(
    {
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
WRITER_FEATURES = READER_FEATURES | {
    "appendOnly",
    "domainMetadata",
    "inCommitTimestamp",
    "invariants",
}

# Features that bind a reader or writer only where the table makes use of them. delta-rs lists all
# that it knows once a table has named features at all.
_READER_IN_USE: Mapping[str, Callable[[Metadata], bool]] = {
    **{
        feature: lambda metadata: _has_type(metadata, "variant")
        for feature in (
            "variantType",
            "variantType-preview",
            "variantShredding",
            "variantShredding-preview",
        )
    },
    "columnMapping": lambda metadata: (
        metadata.configuration.get("delta.columnMapping.mode", "none") != "none"
    ),
}
_WRITER_IN_USE: Mapping[str, Callable[[Metadata], bool]] = {
    **_READER_IN_USE,
    "allowColumnDefaults": lambda metadata: _has_field_key(metadata, "CURRENT_DEFAULT"),
    "changeDataFeed": lambda metadata: (
        metadata.configuration.get("delta.enableChangeDataFeed") == "true"
    ),
    "checkConstraints": lambda metadata: any(
        key.startswith("delta.constraints.") for key in metadata.configuration
    ),
    "generatedColumns": lambda metadata: _has_field_key(metadata, "delta.generationExpression"),
    "identityColumns": lambda metadata: _has_field_key(metadata, "delta.identity."),
    "invariants": lambda metadata: _has_field_key(metadata, "delta.invariants"),
}

# Further properties under which millpond may not write: what they turn on, it can't honour.
_REFUSED_PROPERTIES: Mapping[str, Callable[[str], bool]] = {
    "delta.enableIcebergCompatV1": lambda value: value == "true",
    "delta.enableIcebergCompatV2": lambda value: value == "true",
    "delta.enableRowTracking": lambda value: value == "true",
    # Checkpoints would forget which batches the table holds, and the batches would come again.
    "delta.setTransactionRetentionDuration": lambda _: True,
}

# What the versions before named features imply.
_IMPLIED_WRITER_FEATURES: tuple[tuple[int, str], ...] = (
    (2, "invariants"),
    (3, "checkConstraints"),
    (4, "changeDataFeed"),
    (4, "generatedColumns"),
    (5, "columnMapping"),
    (6, "identityColumns"),
)


def check_readable(path: Path, protocol: Protocol, metadata: Metadata) -> None:
    """Raise unless millpond reads such a table correctly.

    Raises:
        UnsupportedTableFeatureError: Names what the table uses.
    """
    unsupported: set[str] = set()
    if protocol.min_reader_version > 3:
        unsupported.add(f"reader version {protocol.min_reader_version}")
    needed = set(protocol.reader_features)
    if protocol.min_reader_version == 2:
        needed.add("columnMapping")
    for feature in needed - READER_FEATURES:
        in_use = _READER_IN_USE.get(feature)
        if in_use is None or in_use(metadata):
            unsupported.add(feature)
    if unsupported:
        raise UnsupportedTableFeatureError.for_reading(path, sorted(unsupported))


def check_writable(path: Path, protocol: Protocol, metadata: Metadata) -> None:
    """Raise unless millpond may write to such a table.

    Raises:
        UnsupportedTableFeatureError: Names what the table uses.
    """
    unsupported = unsupported_in(protocol, metadata)
    if unsupported:
        raise UnsupportedTableFeatureError.for_writing(path, unsupported)


def unsupported_in(protocol: Protocol, metadata: Metadata) -> list[str]:
    """What keeps millpond from writing to such a table, in order of names."""
    unsupported: set[str] = set()
    if protocol.min_writer_version > 7:
        unsupported.add(f"writer version {protocol.min_writer_version}")
    needed = set(protocol.writer_features)
    if protocol.min_writer_version < 7:
        needed |= {
            feature
            for version, feature in _IMPLIED_WRITER_FEATURES
            if version <= protocol.min_writer_version
        }
    unsupported |= {f for f in needed - WRITER_FEATURES if f not in _WRITER_IN_USE}
    # Even where the protocol lacks the feature: Spark refuses to read such a table.
    unsupported |= {f for f, in_use in _WRITER_IN_USE.items() if in_use(metadata)}
    unsupported |= {
        f"the property {name}"
        for name, refuses in _REFUSED_PROPERTIES.items()
        if name in metadata.configuration and refuses(metadata.configuration[name])
    }
    return sorted(unsupported)


def required_protocol(metadata: Metadata, current: Protocol | None = None) -> Protocol:
    """The least protocol under which `metadata` may stand, on top of the `current` one."""
    reader: set[str] = set()
    writer = {"appendOnly", "invariants"}
    if metadata.configuration.get("delta.enableDeletionVectors") == "true":
        reader.add("deletionVectors")
    if metadata.configuration.get("delta.enableTypeWidening") == "true":
        reader.add("typeWidening")
    if metadata.configuration.get("delta.checkpointPolicy") == "v2":
        reader.add("v2Checkpoint")
    if metadata.configuration.get("delta.enableInCommitTimestamps") == "true":
        writer.add("inCommitTimestamp")
    if _has_type(metadata, "timestamp_ntz"):
        reader.add("timestampNtz")
    if current is None:
        current = Protocol(min_reader_version=1, min_writer_version=2)
    missing_reader = reader - current.reader_features
    missing_writer = (reader | (writer & {"inCommitTimestamp"})) - current.writer_features
    if not missing_reader and not missing_writer:
        return current
    return _with_features(current, metadata, reader=missing_reader, writer=writer | missing_writer)


def _with_features(
    current: Protocol, metadata: Metadata, *, reader: set[str], writer: set[str]
) -> Protocol:
    """Move to named features, keeping what the old version numbers implied."""
    kept_reader = set(current.reader_features)
    kept_writer = set(current.writer_features)
    if current.min_writer_version < 7:
        implied = {f for v, f in _IMPLIED_WRITER_FEATURES if v <= current.min_writer_version}
        # A feature that nothing uses would only shut other clients out.
        kept_writer |= {f for f in implied if _WRITER_IN_USE[f](metadata)}
    if current.min_reader_version == 2 and "columnMapping" in kept_writer:
        kept_reader.add("columnMapping")
    needs_reader_features = bool(reader | kept_reader)
    return Protocol(
        min_reader_version=3 if needs_reader_features else current.min_reader_version,
        min_writer_version=7,
        reader_features=frozenset(kept_reader | reader),
        writer_features=frozenset(kept_writer | writer),
    )


def _has_field_key(metadata: Metadata, prefix: str) -> bool:
    return any(
        key.startswith(prefix)
        for field in _fields(metadata.schema)
        for key in (field.metadata or {})
    )


def _has_type(metadata: Metadata, name: str) -> bool:
    return any(data_type.typeName() == name for data_type in _nested_types(metadata.schema))


def _nested_types(data_type: DataType) -> Iterator[Any]:
    from pyspark.sql.types import ArrayType, MapType, StructType

    yield data_type
    if isinstance(data_type, StructType):
        children = [field.dataType for field in data_type.fields]
    elif isinstance(data_type, ArrayType):
        children = [data_type.elementType]
    elif isinstance(data_type, MapType):
        children = [data_type.keyType, data_type.valueType]
    else:
        children = []
    for child in children:
        yield from _nested_types(child)


def _fields(data_type: DataType) -> Iterator[Any]:
    from pyspark.sql.types import StructType

    for nested in _nested_types(data_type):
        if isinstance(nested, StructType):
            yield from nested.fields
