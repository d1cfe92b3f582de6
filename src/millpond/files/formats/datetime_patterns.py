"""Java's patterns of dates and timestamps, as Spark's readers take them, for DuckDB to parse by.

DuckDB's `strptime` is more lenient than Java's formatter, so that a regular expression decides
what fits and `strptime` only computes the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from millpond.errors.file_formats import UnsupportedDatetimePatternError

_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_LONG_MONTHS = (
    "January|February|March|April|May|June|July|August|September|October|November|December"
)
_DAYS = "Mon|Tue|Wed|Thu|Fri|Sat|Sun"
_LONG_DAYS = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
_OFFSET = "[+-][0-9]{2}"
_ZONE_NAME = "[A-Za-z]+(?:[/_+-][A-Za-z0-9]+)*"

# What stands for a run of a letter: a regular expression, and DuckDB's specifier.
_RUNS: dict[str, tuple[str, str]] = {
    "yyyy": ("[0-9]{4}", "%Y"),
    "y": ("[0-9]{4}", "%Y"),
    "yy": ("[0-9]{2}", "%y"),
    "M": ("[0-9]{1,2}", "%m"),
    "MM": ("[0-9]{2}", "%m"),
    "MMM": (f"(?i:{_MONTHS})", "%b"),
    "MMMM": (f"(?i:{_LONG_MONTHS})", "%B"),
    "d": ("[0-9]{1,2}", "%d"),
    "dd": ("[0-9]{2}", "%d"),
    "D": ("[0-9]{1,3}", "%j"),
    "DDD": ("[0-9]{3}", "%j"),
    "E": (f"(?i:{_DAYS})", "%a"),
    "EE": (f"(?i:{_DAYS})", "%a"),
    "EEE": (f"(?i:{_DAYS})", "%a"),
    "EEEE": (f"(?i:{_LONG_DAYS})", "%A"),
    "H": ("[0-9]{1,2}", "%H"),
    "HH": ("[0-9]{2}", "%H"),
    "h": ("[0-9]{1,2}", "%I"),
    "hh": ("[0-9]{2}", "%I"),
    "m": ("[0-9]{1,2}", "%M"),
    "mm": ("[0-9]{2}", "%M"),
    "s": ("[0-9]{1,2}", "%S"),
    "ss": ("[0-9]{2}", "%S"),
    "a": ("(?i:AM|PM)", "%p"),
    "X": (f"(?:Z|{_OFFSET}(?:[0-9]{{2}})?)", "%z"),
    "XX": (f"(?:Z|{_OFFSET}[0-9]{{2}})", "%z"),
    "XXX": (f"(?:Z|{_OFFSET}:[0-9]{{2}})", "%z"),
    "x": (f"{_OFFSET}(?:[0-9]{{2}})?", "%z"),
    "xx": (f"{_OFFSET}[0-9]{{2}}", "%z"),
    "xxx": (f"{_OFFSET}:[0-9]{{2}}", "%z"),
    "Z": (f"{_OFFSET}[0-9]{{2}}", "%z"),
    "ZZ": (f"{_OFFSET}[0-9]{{2}}", "%z"),
    "ZZZ": (f"{_OFFSET}[0-9]{{2}}", "%z"),
    "VV": (_ZONE_NAME, "%Z"),
    "z": (_ZONE_NAME, "%Z"),
}
_ALIASES = str.maketrans({"u": "y", "L": "M"})
_MICROSECONDS = 6
_MAX_FRACTION = 9
_MAX_OPTIONAL = 4
_QUOTED_OR_BRACKET = re.compile(r"'[^']*'|[\[\]]")
_TOKEN = re.compile(r"(?P<run>([A-Za-z])\2*)|'(?P<quoted>(?:[^']|'')*)'|(?P<other>.)", re.DOTALL)


def _fraction(digits: int) -> str:
    return f"[0-9]{{1,{digits}}}"


_LONG_FRACTIONS = {_fraction(digits) for digits in range(_MICROSECONDS + 1, _MAX_FRACTION + 1)}


@dataclass(frozen=True)
class DatetimeShape:
    """One shape of texts that a pattern allows; its optional parts are there or not.

    Attributes:
        regex: What a text matches as a whole.
        rewrites: Regular expressions of what `strptime` can't read, with what to put for it, in
            order: digits of a fraction beyond microseconds, and `Z` for UTC.
        format: What `strptime` reads the rewritten text by.
        zoned: Whether the texts say their time zone.
        has_year: Whether the texts say their year.
        short_year: Whether they say it in two digits, which means one after 1999.
    """

    regex: str
    rewrites: tuple[tuple[str, str], ...]
    format: str
    zoned: bool
    has_year: bool
    short_year: bool


@cache
def shapes(pattern: str) -> tuple[DatetimeShape, ...]:
    """The shapes of texts that a pattern allows.

    >>> shapes("yyyy-MM-dd")[0].format
    '%Y-%m-%d'

    Raises:
        UnsupportedDatetimePatternError: The pattern is not one, or can't be read by.
    """
    if not pattern.strip():
        raise UnsupportedDatetimePatternError.from_pattern(pattern, found="nothing in it")
    return tuple(_shape(pattern, choice) for choice in _choices(pattern))


def _choices(pattern: str) -> list[str]:
    """The pattern with each of its optional parts there and not there, the fullest first."""
    brackets = [
        (found.start(), found[0])
        for found in _QUOTED_OR_BRACKET.finditer(pattern)
        if len(found[0]) == 1
    ]
    if not brackets:
        return [pattern]
    depth = 0
    opened = closed = brackets[0][0]
    for at, bracket in brackets:
        depth += 1 if bracket == "[" else -1
        closed = at
        if depth <= 0:
            break
    if depth:
        found = "square brackets that do not pair"
        raise UnsupportedDatetimePatternError.from_pattern(pattern, found=found)
    if len(brackets) > 2 * _MAX_OPTIONAL:
        found = f"more than {_MAX_OPTIONAL} optional parts"
        raise UnsupportedDatetimePatternError.from_pattern(pattern, found=found)
    before, inner, after = pattern[:opened], pattern[opened + 1 : closed], pattern[closed + 1 :]
    return [before + choice for rest in (inner + after, after) for choice in _choices(rest)]


def _shape(pattern: str, choice: str) -> DatetimeShape:
    regexes: list[str] = []
    formats: list[str] = []
    for token in _TOKEN.finditer(choice):
        run = token["run"]
        if run is not None:
            regex, specifier = _run(pattern, run)
            regexes.append(regex)
            formats.append(specifier)
            continue
        text = "'" if token[0] == "''" else (token["quoted"] or token["other"] or "")
        text = text.replace("''", "'")
        if token["other"] is not None and text in "'#{}":
            found = f"{text!r}, which is not a letter of patterns"
            raise UnsupportedDatetimePatternError.from_pattern(pattern, found=found)
        regexes.append(re.escape(text))
        formats.append(text.replace("%", "%%"))
    return DatetimeShape(
        regex="".join(regexes),
        rewrites=tuple(_rewrites(regexes)),
        format="".join(formats),
        zoned=bool({"%z", "%Z"} & set(formats)),
        has_year=bool({"%Y", "%y"} & set(formats)),
        short_year="%y" in formats,
    )


def _rewrites(regexes: list[str]) -> Iterator[tuple[str, str]]:
    for at, regex in enumerate(regexes):
        before, after = "".join(regexes[:at]), "".join(regexes[at + 1 :])
        if regex in _LONG_FRACTIONS:
            digits = f"[0-9]{{{_MICROSECONDS}}}"
            yield f"^({before}{digits})[0-9]+({after})$", r"\1\2"
        elif regex.startswith("(?:Z|"):
            yield f"^({before})Z({after})$", r"\1+00:00\2"


def _run(pattern: str, run: str) -> tuple[str, str]:
    if set(run) == {"S"} and len(run) <= _MAX_FRACTION:
        return _fraction(len(run)), "%f"
    known = _RUNS.get(run.translate(_ALIASES))
    if known is None:
        found = f"{run!r}, which can't be read"
        raise UnsupportedDatetimePatternError.from_pattern(pattern, found=found)
    return known
