"""Whether rows written under a table's earlier columns can be read under its columns of now.

New columns are null in earlier rows, and a type may have become wider. Anything else would give
wrong rows in silence, above all a column that was dropped and one of the same name added later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, DecimalType, StructField, StructType

_WIDER = {
    "byte": {"short", "integer", "long", "double"},
    "short": {"integer", "long", "double"},
    "integer": {"long", "double"},
    "float": {"double"},
    "date": {"timestamp_ntz"},
}
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}


def incompatible_change(earlier: StructType, now: StructType) -> str | None:
    """The first change that does not allow it, in words, or `None`."""
    return _struct_change(earlier, now, prefix="")


def _struct_change(earlier: StructType, now: StructType, *, prefix: str) -> str | None:
    fields: dict[str, StructField] = {field.name: field for field in now.fields}
    for before in earlier.fields:
        name = f"{prefix}{before.name}"
        after = fields.get(before.name)
        if after is None:
            return f"the column {name} was dropped or renamed"
        change = _type_change(before.dataType, after.dataType, name=name)
        if change is not None:
            return change
    return None


def _type_change(earlier: DataType, now: DataType, *, name: str) -> str | None:
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    match earlier, now:
        case StringType(), StringType():
            return None
        case StructType(), StructType():
            return _struct_change(earlier, now, prefix=f"{name}.")
        case ArrayType(), ArrayType():
            return _type_change(earlier.elementType, now.elementType, name=f"{name}.element")
        case MapType(), MapType():
            return _type_change(earlier.keyType, now.keyType, name=f"{name}.key") or _type_change(
                earlier.valueType, now.valueType, name=f"{name}.value"
            )
    if earlier == now or _is_wider(earlier, now):
        return None
    before, after = earlier.simpleString(), now.simpleString()
    return f"the column {name} was {before} and is {after}"


def _is_wider(earlier: DataType, now: DataType) -> bool:
    from pyspark.sql.types import DecimalType

    if not isinstance(now, DecimalType):
        return now.typeName() in _WIDER.get(earlier.typeName(), set())
    before_the_point = now.precision - now.scale
    if isinstance(earlier, DecimalType):
        return now.scale >= earlier.scale and before_the_point >= _whole_digits(earlier)
    return before_the_point >= _DIGITS.get(earlier.typeName(), now.precision + 1)


def _whole_digits(decimal: DecimalType) -> int:
    return int(decimal.precision - decimal.scale)
