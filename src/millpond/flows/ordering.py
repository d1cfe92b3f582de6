"""How Spark compares values, as DuckDB SQL: which are equal, and which is the greater.

For plain types the two agree, as the tests of this module show: NaN equals NaN and is greater than
any number, -0.0 equals 0.0, strings and binary compare by their bytes. They part over structs and
arrays: a null inside is the least value to Spark, the greatest to DuckDB. So these are compared by
sort keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.delta import quote

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_NESTED = frozenset({"struct", "array"})


def is_plain(data_type: DataType) -> bool:
    """Whether values of the type are compared as they are."""
    return data_type.typeName() not in _NESTED


def rank(value: str, data_type: DataType) -> str:
    """SQL for what DuckDB equates and orders as Spark does `value`; null stays null.

    Only ranks of values of one type may be compared with each other.
    """
    if is_plain(data_type):
        return value
    return f"CASE WHEN {value} IS NOT NULL THEN {_sort_key(value, data_type, depth=0)} END"


def is_same(left: str, right: str, *, nulls: bool) -> str:
    """SQL that is true where two ranks are the same.

    Args:
        nulls: Whether null is the same as null. DuckDB joins much faster where it need not be.
    """
    return f"{left} IS NOT DISTINCT FROM {right}" if nulls else f"{left} = {right}"


def _sort_key(value: str, data_type: DataType, *, depth: int) -> str:
    """SQL for a value never null, ordered as `value` with null the least.

    A nested value is keyed over the keys of its parts. These are never null, which takes away the
    one thing that DuckDB would order otherwise.
    """
    inner = value
    match data_type.typeName():
        case "struct":
            parts = ", ".join(
                f"p{index} := "
                + _sort_key(f"({value}).{quote(field.name)}", field.dataType, depth=depth)
                for index, field in enumerate(data_type.fields)
            )
            inner = f"CASE WHEN {value} IS NOT NULL THEN struct_pack({parts}) END"
        case "array":
            element = f"e{depth}"
            key = _sort_key(element, data_type.elementType, depth=depth + 1)
            inner = f"list_transform({value}, lambda {element}: {key})"
    return f"create_sort_key({inner}, 'ASC NULLS FIRST')"
