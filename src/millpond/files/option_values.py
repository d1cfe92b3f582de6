"""Turns the texts of options into values: truths, numbers, sizes, lengths of time, times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import Enum
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from millpond.errors import SourceLocation
from millpond.errors.files import InvalidFileOptionError
from millpond.options import parse_bytes

E = TypeVar("E", bound=Enum)

_SECONDS = {
    "microsecond": 1e-6,
    "us": 1e-6,
    "millisecond": 1e-3,
    "ms": 1e-3,
    "second": 1.0,
    "sec": 1.0,
    "s": 1.0,
    "minute": 60.0,
    "min": 60.0,
    "m": 60.0,
    "hour": 3600.0,
    "h": 3600.0,
    "day": 86400.0,
    "d": 86400.0,
    "week": 604800.0,
    "w": 604800.0,
}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.ASCII)
_YEAR_OR_MONTH = re.compile(r"\d{4}(-\d{2})?\Z", re.ASCII)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2}):?(\d{2})?\Z", re.ASCII)


@dataclass(frozen=True)
class OptionValues:
    """Options as given, by their names in lower case.

    Attributes:
        given: By name in lower case, the text.
        spelt: By name in lower case, the name as messages write it.
        where: The line that reads the files.
    """

    given: Mapping[str, str]
    spelt: Mapping[str, str]
    where: SourceLocation | None

    def __contains__(self, name: str) -> bool:
        return name.lower() in self.given

    def text(self, name: str) -> str | None:
        return self.given.get(name.lower())

    def boolean(self, name: str, *, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if value.strip().lower() not in {"true", "false"}:
            raise self.invalid(name, must_be="'true' or 'false'")
        return value.strip().lower() == "true"

    def positive(self, name: str) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        digits = value.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 18) or int(digits) == 0:
            raise self.invalid(name, must_be="a whole number above 0")
        return int(digits)

    def size(self, name: str) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        try:
            return parse_bytes(value.strip())
        except ValueError:
            must_be = "a size above 0, such as '512m' or '10g'"
            raise self.invalid(name, must_be=must_be) from None

    def seconds(self, name: str) -> float | None:
        """A length of time, as an interval of Spark's or short: `30 days`, `1 week`, `12h`."""
        value = self.text(name)
        if value is None:
            return None
        seconds = _parse_seconds(value)
        if seconds is None:
            raise self.invalid(name, must_be="a length of time, such as '30 days' or '12 hours'")
        return seconds

    def time_ns(self, name: str, *, zone: tzinfo) -> int | None:
        """A time, in nanoseconds since 1970; one that tells no zone is in the given one."""
        value = self.text(name)
        if value is None:
            return None
        text = value.strip()
        if match := _YEAR_OR_MONTH.match(text):
            text += "-01" if match[1] else "-01-01"
        try:
            parsed = datetime.fromisoformat(text)
            # A year at either end has no moment in UTC.
            moment = (parsed if parsed.tzinfo else parsed.replace(tzinfo=zone)).astimezone(UTC)
        except (ValueError, OverflowError):
            must_be = "a time such as '2026-01-31' or '2026-01-31T12:00:00Z'"
            raise self.invalid(name, must_be=must_be) from None
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000

    def zone(self, name: str) -> tzinfo:
        value = self.text(name)
        if value is None:
            return UTC
        found = _parse_zone(value.strip())
        if found is None:
            raise self.invalid(name, must_be="a time zone, such as 'Europe/Berlin' or '+01:00'")
        return found

    def choice(self, name: str, kind: type[E], *, default: E) -> E:
        value = self.text(name)
        if value is None:
            return default
        for member in kind:
            if member.value.lower() == value.strip().lower():
                return member
        raise self.invalid(name, must_be=f"one of {', '.join(str(m.value) for m in kind)}")

    def names(self, name: str) -> tuple[str, ...] | None:
        """Names between commas; an empty text is none of them."""
        value = self.text(name)
        if value is None:
            return None
        return tuple(part.strip().strip("`") for part in value.split(",") if part.strip())

    def invalid(self, name: str, *, must_be: str) -> InvalidFileOptionError:
        return InvalidFileOptionError.from_value(
            self.spelling(name), self.given[name.lower()], must_be=must_be, where=self.where
        )

    def spelling(self, name: str) -> str:
        return self.spelt.get(name.lower(), name)


def _parse_seconds(text: str) -> float | None:
    rest = text.strip().lower().removeprefix("interval").strip().replace("'", "")
    if not rest:
        return None
    total = 0.0
    while rest:
        match = _PART.match(rest)
        if match is None:
            return None
        unit = _SECONDS.get(match[2]) or _SECONDS.get(match[2].removesuffix("s"))
        if unit is None:
            return None
        total += float(match[1]) * unit
        rest = rest[match.end() :]
    return total


def _parse_zone(name: str) -> tzinfo | None:
    if name in {"Z", "UTC"}:
        return UTC
    if match := _OFFSET.match(name):
        minutes = int(match[2]) * 60 + int(match[3] or 0)
        if minutes > 18 * 60:
            return None
        return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
