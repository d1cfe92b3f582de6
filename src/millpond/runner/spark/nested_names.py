"""Fields inside columns, matched by name as columns are. Spark's casts go by their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.runner.spark.sql import quoted, text_sql, type_sql

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def fitted_sql(column: str, found: DataType, wanted: DataType) -> str:
    """SQL that casts a column to a type, its fields found by name without regard to case.

    >>> from pyspark.sql.types import LongType, StructType
    >>> point = StructType().add("x", LongType()).add("y", LongType())
    >>> fitted_sql("p", StructType().add("X", LongType()).add("Y", LongType()), point)
    'CAST(`p` AS STRUCT<`x`: bigint, `y`: bigint>)'
    >>> fitted_sql("p", StructType().add("y", LongType()).add("X", LongType()), point)
    "CAST(CASE WHEN `p` IS NOT NULL THEN named_struct('x', `p`['X'], 'y', `p`['y']) END \
AS STRUCT<`x`: bigint, `y`: bigint>)"
    """
    value = _reordered(quoted(column), found, wanted, depth=0)
    return f"CAST({value} AS {type_sql(wanted)})"


def _reordered(sql: str, found: DataType, wanted: DataType, *, depth: int) -> str:
    """The value with its fields where the wanted type has them; `sql` where they are there."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(found, StructType) and isinstance(wanted, StructType):
        return _struct(sql, found, wanted, depth=depth)
    name = f"each_{depth}"
    if isinstance(found, ArrayType) and isinstance(wanted, ArrayType):
        each = _reordered(name, found.elementType, wanted.elementType, depth=depth + 1)
        return sql if each == name else f"transform({sql}, {name} -> {each})"
    if isinstance(found, MapType) and isinstance(wanted, MapType):
        other = f"other_{depth}"
        key = _reordered(name, found.keyType, wanted.keyType, depth=depth + 1)
        value = _reordered(name, found.valueType, wanted.valueType, depth=depth + 1)
        if key != name:
            sql = f"transform_keys({sql}, ({name}, {other}) -> {key})"
        if value != name:
            sql = f"transform_values({sql}, ({other}, {name}) -> {value})"
    return sql


def _struct(sql: str, found: StructType, wanted: StructType, *, depth: int) -> str:
    given = {field.name.lower(): field for field in found.fields}
    packed: list[str] = []
    are_in_place = [field.name.lower() for field in wanted.fields] == list(given)
    for field in wanted.fields:
        own = given.get(field.name.lower())
        if own is None:
            value = f"CAST(NULL AS {type_sql(field.dataType)})"
        else:
            # After a point, a name could be that of a column of a relation named as this one.
            inner = f"{sql}[{text_sql(own.name)}]"
            value = _reordered(inner, own.dataType, field.dataType, depth=depth)
            are_in_place = are_in_place and value == inner
        packed.append(f"{text_sql(field.name)}, {value}")
    if are_in_place:
        return sql
    return f"CASE WHEN {sql} IS NOT NULL THEN named_struct({', '.join(packed)}) END"
