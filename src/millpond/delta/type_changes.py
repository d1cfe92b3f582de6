"""What a change of a table's schema means for the files that it already has.

A widened column may stay as it is in older files only under Delta's type widening feature, which
delta-rs 1.6 and Polars 2.1 refuse to read. So unless the table asks for the feature, its files are
written anew with the wider type, in the commit that changes the schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from millpond.delta.actions import AddFile, Metadata
from millpond.delta.data_files import write_data_files
from millpond.delta.duckdb_connection import connect
from millpond.delta.live_rows import damage_told, hidden_columns_of, live_rows_sql
from millpond.delta.schema import is_type_widened, widen_schema
from millpond.delta.snapshot import Snapshot
from millpond.errors.delta import SchemaChangeNotAllowedError
from millpond.storage import Store, scratch_folder


def check_change(current: Metadata, new: Metadata) -> None:
    """Raise unless files of the `current` schema can be read, or rewritten, under the `new` one.

    Raises:
        SchemaChangeNotAllowedError: A type or the partitioning changes in a way that can't be.
    """
    if current.partition_columns != new.partition_columns:
        raise SchemaChangeNotAllowedError.partitioning(
            current=current.partition_columns, new=new.partition_columns
        )
    kept = {field.name.lower() for field in current.schema.fields}
    both = StructType([f for f in new.schema.fields if f.name.lower() in kept])
    widened = {f.name: f.dataType for f in widen_schema(current.schema, both).fields}
    for field in both.fields:
        reached = widened.get(field.name)
        if reached is None or reached.simpleString() != field.dataType.simpleString():
            before = "another name" if reached is None else reached.simpleString()
            raise SchemaChangeNotAllowedError.type_change(
                field.name, current=before, new=field.dataType.simpleString()
            )


def uses_widening(metadata: Metadata) -> bool:
    """Whether a table asks for the feature under which files may have a narrower type."""
    return metadata.configuration.get("delta.enableTypeWidening") == "true"


def needs_rewrite(current: Metadata, new: Metadata) -> bool:
    """Whether the change widens types in a table that does not use the widening feature."""
    if uses_widening(new):
        return False
    names = {field.name for field in new.schema.fields}
    kept = StructType([field for field in current.schema.fields if field.name in names])
    return is_type_widened(kept, new.schema)


def rewrite_files(
    snapshot: Snapshot, files: Sequence[AddFile], metadata: Metadata, store: Store
) -> list[AddFile]:
    """Write the live rows of some files anew, with the types of `metadata`."""
    with (
        scratch_folder("spill") as spill,
        connect(temporary_folder=spill) as connection,
        damage_told(snapshot.path),
    ):
        hidden = hidden_columns_of(connection, snapshot, files)
        return write_data_files(
            connection,
            live_rows_sql(connection, snapshot, files, hidden_columns=hidden, store=store),
            snapshot=snapshot,
            store=store,
            metadata=metadata,
            hidden_columns=hidden,
            data_change=False,
        )


def without_type_changes(metadata: Metadata) -> Metadata:
    """Forget the history of types, once all files have the newest."""
    schema = _forget(metadata.schema)
    if not isinstance(schema, StructType):
        raise TypeError(f"{schema!r} is no schema")
    return replace(metadata, schema=schema)


def _forget(data_type: DataType) -> DataType:
    if isinstance(data_type, ArrayType):
        return ArrayType(_forget(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, MapType):
        key, value = _forget(data_type.keyType), _forget(data_type.valueType)
        return MapType(key, value, data_type.valueContainsNull)
    if isinstance(data_type, StructType):
        return StructType(
            [
                StructField(
                    field.name,
                    _forget(field.dataType),
                    field.nullable,
                    {k: v for k, v in (field.metadata or {}).items() if k != "delta.typeChanges"},
                )
                for field in data_type.fields
            ]
        )
    return data_type
