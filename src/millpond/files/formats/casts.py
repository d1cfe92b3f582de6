"""What a text means as a value of a Spark type, in DuckDB's SQL: NULL where it is not a value.

The rules are those of Spark's readers of CSV and JSON, which differ from both Spark's and DuckDB's
CAST: `1.5` is no integer, `yes` no boolean, and a timestamp may say its zone. Formats decide which
texts are NULL, empty or quoted before they ask here.
"""

from __future__ import annotations

import math
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.delta.schema import duckdb_type, literal
from millpond.errors.file_formats import InvalidFormatOptionError, UnsupportedFormatOptionError
from millpond.files.formats.datetime_patterns import DatetimeShape, shapes

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_UTC = frozenset({"UTC", "Z", "GMT", "Etc/UTC", "+00:00"})

# The named parts of a text; spaces around it are dropped. A time needs a whole date before it.
_DATE = r"^\s*([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T](?s:.)*)?)?)?\s*$"
_DATE_PARTS = ("y", "m", "d")
_TIMESTAMP = (
    r"^\s*([+-]?[0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([01]?[0-9]|2[0-3])(?::([0-5]?[0-9])(?::([0-5]?[0-9])(?:\.([0-9]*))?"
    r"(?:\s*(Z|(?:UTC|GMT|UT)?([+-])(0?[0-9]|1[0-8])(?::?([0-5]?[0-9]))?"
    r"|[A-Za-z]+(?:[/_+-][A-Za-z0-9]+)*))?)?)?)?)?)?\s*$"
)
_TIMESTAMP_PARTS = ("y", "m", "d", "h", "i", "s", "f", "z", "sign", "zh", "zm")
# The format of most timestamps, and what DuckDB skips beside the space that it has.
_WHOLE_SECONDS = "%Y-%m-%d %H:%M:%S"
_WHOLE_SECONDS_LENGTH = 19
_OTHER_SPACES = "\t\n\v\f\r"
_USUAL_TIMESTAMP = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
)
_NUMBER = r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?\s*"
_DECIMAL = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
# The text of a date that DuckDB reads, from its parts; NULL without a year.
_DAY = (
    "ltrim(nullif(p.y, ''), '+') || '-' || coalesce(nullif(p.m, ''), '1') "
    "|| '-' || coalesce(nullif(p.d, ''), '1')"
)


@dataclass(frozen=True)
class TextFormats:
    """How texts are written that mean dates, timestamps and special numbers.

    Attributes:
        date: Java's pattern of dates, or `None` for ISO 8601 read leniently.
        timestamp: The same for timestamps.
        timestamp_ntz: The same for timestamps without a time zone.
        time_zone: The zone of timestamps that do not say theirs.
        nan: What stands for no number.
        positive_inf: What stands for infinity, beside `Infinity`.
        negative_inf: What stands for negative infinity, beside `-Infinity`.
        falls_back: Whether texts that do not fit a pattern are read as without one.
    """

    date: str | None = None
    timestamp: str | None = None
    timestamp_ntz: str | None = None
    time_zone: str = "UTC"
    nan: str = "NaN"
    positive_inf: str = "Inf"
    negative_inf: str = "-Inf"
    falls_back: bool = False


def text_formats(options: Mapping[str, str]) -> TextFormats:
    """The formats that a reader's options ask for; the keys are in lower case.

    Raises:
        InvalidFormatOptionError: A value is none of its option.
        UnsupportedFormatOptionError: The locale is not English.
        UnsupportedDatetimePatternError: A pattern can't be read by.
    """
    locale = options.get("locale", "en-US")
    if locale.replace("_", "-").split("-")[0].lower() != "en":
        raise UnsupportedFormatOptionError.from_value(
            "locale",
            locale,
            instead="leave it out: numbers and names of months are read as in en. Read numbers "
            "with a decimal comma as STRING: CAST(replace(n, ',', '.') AS DECIMAL(12, 2))",
        )
    zone = options.get("timezone", "UTC")
    if zone not in _UTC:
        try:
            zoneinfo.ZoneInfo(zone)
        except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
            raise InvalidFormatOptionError.from_value(
                "timeZone", zone, must_be="the name of a region, such as Europe/Berlin, or UTC"
            ) from None
    formats = TextFormats(
        date=options.get("dateformat"),
        timestamp=options.get("timestampformat"),
        timestamp_ntz=options.get("timestampntzformat"),
        time_zone=zone,
        nan=options.get("nanvalue", "NaN"),
        positive_inf=options.get("positiveinf", "Inf"),
        negative_inf=options.get("negativeinf", "-Inf"),
        falls_back=options.get("enabledatetimeparsingfallback", "false").strip().lower() == "true",
    )
    for pattern in (formats.date, formats.timestamp, formats.timestamp_ntz):
        if pattern is not None:
            shapes(pattern)
    return formats


def cast_sql(text: str, data_type: DataType, *, formats: TextFormats = TextFormats()) -> str:
    """The value that a text means, or NULL where it means none.

    Args:
        text: An expression of type VARCHAR. It is written several times: best a column.
        data_type: No array, map or struct.

    Returns:
        An expression of the DuckDB type of `data_type`.

    Raises:
        UnsupportedDeltaTypeError: No Delta table can store the type.
    """
    target = duckdb_type(data_type)
    match data_type.typeName():
        case "string":
            value = text
        case "binary":
            value = f"encode({text})"
        case "byte" | "short" | "integer" | "long":
            value = _integer(text, target)
        case "float" | "double":
            value = _float(text, target, formats)
        case "decimal":
            value = _decimal(text, target)
        case "boolean":
            value = f"CASE lower({text}) WHEN 'true' THEN true WHEN 'false' THEN false END"
        case "date":
            value = _date(text, formats)
        case kind:
            value = _timestamp(text, formats, zoned=kind == "timestamp")
    return value


def _integer(text: str, target: str) -> str:
    value = f"TRY_CAST({text} AS {target})"
    # DuckDB reads 1.5, 1e3, 1_000 and 0x1f as integers. Most texts are written as it writes them
    # itself, which is cheaper to see than what a regular expression finds.
    return (
        f"CASE WHEN {value}::VARCHAR = {text} OR regexp_full_match({text}, '[+-]?[0-9]+') "
        f"THEN {value} END"
    )


def _float(text: str, target: str, formats: TextFormats) -> str:
    value = f"TRY_CAST({text} AS {target})"
    infinity = f"'inf'::{target}"
    special = [
        (f"{text} IN ({literal(formats.nan)}, 'NaN')", f"'nan'::{target}"),
        (f"{text} IN ({literal(formats.positive_inf)}, 'Infinity', '+Infinity')", infinity),
        (f"{text} IN ({literal(formats.negative_inf)}, '-Infinity')", f"-({infinity})"),
        # Java's numbers may end with a letter for their type.
        (
            f"regexp_full_match({text}, {literal(_NUMBER)})",
            f"TRY_CAST(rtrim(rtrim({text}), 'dDfF') AS {target})",
        ),
    ]
    if not any(map(_is_number, (formats.nan, formats.positive_inf, formats.negative_inf))):
        # The cheapest test first: what else DuckDB reads is either not finite or has underscores.
        special.insert(0, (f"isfinite({value}) AND NOT contains({text}, '_')", value))
    branches = " ".join(f"WHEN {condition} THEN {result}" for condition, result in special)
    return f"CASE {branches} END"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _decimal(text: str, target: str) -> str:
    plain = f"replace({text}, ',', '')"
    shape = literal(_DECIMAL)
    return (
        f"CASE WHEN regexp_full_match({text}, {shape}) THEN TRY_CAST({text} AS {target}) "
        f"WHEN contains({text}, ',') AND regexp_full_match({plain}, {shape}) "
        f"THEN TRY_CAST({plain} AS {target}) END"
    )


def _date(text: str, formats: TextFormats) -> str:
    lenient = (
        # Digits and dashes in their places; nothing else that DuckDB reads has this shape.
        f"CASE WHEN {text} LIKE '____-__-__' AND {text} >= '0' THEN TRY_CAST({text} AS DATE) "
        f"ELSE {_of_parts(text, _DATE, _DATE_PARTS, f'TRY_CAST({_DAY} AS DATE)')} END"
    )
    if formats.date is None:
        return lenient
    fitting = [_fitting(text, shape) for shape in shapes(formats.date)]
    return _first([f"{value}::DATE" for value in fitting], lenient, formats)


def _timestamp(text: str, formats: TextFormats, *, zoned: bool) -> str:
    clock = (
        "coalesce(nullif(p.h, ''), '0') || ':' || coalesce(nullif(p.i, ''), '0') || ':' || "
        "coalesce(nullif(p.s, ''), '0') || CASE WHEN p.f <> '' THEN '.' || left(p.f, 6) ELSE '' END"
    )
    stamp = f"{_DAY} || ' ' || {clock}"
    local = f"TRY_CAST({stamp} AS TIMESTAMP)"
    if zoned:
        offset = "p.sign || lpad(p.zh, 2, '0') || ':' || lpad(p.zm, 2, '0')"
        value = (
            f"CASE WHEN p.z = '' THEN {_at_zone(local, formats)} "
            f"WHEN p.zh <> '' THEN TRY_CAST({stamp} || {offset} AS TIMESTAMPTZ) "
            f"ELSE TRY_CAST({stamp} || CASE WHEN p.z = 'Z' THEN '' ELSE ' ' END || p.z "
            "AS TIMESTAMPTZ) END"
        )
        usual = _at_zone(f"TRY_CAST({text} AS TIMESTAMP)", formats)
        plain = _at_zone(_whole_seconds(text), formats)
        pattern = formats.timestamp
    else:
        value = f"CASE WHEN p.z = '' THEN {local} END"
        usual = f"TRY_CAST({text} AS TIMESTAMP)"
        plain = _whole_seconds(text)
        pattern = formats.timestamp_ntz
    # The cheapest test first.
    lenient = (
        f"coalesce({plain}, "
        f"CASE WHEN regexp_full_match({text}, {literal(_USUAL_TIMESTAMP)}) THEN {usual} "
        f"WHEN {text} LIKE '____-__-__' AND {text} >= '0' THEN {usual} "
        f"ELSE {_of_parts(text, _TIMESTAMP, _TIMESTAMP_PARTS, value)} END)"
    )
    if pattern is None:
        return lenient
    values = []
    for shape in shapes(pattern):
        fitting = _fitting(text, shape)
        if shape.zoned:
            # Spark reads the clock of such a text where the type has no zone.
            values.append(fitting if zoned else "NULL::TIMESTAMP")
        else:
            local = f"({fitting})::TIMESTAMP"
            values.append(_at_zone(local, formats) if zoned else local)
    return _first(values, lenient, formats)


def _whole_seconds(text: str) -> str:
    """The TIMESTAMP of a text of 19 characters such as `2026-01-31 12:30:00`, NULL of most others.

    With one space only, none but four digits and two of each other part fill them.
    """
    skipped = [f"contains({text}, {literal(space)})" for space in _OTHER_SPACES]
    other = " OR ".join([f"{text} LIKE '% % %'", *skipped])
    return (
        f"CASE WHEN strlen({text}) = {_WHOLE_SECONDS_LENGTH} AND {text} >= '0' AND NOT ({other}) "
        f"THEN try_strptime({text}, {literal(_WHOLE_SECONDS)}) END"
    )


def _first(values: list[str], lenient: str, formats: TextFormats) -> str:
    """The first value that there is; in the end what would be read without a pattern."""
    return f"coalesce({', '.join([*values, lenient] if formats.falls_back else values)})"


def _at_zone(local: str, formats: TextFormats) -> str:
    """The instant of a time of day at the zone of texts that do not say theirs."""
    if formats.time_zone in _UTC:
        # Much cheaper than a conversion by the calendar of a zone.
        return f"make_timestamptz(epoch_us({local}))"
    return f"timezone({literal(formats.time_zone)}, {local})"


def _of_parts(text: str, regex: str, names: tuple[str, ...], value: str) -> str:
    """A value of the groups of a regular expression, which are the fields of `p`."""
    groups = ", ".join(map(literal, names))
    parts = f"regexp_extract({text}, {literal(regex)}, [{groups}])"
    return f"list_transform([{parts}], lambda p: {value})[1]"


def _fitting(text: str, shape: DatetimeShape) -> str:
    """What a text of a shape means, a TIMESTAMP or TIMESTAMPTZ."""
    regex = literal(shape.regex)
    read = text
    for what, replacement in shape.rewrites:
        read = f"regexp_replace({read}, {literal(what)}, {literal(replacement)})"
    pattern = shape.format
    if not shape.has_year:
        read, pattern = f"'1970 ' || {read}", f"%Y {pattern}"
    value = f"try_strptime({read}, {literal(pattern)})"
    if shape.short_year:
        # Two digits mean the years from 2000 on; DuckDB takes some for the century before.
        value = f"CASE WHEN year({value}) < 2000 THEN {value} + INTERVAL 100 YEAR ELSE {value} END"
    kind = "TIMESTAMPTZ" if shape.zoned else "TIMESTAMP"
    return f"CASE WHEN regexp_full_match({text}, {regex}) THEN ({value})::{kind} END"
