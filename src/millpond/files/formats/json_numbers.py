"""The types of numbers that no BIGINT holds, or that are to be decimals, as Spark infers them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import DataType, DecimalType, DoubleType, LongType

from millpond.delta.schema import literal
from millpond.files.formats.json_found import DOUBLE, Found, Numbers
from millpond.files.formats.json_records import Records

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from millpond.files.formats.json_options import JsonOptions

# Only whole numbers that are written so may be beyond a BIGINT.
_LARGE = r"[:,\[]\s*-?(?:[0-9]{20}|9[2-9][0-9]{17})"
_LONG_ENDS = (Decimal(-(1 << 63)), Decimal((1 << 63) - 1))
# No number of so few digits is beyond a BIGINT; any of more than a decimal has is a DOUBLE.
_LONG_DIGITS = 18
_FETCHED_ROWS = 1000
_WORDS = frozenset({"NaN", "Infinity", "-Infinity"})


class _Number(str):
    """A number as it is written, with a point or exponent or without."""

    __slots__ = ()


class _Whole(_Number):
    __slots__ = ()


def note_numbers(records: Records, given: JsonOptions, connection: DuckDBPyConnection) -> None:
    """Note what numbers there are at each place, if their kinds do not tell the types.

    DuckDB tells neither where a whole number is too large for it, nor how many digits one has. All
    records are looked at one by one, since those of small numbers count as well; but only where
    there is a large number at all.
    """
    if not given.prefers_decimal and not _has_large(records, connection):
        return
    cursor = connection.execute(f"SELECT json FROM ({records.sql()}) WHERE json IS NOT NULL")
    while rows := cursor.fetchmany(_FETCHED_ROWS):
        for (text,) in rows:
            _note(records.found, json.loads(text, parse_int=_Whole, parse_float=_Number), given)


def note_words(records: Records, connection: DuckDBPyConnection) -> None:
    """Note where numbers that are none, or infinite, and other numbers are all that there is.

    They are written as texts, for DuckDB has nothing else for them. So all texts at their places
    are looked at.
    """
    places = {id(place): place for place in _places(records)}
    if not places:
        return
    cursor = connection.execute(f"SELECT json FROM ({records.sql()}) WHERE json IS NOT NULL")
    while rows := cursor.fetchmany(_FETCHED_ROWS):
        for (text,) in rows:
            for place, value in _values(records.found, json.loads(text)):
                if id(place) in places and not _is_number(value):
                    del places[id(place)]
    for place in places.values():
        place.kinds = {DOUBLE}
        if place.numbers is not None:
            place.numbers.has_doubles = True


def _is_number(value: Any) -> bool:
    """Whether a value of JSON is a number, or a word for one, or nothing."""
    if isinstance(value, str):
        return value in _WORDS
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _places(records: Records) -> Iterator[Found]:
    """Where words are, as far as was looked."""
    for keys in records.words:
        place: Found | None = records.found
        for key in keys:
            if place is not None:
                place = place.items if key is None else place.fields.get(key)
        if place is not None:
            yield place


def _has_large(records: Records, connection: DuckDBPyConnection) -> bool:
    if not records.has_extreme_numbers:
        return False
    ((found,),) = connection.execute(
        f"SELECT bool_or(regexp_matches(json, {literal(_LARGE)})) FROM ({records.sql()})"
    ).fetchall()
    return bool(found)


def _note(found: Found, value: Any, given: JsonOptions) -> None:
    for place, number in _values(found, value):
        if isinstance(number, _Number):
            place.numbers = place.numbers or Numbers()
            place.numbers.add(_type_of(number, given))


def _values(found: Found, value: Any) -> Iterator[tuple[Found, Any]]:
    """A value and those within it, with their places."""
    waiting: list[tuple[Found | None, Any]] = [(found, value)]
    while waiting:
        place, value = waiting.pop()
        if place is None:
            continue
        yield place, value
        if isinstance(value, dict):
            waiting.extend((place.fields.get(key), inner) for key, inner in value.items())
        elif isinstance(value, list):
            waiting.extend((place.items, inner) for inner in value)


def _type_of(number: _Number, given: JsonOptions) -> DataType:
    """The type of a number by itself."""
    is_whole = isinstance(number, _Whole)
    if is_whole and len(number) <= _LONG_DIGITS:
        return LongType()
    if not is_whole and not given.prefers_decimal:
        return DoubleType()
    value = Decimal(number)
    if is_whole and _LONG_ENDS[0] <= value <= _LONG_ENDS[1]:
        return LongType()
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # JSON has no words for numbers
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale)
    if precision > Numbers.MAX_PRECISION:
        return DoubleType()
    return DecimalType(precision, scale)
