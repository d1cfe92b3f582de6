"""Turns Arrow columns into values that JSON can hold, without losing a digit.

Numbers stay numbers where a double holds them exactly and become text elsewhere; NaN and infinity
are text; dates and times are ISO 8601 (in UTC, where they have a zone); binary is base64.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

# Integers up to here survive every JSON reader, JavaScript's among them.
MAX_EXACT_INTEGER = 2**53


def unique_names(names: Sequence[str]) -> list[str]:
    """The names with a number added to those that came before: a JSON object has each key once.

    >>> unique_names(["a", "b", "a"])
    ['a', 'b', 'a_2']
    """
    taken: set[str] = set()
    unique: list[str] = []
    for name in names:
        candidate, number = name, 1
        while candidate in taken or (number > 1 and candidate in names):
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate)
        unique.append(candidate)
    return unique


def plain_values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of an Arrow array as None, bool, int, float, str, list and dict."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in plain_values(chunk)]
    if isinstance(array, pa.ExtensionArray):
        return plain_values(array.storage)
    convert = _converter(array.type)
    return convert(array)


def text_values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """As `plain_values`, but decimals as text with all of their digits: 1.50 is not 1.5."""
    import pyarrow.types as is_type

    if is_type.is_decimal(array.type):
        return _each(lambda value: format(value, "f"), array.to_pylist())
    return plain_values(array)


def _converter(kind: pa.DataType) -> Callable[[pa.Array], list[Any]]:
    import pyarrow.types as is_type

    table: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], list[Any]]], ...] = (
        (is_type.is_integer, _integers),
        (is_type.is_floating, _floats),
        (is_type.is_decimal, _decimals),
        (_is_binary, _binaries),
        (_is_moment, _moments),
        (is_type.is_duration, _durations),
        (is_type.is_interval, _intervals),
        (is_type.is_struct, _structs),
        (is_type.is_map, _maps),
        (_is_list, _lists),
        (is_type.is_dictionary, lambda array: plain_values(array.dictionary_decode())),
    )
    for matches, convert in table:
        if matches(kind):
            return convert
    return lambda array: array.to_pylist()


def _is_binary(kind: pa.DataType) -> bool:
    import pyarrow.types as is_type

    return (
        is_type.is_binary(kind)
        or is_type.is_large_binary(kind)
        or is_type.is_fixed_size_binary(kind)
        or is_type.is_binary_view(kind)
    )


def _is_moment(kind: pa.DataType) -> bool:
    import pyarrow.types as is_type

    return is_type.is_timestamp(kind) or is_type.is_date(kind) or is_type.is_time(kind)


def _is_list(kind: pa.DataType) -> bool:
    import pyarrow.types as is_type

    return is_type.is_list(kind) or is_type.is_large_list(kind) or is_type.is_fixed_size_list(kind)


def _each(convert: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
    return [None if value is None else convert(value) for value in values]


def _integers(array: pa.Array) -> list[Any]:
    return _each(
        lambda value: value if abs(value) <= MAX_EXACT_INTEGER else str(value), array.to_pylist()
    )


def _floats(array: pa.Array) -> list[Any]:
    # Arrow writes the shortest text that reads back as the same number of the same width.
    import pyarrow as pa

    short = array if array.type == pa.float64() else array.cast(pa.string())
    return _each(lambda value: _finite(float(value)), short.to_pylist())


def _finite(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _decimals(array: pa.Array) -> list[Any]:
    return _each(_decimal, array.to_pylist())


def _decimal(value: Decimal) -> float | int | str:
    if value == value.to_integral_value() and value.as_tuple().exponent == 0:
        return int(value) if abs(value) <= MAX_EXACT_INTEGER else format(value, "f")
    number = float(value)
    return number if Decimal(repr(number)) == value else format(value, "f")


def _binaries(array: pa.Array) -> list[Any]:
    return _each(lambda value: base64.b64encode(value).decode("ascii"), array.to_pylist())


def _moments(array: pa.Array) -> list[Any]:
    # By way of text: Python's own dates end at the year 9999.
    import pyarrow as pa

    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    return _each(_iso, array.cast(pa.string()).to_pylist())


def _iso(text: str) -> str:
    """Arrow's text of a date or time as ISO 8601.

    >>> _iso("2026-05-01 12:00:00.500000Z"), _iso("2026-05-01")
    ('2026-05-01T12:00:00.5Z', '2026-05-01')
    """
    zone = "Z" if text.endswith("Z") else ""
    text = text.removesuffix("Z")
    if "." in text:
        text = text.rstrip("0").removesuffix(".")
    return text.replace(" ", "T") + zone


def _durations(array: pa.Array) -> list[Any]:
    import pyarrow as pa

    unit = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}[array.type.unit]
    return _each(
        lambda value: _iso_duration(0, 0, value * unit), array.cast(pa.int64()).to_pylist()
    )


def _intervals(array: pa.Array) -> list[Any]:
    return _each(
        lambda value: _iso_duration(value.months, value.days, value.nanoseconds),
        array.to_pylist(),
    )


def _iso_duration(months: int, days: int, nanoseconds: int) -> str:
    """An ISO 8601 duration.

    >>> _iso_duration(14, 0, 0), _iso_duration(0, 1, 90_500_000_000), _iso_duration(0, 0, 0)
    ('P14M', 'P1DT90.5S', 'PT0S')
    """
    seconds = Decimal(nanoseconds).scaleb(-9)
    text = format(seconds, "f")
    if "." in text:
        text = text.rstrip("0").removesuffix(".")
    date = (f"{months}M" if months else "") + (f"{days}D" if days else "")
    time = f"T{text}S" if nanoseconds or not date else ""
    return f"P{date}{time}"


def _structs(array: pa.Array) -> list[Any]:
    names = unique_names([field.name for field in array.type])
    columns = [plain_values(column) for column in array.flatten()]
    rows = zip(*columns, strict=True) if columns else ((),) * len(array)
    return [
        dict(zip(names, row, strict=True)) if valid else None
        for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)
    ]


def _lists(array: pa.Array) -> list[Any]:
    import pyarrow.compute as pc

    flat = plain_values(array.flatten())
    lists: list[Any] = []
    start = 0
    for length in pc.list_value_length(array).to_pylist():
        lists.append(None if length is None else flat[start : start + length])
        start += length or 0
    return lists


def _maps(array: pa.Array) -> list[Any]:
    import pyarrow as pa

    # A map is a list of pairs that happens to have a type of its own.
    pair = pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])
    return [
        None if pairs is None else {text_key(pair["key"]): pair["value"] for pair in pairs}
        for pairs in _lists(array.cast(pa.list_(pair)))
    ]


def text_key(key: Any) -> str:
    """A map's key as a key of a JSON object."""
    return key if isinstance(key, str) else json.dumps(key, ensure_ascii=False)
