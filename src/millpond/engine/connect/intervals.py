"""Reads lengths of time as Spark writes them: `10 minutes`, `INTERVAL '1:30' HOUR TO MINUTE`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from millpond.errors import SourceLocation
from millpond.errors.engine import InvalidIntervalError
from millpond.sql.tokens import Token, TokenKind, scan, string_value

_SECOND_US = 1_000_000
_DAY_US = 86_400 * _SECOND_US
_UNITS_US = {
    "week": 7 * _DAY_US,
    "day": _DAY_US,
    "hour": 3600 * _SECOND_US,
    "minute": 60 * _SECOND_US,
    "second": _SECOND_US,
    "millisecond": 1000,
    "microsecond": 1,
}
_UNITS_MONTHS = {"year": 12, "month": 1}
# Spark counts a month of a watermark's delay as the longest one.
_MONTH_US = 31 * _DAY_US
_RANGE_UNITS = ("day", "hour", "minute", "second")
_RANGE_LIMITS = {"hour": 24, "minute": 60, "second": 60}
_LARGEST_US = (1 << 63) - 1
_SIGN = r"(?P<sign>[+-])?\s*"
_NUMBER = r"(?P<whole>\d*)(?P<fraction>\.\d{0,9})?"
_VALUE = re.compile(rf"\s*{_SIGN}{_NUMBER}\s*", re.ASCII)
_QUANTITY = re.compile(
    rf"{_SIGN}{_NUMBER}\s+(?P<unit>{'|'.join([*_UNITS_US, *_UNITS_MONTHS])})s?(?:\s+|\Z)", re.ASCII
)
_RANGE_VALUE = re.compile(rf"\s*{_SIGN}(?P<fields>\d[\d :.-]*)\s*", re.ASCII)


@dataclass(frozen=True)
class _Length:
    months: int = 0
    us: int = 0

    def __add__(self, other: _Length) -> _Length:
        return _Length(self.months + other.months, self.us + other.us)

    def __neg__(self) -> _Length:
        return _Length(-self.months, -self.us)


def watermark_delay_us(
    text: str, *, where: SourceLocation | None, call: str = "withWatermark()"
) -> int:
    """How far a watermark lags behind, in microseconds, a whole number of milliseconds.

    A month counts 31 days, a year 12 months, as in Spark.

    Args:
        text: As `withWatermark` takes it, or an interval of SQL with the word INTERVAL.
        call: What the user wrote it for.

    Raises:
        InvalidIntervalError: It is no length of time, or a negative one.
    """
    length = _length(text, call=call, where=where)
    delay_us = length.months * _MONTH_US + length.us
    if delay_us < 0:
        raise InvalidIntervalError.negative(text, call=call, where=where)
    _check_size(delay_us, text, call=call, where=where)
    return delay_us // 1000 * 1000


def duration_us(text: str, *, where: SourceLocation | None, call: str = "A time window") -> int:
    """How long a window of time is, or a session's gap, in microseconds.

    Raises:
        InvalidIntervalError: It is no length of time, is not above zero, or holds months, which
            differ in length.
    """
    length = _length(text, call=call, where=where)
    if length.months:
        raise InvalidIntervalError.with_months(text, call=call, where=where)
    if length.us <= 0:
        raise InvalidIntervalError.not_positive(text, call=call, where=where)
    _check_size(length.us, text, call=call, where=where)
    return length.us


def _check_size(us: int, text: str, *, call: str, where: SourceLocation | None) -> None:
    if us > _LARGEST_US:
        raise InvalidIntervalError.unreadable(text, call=call, where=where)


def _length(text: str, *, call: str, where: SourceLocation | None) -> _Length:
    is_literal = text.strip().lower().startswith("interval")
    found = _literal(text) if is_literal else _quantities(text)
    if found is None:
        raise InvalidIntervalError.unreadable(text, call=call, where=where)
    return found


def _quantities(text: str) -> _Length | None:
    """`1 hour 30 minutes`, as a text."""
    text = text.strip().lower()
    found, position = _Length(), 0
    while position < len(text):
        match = _QUANTITY.match(text, position)
        quantity = match and _quantity(match, match["unit"])
        if match is None or quantity is None:
            return None
        found, position = found + quantity, match.end()
    return found if text else None


def _quantity(match: re.Match[str], unit: str) -> _Length | None:
    fraction = match["fraction"]
    if not match["whole"] and fraction in {None, "."}:
        return None
    if fraction is not None and unit != "second":
        return None
    whole = int(match["whole"] or 0)
    if unit in _UNITS_MONTHS:
        length = _Length(months=whole * _UNITS_MONTHS[unit])
    else:
        length = _Length(us=whole * _UNITS_US[unit] + _fraction_us(fraction))
    return -length if match["sign"] == "-" else length


def _fraction_us(fraction: str | None) -> int:
    return int((fraction or ".")[1:].ljust(6, "0")[:6])


def _literal(text: str) -> _Length | None:
    """An interval of SQL, with the word INTERVAL."""
    tokens = [token for token in scan(text) if token.kind is not TokenKind.HINT]
    if tokens[0].word != "INTERVAL":
        return None
    rest = tokens[1:]
    if len(rest) == 1 and rest[0].kind is TokenKind.STRING:
        value = string_value(rest[0]).strip()
        return _quantities(re.sub(r"\Ainterval\s+", "", value, flags=re.IGNORECASE))
    found = _Length()
    while rest:
        sign = rest.pop(0).word if rest[0].word in {"+", "-"} else ""
        if len(rest) < 2:
            return None
        value_token, unit = rest.pop(0), _unit(rest.pop(0))
        if rest and rest[0].word == "TO":
            length = _range(value_token, unit, _unit(rest[1])) if len(rest) == 2 else None
            rest = []
        else:
            length = _value(value_token, unit)
        if length is None:
            return None
        found += -length if sign == "-" else length
    return found if tokens[1:] else None


def _unit(token: Token) -> str:
    return token.word.lower().removesuffix("s")


def _value(token: Token, unit: str) -> _Length | None:
    if unit not in _UNITS_US and unit not in _UNITS_MONTHS:
        return None
    if token.kind is TokenKind.STRING:
        text = string_value(token)
    elif token.kind is TokenKind.NUMBER:
        text = token.text
    else:
        return None
    match = _VALUE.fullmatch(text)
    return None if match is None else _quantity(match, unit)


def _range(token: Token, first: str, last: str) -> _Length | None:
    """`'1:30' HOUR TO MINUTE`."""
    match = _RANGE_VALUE.fullmatch(string_value(token)) if token.kind is TokenKind.STRING else None
    if match is None:
        return None
    fields = match["fields"].strip()
    length = _months(fields) if (first, last) == ("year", "month") else _days(fields, first, last)
    return -length if length is not None and match["sign"] == "-" else length


def _months(fields: str) -> _Length | None:
    match = re.fullmatch(r"(\d+)-(\d{1,2})", fields)
    if match is None or int(match[2]) > 11:
        return None
    return _Length(months=12 * int(match[1]) + int(match[2]))


def _days(fields: str, first: str, last: str) -> _Length | None:
    if first not in _RANGE_UNITS or last not in _RANGE_UNITS:
        return None
    units = _RANGE_UNITS[_RANGE_UNITS.index(first) : _RANGE_UNITS.index(last) + 1]
    if len(units) < 2:
        return None
    separators = [" " if unit == "day" else ":" for unit, _ in pairwise(units)]
    pattern = r"(\d+)" + "".join(rf"{separator}(\d{{1,2}})" for separator in separators)
    pattern += r"(\.\d{1,9})?" if last == "second" else "()"
    match = re.fullmatch(pattern, fields)
    if match is None:
        return None
    *whole, fraction = match.groups()
    values = [int(value) for value in whole]
    if any(v >= _RANGE_LIMITS[u] for v, u in zip(values[1:], units[1:], strict=True)):
        return None
    us = sum(value * _UNITS_US[unit] for value, unit in zip(values, units, strict=True))
    return _Length(us=us + _fraction_us(fraction or None))
