"""Which data files may hold rows with certain values, by partition values and statistics.

A file is left out only where that is certain: statistics that are missing, of another form than
expected, or rounded by their writer leave it in.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

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
    TimestampNTZType,
    TimestampType,
)

from millpond.delta.actions import AddFile
from millpond.delta.snapshot import Snapshot
from millpond.delta.stats import FileStats

# Some writers round decimals to a double, and the text of a 32-bit float is not its exact value.
_DECIMAL_SLACK = Decimal("1e-15")
_FLOAT_SLACK = 2.0**-22
# Most writers cut timestamps off to milliseconds, the upper bound too.
_TIME_SLACK = timedelta(milliseconds=1)


@dataclass(frozen=True)
class ColumnRange:
    """Values that are looked for in a column, all of one Python type.

    Attributes:
        low: The least of them; `None` where only nulls are looked for.
        high: The greatest of them.
        nulls: Whether nulls are looked for too.
    """

    low: Any = None
    high: Any = None
    nulls: bool = False


def files_overlapping(snapshot: Snapshot, ranges: Mapping[str, ColumnRange]) -> list[AddFile]:
    """Return the files that may hold a row whose columns all lie in `ranges`.

    Values are `int`, `float`, `Decimal`, `str`, `date` or `datetime`; a `datetime` without a zone
    counts as UTC. Columns of other types do not narrow the choice.
    """
    types = {field.name: field.dataType for field in snapshot.metadata.schema.fields}
    partitions = set(snapshot.metadata.partition_columns)
    checks = [
        (name, wanted, types[name], name in partitions)
        for name, wanted in ranges.items()
        if name in types
    ]
    return [
        file
        for file in snapshot.files.values()
        if all(
            _partition_may_hold(file, name, wanted, data_type)
            if partitioned
            else _file_may_hold(file.stats, name, wanted, data_type)
            for name, wanted, data_type, partitioned in checks
        )
    ]


def _partition_may_hold(file: AddFile, name: str, wanted: ColumnRange, data_type: DataType) -> bool:
    text = file.partition_values.get(name)
    if not text:
        return wanted.nulls
    if wanted.low is None:
        return False
    value = _parse(_number(text) if _is_number(data_type) else text, data_type)
    return value is None or _overlaps(value, value, wanted, data_type)


def _file_may_hold(
    stats: FileStats | None, name: str, wanted: ColumnRange, data_type: DataType
) -> bool:
    if stats is None:
        return True
    nulls = stats.null_count.get(name)
    if wanted.nulls and nulls != 0:
        return True
    if nulls is not None and nulls == stats.num_records:
        return False  # nothing but nulls, and those are not wanted
    return _overlaps(
        _parse(stats.min_values.get(name), data_type),
        _parse(stats.max_values.get(name), data_type),
        wanted,
        data_type,
    )


def _overlaps(low: Any, high: Any, wanted: ColumnRange, data_type: DataType) -> bool:
    """Whether values between two bounds, either of which may be unknown, may be wanted."""
    if wanted.low is None or wanted.high is None:
        return False
    if _is_nan(wanted.low) or _is_nan(wanted.high):
        return True  # statistics say nothing about NaN
    try:
        wanted_low = _comparable(wanted.low, data_type)
        wanted_high = _comparable(wanted.high, data_type)
        below = high is not None and _raise(high, data_type) < wanted_low
        above = low is not None and wanted_high < _lower(low, data_type)
    except (TypeError, ValueError, OverflowError, ArithmeticError):
        return True
    return not (below or above)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_number(data_type: DataType) -> bool:
    return isinstance(
        data_type,
        ByteType | ShortType | IntegerType | LongType | FloatType | DoubleType | DecimalType,
    )


def _number(text: str) -> Decimal | None:
    try:
        value = Decimal(text)
    except ArithmeticError:
        return None
    return value if value.is_finite() else None


def _comparable(value: Any, data_type: DataType) -> Any:
    if isinstance(data_type, DecimalType):
        return Decimal(value)
    if isinstance(data_type, TimestampType | TimestampNTZType) and isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    return value


def _parse(value: Any, data_type: DataType) -> Any:
    """Turn a bound from the log into a value that compares, or `None` where that fails."""
    if value is None:
        return None
    try:
        return _parser(data_type)(value)
    except (TypeError, ValueError, ArithmeticError):
        return None


def _parser(data_type: DataType) -> Callable[[Any], Any]:
    for types, parser in _PARSERS:
        if isinstance(data_type, types):
            return parser
    return lambda _: None


def _parse_decimal(value: Any) -> Decimal | None:
    return None if isinstance(value, bool) else Decimal(value)


def _parse_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _parse_float(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


def _parse_single(value: Any) -> float | None:
    """The 32-bit float that a text stands for: near zero, the two lie far apart."""
    number = _parse_float(value)
    return None if number is None else struct.unpack("f", struct.pack("f", number))[0]


def _parse_time(text: str) -> datetime | None:
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo is not None else None


def _parse_local_time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


_PARSERS: tuple[tuple[tuple[type[DataType], ...], Callable[[Any], Any]], ...] = (
    ((ByteType, ShortType, IntegerType, LongType), int),
    ((FloatType,), _parse_single),
    ((DoubleType,), _parse_float),
    ((DecimalType,), _parse_decimal),
    ((StringType,), _parse_text),
    ((DateType,), date.fromisoformat),
    ((TimestampType,), _parse_time),
    ((TimestampNTZType,), _parse_local_time),
)


def _raise(bound: Any, data_type: DataType) -> Any:
    return _shift(bound, data_type, sign=1)


def _lower(bound: Any, data_type: DataType) -> Any:
    return _shift(bound, data_type, sign=-1)


def _shift(bound: Any, data_type: DataType, *, sign: int) -> Any:
    """Move a bound outwards by as much as a writer may have rounded it."""
    if isinstance(data_type, DecimalType):
        return bound + sign * abs(bound) * _DECIMAL_SLACK
    if isinstance(data_type, FloatType):
        return bound + sign * abs(bound) * _FLOAT_SLACK
    if isinstance(data_type, TimestampType | TimestampNTZType) and sign > 0:
        return bound + _TIME_SLACK
    return bound
