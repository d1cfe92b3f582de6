"""DuckDB's types of columns that were found in files, as Spark would call them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
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
    TimestampType,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from duckdb.sqltypes import DuckDBPyType

ZONED = frozenset({"timestamptz", "timestamp with time zone", "timestamptz_ns"})
NANOSECONDS = frozenset({"timestamp_ns", "timestamptz_ns"})
ZONELESS = frozenset({"timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"})
NESTED = frozenset({"struct", "map", "list", "array"})
# Unsigned numbers become the next larger signed type, as in Spark.
_SPARK_TYPES: dict[str, DataType] = {
    "boolean": BooleanType(),
    "tinyint": ByteType(),
    "utinyint": ShortType(),
    "smallint": ShortType(),
    "usmallint": IntegerType(),
    "integer": IntegerType(),
    "uinteger": LongType(),
    "bigint": LongType(),
    "ubigint": DecimalType(20, 0),
    "float": FloatType(),
    "double": DoubleType(),
    "blob": BinaryType(),
    "date": DateType(),
}


def spark_type(found: DuckDBPyType, *, instants: bool = False) -> DataType:
    """The Spark type that a column of a file has by itself.

    What Spark has no type for, such as a time of the day or a UUID, is a text.

    Args:
        instants: Whether times without a zone are instants, as in Parquet's old INT96.
    """
    kind = found.id
    if kind in ZONED or (instants and kind in ZONELESS):
        return TimestampType()
    if kind in ZONELESS:
        return TimestampNTZType()
    if kind == "decimal":
        precision, scale = (number for _, number in found.children)
        return DecimalType(precision, scale)
    if kind not in NESTED:
        return _SPARK_TYPES.get(kind, StringType())
    parts = [(name, spark_type(part, instants=instants)) for name, part in children(found)]
    if kind == "struct":
        return StructType([StructField(name, part) for name, part in parts])
    types = [part for _, part in parts]
    return MapType(*types) if kind == "map" else ArrayType(types[0])


def children(found: DuckDBPyType) -> list[tuple[str, DuckDBPyType]]:
    """The named parts of a nested type."""
    parts: list[Any] = found.children
    return [(name, part) for name, part in parts]


def element(found: DuckDBPyType) -> DuckDBPyType:
    """What a list consists of."""
    return children(found)[0][1]


def columns_of(sql: str, connection: DuckDBPyConnection) -> list[tuple[str, DuckDBPyType]]:
    """The names and types that a query gives."""
    relation = connection.sql(sql)
    return list(zip(relation.columns, relation.types, strict=True))
