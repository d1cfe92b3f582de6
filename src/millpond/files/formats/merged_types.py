"""The types that columns of several files have together."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from millpond.delta.schema import widen_schema
from millpond.errors.delta import SchemaChangeNotAllowedError

# Called with a column and its two types, as text.
OnConflict = Callable[[str, str, str], None]


def merge_structs(
    current: StructType,
    new: StructType,
    *,
    keep_types: bool = False,
    on_conflict: OnConflict | None = None,
    path: str = "",
) -> StructType:
    """The columns of `current` and then those that only `new` has; names match in any case.

    Args:
        keep_types: Whether columns keep their types, new fields of structs aside; else they are
            widened until the values of both fit.
        on_conflict: Called where two types have no common one; the first then stays.
    """
    incoming: dict[str, StructField] = {field.name.lower(): field for field in reversed(new.fields)}
    fields = list[StructField]()
    for field in current.fields:
        other = incoming.pop(field.name.lower(), None)
        merged = field.dataType
        if other is not None:
            merged = _merge(
                field.dataType,
                other.dataType,
                keep_types=keep_types,
                on_conflict=on_conflict,
                path=path + field.name,
            )
        fields.append(StructField(field.name, merged))
    # Of names that differ only by case, the first.
    fields += [StructField(field.name, field.dataType) for field in incoming.values()][::-1]
    return StructType(fields)


def _merge(
    current: DataType,
    new: DataType,
    *,
    keep_types: bool,
    on_conflict: OnConflict | None,
    path: str,
) -> DataType:
    def merge(one: DataType, other: DataType, part: str) -> DataType:
        return _merge(
            one, other, keep_types=keep_types, on_conflict=on_conflict, path=f"{path}.{part}"
        )

    if isinstance(current, StructType) and isinstance(new, StructType):
        return merge_structs(
            current, new, keep_types=keep_types, on_conflict=on_conflict, path=f"{path}."
        )
    if isinstance(current, ArrayType) and isinstance(new, ArrayType):
        return ArrayType(merge(current.elementType, new.elementType, "element"))
    if isinstance(current, MapType) and isinstance(new, MapType):
        return MapType(
            merge(current.keyType, new.keyType, "key"),
            merge(current.valueType, new.valueType, "value"),
        )
    if keep_types or current == new:
        return current
    wider = _wider(current, new)
    if wider is None:
        if on_conflict is not None:
            on_conflict(path, current.simpleString(), new.simpleString())
        return current
    return wider


def _wider(current: DataType, new: DataType) -> DataType | None:
    if isinstance(current, NullType):
        return new
    if isinstance(new, NullType):
        return current
    if {type(current), type(new)} <= {FloatType, DoubleType} or (
        # Whole numbers and others: as Spark's readers of text merge them.
        (isinstance(current, DoubleType | FloatType) and isinstance(new, IntegralType))
        or (isinstance(new, DoubleType | FloatType) and isinstance(current, IntegralType))
    ):
        return DoubleType()
    if isinstance(current, StringType) and isinstance(new, StringType):
        return current
    try:
        widened = widen_schema(
            StructType([StructField("v", current)]), StructType([StructField("v", new)])
        )
    except SchemaChangeNotAllowedError:
        return None
    return widened.fields[0].dataType
