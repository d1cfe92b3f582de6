"""Which data files of a Delta table any Parquet reader reads right, without knowing of Delta."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.delta import AddFile, Snapshot
from millpond.errors.streaming import StreamSourceFileUnreadableError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

_UTC = {"UTC", "+00:00", "Etc/UTC"}


def is_plain(snapshot: Snapshot, file: AddFile) -> bool:
    """Whether the file, read with the table's columns, gives just the table's rows.

    It must have no deleted rows and lack no partition column; its columns must have the table's
    names and just its types. A column that it lacks is null, which every reader knows.

    Raises:
        StreamSourceFileUnreadableError: It is no whole Parquet file.
    """
    metadata = snapshot.metadata
    mapping = metadata.configuration.get("delta.columnMapping.mode", "none")
    if file.deletion_vector is not None or metadata.partition_columns or mapping != "none":
        return False
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = snapshot.file_path(file)
    try:
        found = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise StreamSourceFileUnreadableError.from_file(path, reason=str(error)) from error
    return has_columns(found, metadata.schema)


def has_columns(found: pa.Schema, schema: StructType) -> bool:
    """Whether a file's columns are the table's, save those that it lacks.

    A name that differs only in case, or comes twice, counts as a difference: readers disagree.
    """
    columns: dict[str, list[pa.Field]] = {}
    for column in found:
        columns.setdefault(column.name.lower(), []).append(column)
    for field in schema.fields:
        match columns.get(field.name.lower(), []):
            case []:
                continue
            case [column] if column.name == field.name and _is_type(column.type, field.dataType):
                continue
            case _:
                return False
    return True


def _is_type(found: pa.DataType, wanted: DataType) -> bool:
    import pyarrow as pa
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    match wanted:
        case StructType():
            return _is_struct(found, wanted)
        case ArrayType():
            is_list = pa.types.is_list(found) or pa.types.is_large_list(found)
            return is_list and _is_type(found.value_type, wanted.elementType)
        case MapType():
            return (
                pa.types.is_map(found)
                and _is_type(found.key_type, wanted.keyType)
                and _is_type(found.item_type, wanted.valueType)
            )
        case DecimalType():
            return (
                pa.types.is_decimal(found)
                and found.precision == wanted.precision
                and found.scale == wanted.scale
            )
    return _is_simple_type(found, wanted.typeName())


def _is_struct(found: pa.DataType, wanted: StructType) -> bool:
    import pyarrow as pa

    if not pa.types.is_struct(found) or found.num_fields != len(wanted.fields):
        return False
    return all(
        found.field(index).name == field.name and _is_type(found.field(index).type, field.dataType)
        for index, field in enumerate(wanted.fields)
    )


def _is_simple_type(found: pa.DataType, wanted: str) -> bool:
    import pyarrow as pa

    match wanted:
        case "string":
            return pa.types.is_string(found) or pa.types.is_large_string(found)
        case "binary":
            return pa.types.is_binary(found) or pa.types.is_large_binary(found)
        case "timestamp":
            return pa.types.is_timestamp(found) and found.unit == "us" and found.tz in _UTC
        case "timestamp_ntz":
            return pa.types.is_timestamp(found) and found.unit == "us" and found.tz is None
    exact = {
        "boolean": pa.bool_(),
        "byte": pa.int8(),
        "short": pa.int16(),
        "integer": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "date": pa.date32(),
    }
    return found == exact.get(wanted)
