"""Schemas of tables: which may be, how they change, and how Spark's types are called in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from millpond.errors.delta import (
    InvalidTableSchemaError,
    SchemaChangeNotAllowedError,
    UnsupportedDeltaTypeError,
)

# A decimal has so many at most.
MAX_DIGITS = 38
_DUCKDB_TYPES = {
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}
_WIDER_THAN: tuple[tuple[type[DataType], tuple[type[DataType], ...]], ...] = (
    (DoubleType, (FloatType, ByteType, ShortType, IntegerType)),
    (TimestampNTZType, (DateType,)),
)
_INTEGERS: tuple[type[DataType], ...] = (ByteType, ShortType, IntegerType, LongType)


# Names that queries on data files need for themselves.
_RESERVED_NAMES = {"file_row_number", "__file", "__row"}
_RESERVED_PREFIX = "__millpond_"


def is_reserved(column: str) -> bool:
    """Whether no table may have a column of that name."""
    name = column.lower()
    return name in _RESERVED_NAMES or name.startswith(_RESERVED_PREFIX)


def quote(identifier: str) -> str:
    """Quote an identifier for DuckDB.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a text as a DuckDB string literal.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def duckdb_type(data_type: DataType, *, column: str = "") -> str:
    """Return the DuckDB type that holds the values of a Spark type.

    Raises:
        UnsupportedDeltaTypeError: No Delta table can store the type, or millpond can't.
    """
    if isinstance(data_type, DecimalType):
        if invalid_decimal(data_type) is not None:
            raise UnsupportedDeltaTypeError.of_decimal(column, data_type.simpleString())
        return f"DECIMAL({data_type.precision},{data_type.scale})"
    if isinstance(data_type, ArrayType):
        return duckdb_type(data_type.elementType, column=column) + "[]"
    if isinstance(data_type, MapType):
        key = duckdb_type(data_type.keyType, column=column)
        return f"MAP({key}, {duckdb_type(data_type.valueType, column=column)})"
    if isinstance(data_type, StructType) and data_type.fields:
        parts = [
            f"{quote(field.name)} {duckdb_type(field.dataType, column=f'{column}.{field.name}')}"
            for field in data_type.fields
        ]
        return f"STRUCT({', '.join(parts)})"
    try:
        return _DUCKDB_TYPES[data_type.typeName()]
    except KeyError:
        raise UnsupportedDeltaTypeError.of_column(column, data_type.simpleString()) from None


def invalid_decimal(data_type: DataType) -> DecimalType | None:
    """The first decimal in a type that has too many digits, or more behind the point than at all.

    >>> from pyspark.sql.types import ArrayType, DecimalType
    >>> invalid_decimal(ArrayType(DecimalType(5, 7)))
    DecimalType(5,7)
    """
    if isinstance(data_type, ArrayType):
        return invalid_decimal(data_type.elementType)
    if isinstance(data_type, MapType):
        return invalid_decimal(data_type.keyType) or invalid_decimal(data_type.valueType)
    if isinstance(data_type, StructType):
        found = (invalid_decimal(field.dataType) for field in data_type.fields)
        return next(filter(None, found), None)
    if not isinstance(data_type, DecimalType):
        return None
    is_valid = (
        1 <= data_type.precision <= MAX_DIGITS and 0 <= data_type.scale <= data_type.precision
    )
    return None if is_valid else data_type


def check_schema(schema: StructType, partition_columns: Sequence[str]) -> None:
    """Raise unless a table may have these columns.

    Raises:
        InvalidTableSchemaError: A name is empty or there twice, or the partitioning does not fit.
        UnsupportedDeltaTypeError: A column can't be stored.
    """
    check_names(schema)
    for field in schema.fields:
        if is_reserved(field.name):
            raise InvalidTableSchemaError.reserved_name(field.name)
        duckdb_type(field.dataType, column=field.name)
    fields = {field.name: field for field in schema.fields}
    for column in partition_columns:
        if column not in fields:
            raise InvalidTableSchemaError.missing_partition_column(column)
        data_type = fields[column].dataType
        if isinstance(data_type, ArrayType | MapType | StructType | BinaryType):
            raise InvalidTableSchemaError.partition_column_type(column, data_type.simpleString())
    if len(schema.fields) <= len(partition_columns):
        raise InvalidTableSchemaError.no_column()


def check_names(data_type: DataType, *, prefix: str = "") -> None:
    """Raise where names beside one another differ in case at most, or one is empty.

    Raises:
        InvalidTableSchemaError: There are such.
    """
    if isinstance(data_type, ArrayType):
        check_names(data_type.elementType, prefix=f"{prefix}element.")
    elif isinstance(data_type, MapType):
        check_names(data_type.keyType, prefix=f"{prefix}key.")
        check_names(data_type.valueType, prefix=f"{prefix}value.")
    elif isinstance(data_type, StructType):
        seen: set[str] = set()
        for field in data_type.fields:
            if not field.name:
                raise InvalidTableSchemaError.nameless_column(prefix.rstrip("."))
            if field.name.lower() in seen:
                raise InvalidTableSchemaError.repeated_column(prefix + field.name)
            seen.add(field.name.lower())
            check_names(field.dataType, prefix=f"{prefix}{field.name}.")


def widen_schema(current: StructType, new: StructType) -> StructType:
    """Return the columns of `current`, widened so that rows of `new` fit, and then new columns.

    A column that `new` lacks becomes nullable; so does a column that `current` lacks. Names match
    without regard to case, and keep the case that the table has. A changed type is recorded in the
    column's metadata, as the type widening feature asks for; the table needs that feature.

    Raises:
        SchemaChangeNotAllowedError: A column's types have no common wider type in Delta.
    """
    return _widen_struct(current, new, path="")


def is_type_widened(current: StructType, widened: StructType) -> bool:
    """Whether `widened` gives some column of `current` another type, new nested fields aside."""
    changes = {field.name: field for field in widened.fields}
    return any(
        bool(_type_changes(field.dataType, changes[field.name].dataType))
        or _nested_struct_widened(field.dataType, changes[field.name].dataType)
        for field in current.fields
    )


def _widen_struct(current: StructType, new: StructType, *, path: str) -> StructType:
    incoming = {field.name.lower(): field for field in new.fields}
    fields: list[StructField] = []
    for field in current.fields:
        other = incoming.pop(field.name.lower(), None)
        name = f"{path}{field.name}"
        if other is None:
            fields.append(StructField(field.name, field.dataType, True, field.metadata))
            continue
        widened = _widen(field.dataType, other.dataType, path=name)
        fields.append(
            StructField(
                field.name,
                widened,
                field.nullable or other.nullable,
                _with_changes(field, widened),
            )
        )
    fields += [
        StructField(field.name, field.dataType, True, field.metadata)
        for field in new.fields
        if field.name.lower() in incoming
    ]
    return StructType(fields)


def _widen(current: DataType, new: DataType, *, path: str) -> DataType:
    if isinstance(current, StructType) and isinstance(new, StructType):
        return _widen_struct(current, new, path=f"{path}.")
    if isinstance(current, ArrayType) and isinstance(new, ArrayType):
        element = _widen(current.elementType, new.elementType, path=f"{path}.element")
        return ArrayType(element, current.containsNull or new.containsNull)
    if isinstance(current, MapType) and isinstance(new, MapType):
        return MapType(
            _widen(current.keyType, new.keyType, path=f"{path}.key"),
            _widen(current.valueType, new.valueType, path=f"{path}.value"),
            current.valueContainsNull or new.valueContainsNull,
        )
    widened = _wider_type(current, new)
    if widened is None:
        raise SchemaChangeNotAllowedError.type_change(
            path, current=current.simpleString(), new=new.simpleString()
        )
    return widened


def _wider_type(current: DataType, new: DataType) -> DataType | None:
    """The type that holds both, reachable from `current` by Delta's rules; or `None`."""
    if current == new or (isinstance(current, StringType) and isinstance(new, StringType)):
        return current
    if isinstance(current, _INTEGERS) and isinstance(new, _INTEGERS):
        return max(current, new, key=lambda t: _INTEGERS.index(type(t)))
    for wide, narrow in _WIDER_THAN:
        if isinstance(current, wide) and isinstance(new, narrow):
            return current
        if isinstance(current, narrow) and isinstance(new, wide):
            return new
    return _wider_decimal(current, new)


def _wider_decimal(current: DataType, new: DataType) -> DataType | None:
    if not isinstance(current, DecimalType) and not isinstance(new, DecimalType):
        return None
    both = [_as_decimal(data_type) for data_type in (current, new)]
    if None in both:
        return None
    shapes = [shape for shape in both if shape is not None]
    scale = max(scale for _, scale in shapes)
    precision = max(digits - own_scale for digits, own_scale in shapes) + scale
    return DecimalType(precision, scale) if precision <= MAX_DIGITS else None


def _as_decimal(data_type: DataType) -> tuple[int, int] | None:
    """Digits and scale of a decimal, or of the decimal that Delta widens an integer to."""
    if isinstance(data_type, DecimalType):
        return data_type.precision, data_type.scale
    if isinstance(data_type, _INTEGERS):
        return (20 if isinstance(data_type, LongType) else 10), 0
    return None


def _with_changes(field: StructField, widened: DataType) -> dict[str, Any]:
    changes = _type_changes(field.dataType, widened)
    metadata = dict(field.metadata or {})
    if changes:
        metadata["delta.typeChanges"] = [*metadata.get("delta.typeChanges", []), *changes]
    return metadata


def _type_changes(current: DataType, widened: DataType, *, path: str = "") -> list[dict[str, str]]:
    """The changes below a column that its own metadata must record; structs record their own."""
    if isinstance(current, StructType):
        return []
    if isinstance(current, ArrayType) and isinstance(widened, ArrayType):
        return _type_changes(
            current.elementType, widened.elementType, path=f"{path}.element".lstrip(".")
        )
    if isinstance(current, MapType) and isinstance(widened, MapType):
        return _type_changes(
            current.keyType, widened.keyType, path=f"{path}.key".lstrip(".")
        ) + _type_changes(current.valueType, widened.valueType, path=f"{path}.value".lstrip("."))
    if current == widened:
        return []
    change = {"fromType": _log_name(current), "toType": _log_name(widened)}
    return [change | ({"fieldPath": path} if path else {})]


def _nested_struct_widened(current: DataType, widened: DataType) -> bool:
    if isinstance(current, StructType) and isinstance(widened, StructType):
        return is_type_widened(current, widened)
    if isinstance(current, ArrayType) and isinstance(widened, ArrayType):
        return _nested_struct_widened(current.elementType, widened.elementType)
    if isinstance(current, MapType) and isinstance(widened, MapType):
        return _nested_struct_widened(current.keyType, widened.keyType) or _nested_struct_widened(
            current.valueType, widened.valueType
        )
    return False


def _log_name(data_type: DataType) -> str:
    name = data_type.jsonValue()
    return name if isinstance(name, str) else data_type.typeName()
