"""Names inside structs, matched as names of columns are: without regard to case.

DuckDB's casts do not do that. Structs whose names differ in the case of ASCII letters are of one
type to it, so that a cast between them changes nothing, and files would get the names of the query,
by which no other reader finds a value. Beyond ASCII it takes the names for different ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from millpond.delta.schema import literal, quote

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from duckdb.sqltypes import DuckDBPyType


def column_types(connection: DuckDBPyConnection, relation: str) -> dict[str, DuckDBPyType]:
    """The columns that a relation gives, by name, with their types in DuckDB.

    Args:
        connection: Where the relation can be read.
        relation: SQL that stands for it in a FROM.
    """
    given = connection.sql(f"SELECT * FROM {relation}")
    return dict(zip(given.columns, given.types, strict=True))


def has_names(data_type: DataType) -> bool:
    """Whether a type has structs in it.

    >>> from pyspark.sql.types import LongType
    >>> has_names(ArrayType(StructType().add("x", LongType()))), has_names(ArrayType(LongType()))
    (True, False)
    """
    if isinstance(data_type, ArrayType):
        return has_names(data_type.elementType)
    if isinstance(data_type, MapType):
        return has_names(data_type.keyType) or has_names(data_type.valueType)
    return isinstance(data_type, StructType)


def with_names_of(wanted: DataType, sql: str, found: DuckDBPyType) -> str:
    """SQL for a value, the fields inside it named as in a wanted type where only case differs.

    The order of fields, their types, and fields that only one of the two types has are left to a
    cast. Where no name differs, that is `sql` itself.

    Args:
        wanted: No struct in it has two fields whose names differ in case only.
        sql: The value.
        found: Its type in DuckDB.
    """
    return _renamed(wanted, sql, found, depth=0)


def _renamed(wanted: DataType, sql: str, found: DuckDBPyType, *, depth: int) -> str:
    if isinstance(wanted, StructType) and found.id == "struct":
        return _struct(wanted, sql, found, depth=depth)
    name = f"__millpond_each_{depth}"
    if isinstance(wanted, ArrayType) and found.id == "list":
        ((_, element),) = _children(found)
        renamed = _renamed(wanted.elementType, name, element, depth=depth + 1)
        return sql if renamed == name else f"list_transform({sql}, lambda {name}: {renamed})"
    if isinstance(wanted, MapType) and found.id == "map":
        (_, key_type), (_, value_type) = _children(found)
        parts = (f"{name}.key", f"{name}.value")
        key = _renamed(wanted.keyType, parts[0], key_type, depth=depth + 1)
        value = _renamed(wanted.valueType, parts[1], value_type, depth=depth + 1)
        if (key, value) == parts:
            return sql
        entry = f"struct_pack(key := {key}, value := {value})"
        return f"map_from_entries(list_transform(map_entries({sql}), lambda {name}: {entry}))"
    return sql


def _struct(wanted: StructType, sql: str, found: DuckDBPyType, *, depth: int) -> str:
    fields = {field.name.lower(): field for field in wanted.fields}
    packed: list[str] = []
    differs = False
    for name, inner in _children(found):
        field = fields.get(name.lower())
        if field is None:
            continue
        value = f"struct_extract({sql}, {literal(name)})"
        renamed = _renamed(field.dataType, value, inner, depth=depth)
        differs = differs or name != field.name or renamed != value
        packed.append(f"{quote(field.name)} := {renamed}")
    if not differs:
        return sql
    # A null struct is not one of nulls.
    return f"CASE WHEN {sql} IS NOT NULL THEN struct_pack({', '.join(packed)}) END"


def _children(found: DuckDBPyType) -> list[tuple[str, DuckDBPyType]]:
    parts: list[Any] = found.children
    return parts
