"""Statistics of data files: their JSON, and how they come from what DuckDB reports of a file.

A bound in them must hold for every row, by every reader's reckoning, because files are skipped on
the strength of it. Where that can't be had (floats, for NaN; years beyond 9999), there is none.
Follows "Per-file Statistics" of Delta's PROTOCOL.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Self

from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from millpond.delta.schema import quote

DEFAULT_INDEXED_COLUMNS = 32
STRING_PREFIX = 32
MAX_DECIMAL_DIGITS = 15


@dataclass(frozen=True)
class FileStats:
    """Statistics of one data file, as in the log: values are JSON's, nested as the columns are.

    Attributes:
        num_records: Rows in the file, deleted ones among them; `None` where it is not known.
        min_values: A lower bound for each column that has one.
        max_values: An upper bound, likewise. Long texts are cut, times are whole milliseconds.
        null_count: Nulls of each column.
        tight_bounds: `False` once rows were deleted: then a null count other than 0 and
            `num_records` says nothing.
    """

    num_records: int | None = None
    min_values: Mapping[str, Any] = field(default_factory=dict)
    max_values: Mapping[str, Any] = field(default_factory=dict)
    null_count: Mapping[str, Any] = field(default_factory=dict)
    tight_bounds: bool = True

    @classmethod
    def from_text(cls, text: str) -> Self:
        value = json.loads(text, parse_float=Decimal)
        return cls(
            num_records=value.get("numRecords"),
            min_values=_object(value.get("minValues")),
            max_values=_object(value.get("maxValues")),
            null_count=_object(value.get("nullCount")),
            tight_bounds=value.get("tightBounds") is not False,
        )

    def to_text(self) -> str:
        value = {
            "numRecords": self.num_records,
            "tightBounds": self.tight_bounds,
            "minValues": self.min_values,
            "maxValues": self.max_values,
            "nullCount": self.null_count,
        }
        try:
            return json.dumps(value, separators=(",", ":"))
        except TypeError:
            return _with_decimals(value)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _with_decimals(value: object) -> str:
    """Encode as JSON with decimals as exact numbers, which `json` can't."""
    if isinstance(value, Mapping):
        items = (f"{json.dumps(key)}:{_with_decimals(item)}" for key, item in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value)


def stats_of_copy(
    *,
    rows: int,
    column_statistics: Mapping[str, Mapping[str, str]],
    schema: StructType,
    partition_columns: Sequence[str],
    indexed_columns: int = DEFAULT_INDEXED_COLUMNS,
) -> FileStats:
    """Turn what DuckDB's `COPY ... RETURN_STATS` says of one file into Delta's statistics.

    Args:
        column_statistics: By quoted dotted path; all values are texts.
        indexed_columns: How many leaf columns get bounds, from the left; -1 for all.
    """
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    data_fields = [f for f in schema.fields if f.name not in partition_columns]
    for number, (path, data_type) in enumerate(_leaves(data_fields)):
        if number == indexed_columns:
            break
        found = column_statistics.get(".".join(map(quote, path)))
        if found is None:
            continue
        if "null_count" in found:
            _put(nulls, path, int(found["null_count"]))
        low, high = found.get("min"), found.get("max")
        if low is not None and (bound := _bound(low, data_type, upper=False)) is not None:
            _put(lows, path, bound)
        if high is not None and (bound := _bound(high, data_type, upper=True)) is not None:
            _put(highs, path, bound)
    return FileStats(num_records=rows, min_values=lows, max_values=highs, null_count=nulls)


def misleads(stats: FileStats | None, schema: StructType) -> bool:
    """Whether a reader that trusts the bounds to the digit, as Sail does, would read other values.

    Bounds of floats leave NaN out, and bounds of long decimals pass through a double on the way.
    Files of millpond's own have neither.
    """
    if stats is None:
        return False
    return any(
        _is_misleading(_get(bounds, path), data_type)
        for path, data_type in _leaves(schema.fields)
        for bounds in (stats.min_values, stats.max_values)
    )


def _is_misleading(bound: object, data_type: DataType) -> bool:
    if bound is None:
        return False
    if isinstance(data_type, FloatType | DoubleType):
        return True
    return _is_long(data_type)


def _is_long(data_type: DataType) -> bool:
    """Whether values may have more digits than a double can hold."""
    return isinstance(data_type, DecimalType) and data_type.precision > MAX_DECIMAL_DIGITS


def _get(tree: Mapping[str, Any], path: tuple[str, ...]) -> object:
    value: object = tree
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _leaves(fields: Sequence[StructField]) -> Iterator[tuple[tuple[str, ...], DataType]]:
    """The columns that may have statistics: plain ones, and those within structs."""
    for column in fields:
        if isinstance(column.dataType, StructType):
            for path, data_type in _leaves(column.dataType.fields):
                yield (column.name, *path), data_type
        else:
            yield (column.name,), column.dataType


def _put(tree: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _bound(text: str, data_type: DataType, *, upper: bool) -> object:
    """Return the JSON value of a bound, or `None` where there is none that surely holds."""
    match data_type:
        case ByteType() | ShortType() | IntegerType() | LongType():
            bound: object = int(text)
        case DecimalType():
            # Sail reads a bound as a double, and trusts it to the digit.
            bound = None if _is_long(data_type) else Decimal(text)
        case StringType():
            bound = cut_text(text, upper=upper)
        case DateType() | TimestampType() | TimestampNTZType():
            bound = _calendar_bound(text, data_type, upper=upper)
        case _:
            bound = None
    return bound


def _calendar_bound(text: str, data_type: DataType, *, upper: bool) -> str | None:
    try:
        if isinstance(data_type, DateType):
            return date.fromisoformat(text).isoformat()
        return _time_bound(text, zoned=isinstance(data_type, TimestampType), upper=upper)
    except (ValueError, OverflowError):
        return None  # years before 1 and after 9999


def _time_bound(text: str, *, zoned: bool, upper: bool) -> str:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    excess_us = moment.microsecond % 1000
    moment -= timedelta(microseconds=excess_us)
    if upper and excess_us:
        moment += timedelta(milliseconds=1)
    return moment.isoformat(timespec="milliseconds") + ("Z" if zoned else "")


def cut_text(text: str, *, upper: bool) -> str | None:
    """Return a short text that is not above, or for `upper` not below, `text`.

    >>> cut_text("abc" * 20, upper=True)
    'abcabcabcabcabcabcabcabcabcabcac'
    """
    if len(text) <= STRING_PREFIX:
        return text
    prefix = text[:STRING_PREFIX]
    if not upper:
        return prefix
    # Raising the last character that can be raised gives a text above all with this prefix.
    for length in range(STRING_PREFIX, 0, -1):
        point = ord(prefix[length - 1]) + 1
        if point > 0x10FFFF:
            continue
        if 0xD800 <= point <= 0xDFFF:
            point = 0xE000
        return prefix[: length - 1] + chr(point)
    return None
