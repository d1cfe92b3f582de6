"""What a text means as a value of each type is what Apache Spark's CSV reader says it means."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Iterator

import duckdb
import pytest
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    TimestampNTZType,
    TimestampType,
)

from millpond.delta import connect
from millpond.errors.file_formats import (
    InvalidFormatOptionError,
    UnsupportedDatetimePatternError,
    UnsupportedFormatOptionError,
)
from millpond.files.formats.casts import cast_sql, text_formats

# fmt: off
TEXTS = (
    "0",
    "1",
    "-1",
    "+1",
    "1.0",
    "1.5",
    " 1",
    "1 ",
    "1e3",
    "1E3",
    "-0",
    "1_000",
    "0x1f",
    "127",
    "128",
    "32768",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "1.",
    "null",
    "NaN",
    "nan",
    "Inf",
    "-Inf",
    "inf",
    "+Inf",
    "Infinity",
    "-Infinity",
    "+Infinity",
    "infinity",
    "1e400",
    "-1e400",
    "1d",
    "1f",
    "1D",
    ".5",
    "5.",
    "1,000",
    "1e",
    "--1",
    "1.23456789012",
    "123456789.12",
    "12345678.905",
    "0.005",
    "1e-3",
    "1E+2",
    "00012",
    "$5",
    "1L",
    "true",
    "TRUE",
    "True",
    "t",
    "yes",
    "false",
    "FALSE",
    " true",
    "2020-01-02",
    "2020-1-2",
    "2020",
    "2020-01",
    "20200102",
    "2020-01-02 ",
    "2020-01-02T",
    "2020-01-02T00:00:00",
    "2020-01-02 abc",
    "epoch",
    "now",
    "2020-13-01",
    "2020-02-30",
    "12020-01-02",
    "+12020-01-02",
    "0001-01-01",
    "2020/01/02",
    "02.01.2020",
    "2020-01-02 10",
    "2020-01-02 10:11",
    "2020-01-02T10:11",
    "2020-01-02T10:11:12",
    "2020-01-02 10:11:12",
    "2020-01-02T10:11:12.1",
    "2020-01-02T10:11:12.123456",
    "2020-01-02T10:11:12.123456789",
    "2020-01-02T10:11:12.999999999",
    "2020-01-02 10:11:12+02:00",
    "2020-01-02T10:11:12+02:00",
    "2020-01-02T10:11:12.123+02:00",
    "2020-01-02T10:11:12+0200",
    "2020-01-02T10:11:12+02",
    "2020-01-02T10:11:12Z",
    "2020-01-02T10:11:12.5Z",
    "2020-01-02 10:11:12 Europe/Berlin",
    "2020-01-02T10:11:12 UTC",
    "2020-01-02 24:00:00",
    "2020-01-02 25:00:00",
    "2020-01-02 1:2:3",
    "2020-01-02T10:11:60",
    "1577959872",
    "2020-01-02T10:11:12.",
    "2020-01-02T10:11Z",
    "1969-12-31T23:59:59.5",
    "1500-01-01",
    "0044-03-15T12:00:00",
    "9999-12-31T23:59:59.999999Z",
    "2020-01-02T10:11:12+02:00[Europe/Berlin]",
    "2020-01-02T10:11:12UTC+3",
    "2020-01-02T10:11:12 +02:00",
    "2020-01-02Z",
    "2020-01-02+02:00",
    "10000-01-01T00:00:00",
    "2020-366",
    "YWJj",
    "a=b",
)
# fmt: on

# As Spark 4.2.1 reads the texts in the session time zone UTC; those left out are NULL.
SPARK: dict[str, dict[str, str]] = {
    "tinyint": {
        "0": "0",
        "1": "1",
        "-1": "-1",
        "+1": "1",
        "-0": "0",
        "127": "127",
        "00012": "12",
    },
    "smallint": {
        "0": "0",
        "1": "1",
        "-1": "-1",
        "+1": "1",
        "-0": "0",
        "127": "127",
        "128": "128",
        "00012": "12",
        "2020": "2020",
    },
    "int": {
        "0": "0",
        "1": "1",
        "-1": "-1",
        "+1": "1",
        "-0": "0",
        "127": "127",
        "128": "128",
        "32768": "32768",
        "00012": "12",
        "2020": "2020",
        "20200102": "20200102",
        "1577959872": "1577959872",
    },
    "bigint": {
        "0": "0",
        "1": "1",
        "-1": "-1",
        "+1": "1",
        "-0": "0",
        "127": "127",
        "128": "128",
        "32768": "32768",
        "2147483648": "2147483648",
        "9223372036854775807": "9223372036854775807",
        "00012": "12",
        "2020": "2020",
        "20200102": "20200102",
        "1577959872": "1577959872",
    },
    "float": {
        "0": "0.0",
        "1": "1.0",
        "-1": "-1.0",
        "+1": "1.0",
        "1.0": "1.0",
        "1.5": "1.5",
        " 1": "1.0",
        "1 ": "1.0",
        "1e3": "1000.0",
        "1E3": "1000.0",
        "-0": "-0.0",
        "127": "127.0",
        "128": "128.0",
        "32768": "32768.0",
        "2147483648": "2.14748365E9",
        "9223372036854775807": "9.223372E18",
        "9223372036854775808": "9.223372E18",
        "1.": "1.0",
        "NaN": "NaN",
        "Inf": "Infinity",
        "-Inf": "-Infinity",
        "Infinity": "Infinity",
        "-Infinity": "-Infinity",
        "+Infinity": "Infinity",
        "1e400": "Infinity",
        "-1e400": "-Infinity",
        "1d": "1.0",
        "1f": "1.0",
        "1D": "1.0",
        ".5": "0.5",
        "5.": "5.0",
        "1.23456789012": "1.2345679",
        "123456789.12": "1.23456792E8",
        "12345678.905": "1.2345679E7",
        "0.005": "0.005",
        "1e-3": "0.001",
        "1E+2": "100.0",
        "00012": "12.0",
        "2020": "2020.0",
        "20200102": "2.0200102E7",
        "1577959872": "1.57795994E9",
    },
    "double": {
        "0": "0.0",
        "1": "1.0",
        "-1": "-1.0",
        "+1": "1.0",
        "1.0": "1.0",
        "1.5": "1.5",
        " 1": "1.0",
        "1 ": "1.0",
        "1e3": "1000.0",
        "1E3": "1000.0",
        "-0": "-0.0",
        "127": "127.0",
        "128": "128.0",
        "32768": "32768.0",
        "2147483648": "2.147483648E9",
        "9223372036854775807": "9.223372036854776E18",
        "9223372036854775808": "9.223372036854776E18",
        "1.": "1.0",
        "NaN": "NaN",
        "Inf": "Infinity",
        "-Inf": "-Infinity",
        "Infinity": "Infinity",
        "-Infinity": "-Infinity",
        "+Infinity": "Infinity",
        "1e400": "Infinity",
        "-1e400": "-Infinity",
        "1d": "1.0",
        "1f": "1.0",
        "1D": "1.0",
        ".5": "0.5",
        "5.": "5.0",
        "1.23456789012": "1.23456789012",
        "123456789.12": "1.2345678912E8",
        "12345678.905": "1.2345678905E7",
        "0.005": "0.005",
        "1e-3": "0.001",
        "1E+2": "100.0",
        "00012": "12.0",
        "2020": "2020.0",
        "20200102": "2.0200102E7",
        "1577959872": "1.577959872E9",
    },
    "decimal(10,2)": {
        "0": "0.00",
        "1": "1.00",
        "-1": "-1.00",
        "+1": "1.00",
        "1.0": "1.00",
        "1.5": "1.50",
        "1e3": "1000.00",
        "1E3": "1000.00",
        "-0": "0.00",
        "127": "127.00",
        "128": "128.00",
        "32768": "32768.00",
        "1.": "1.00",
        ".5": "0.50",
        "5.": "5.00",
        "1,000": "1000.00",
        "1.23456789012": "1.23",
        "12345678.905": "12345678.91",
        "0.005": "0.01",
        "1e-3": "0.00",
        "1E+2": "100.00",
        "00012": "12.00",
        "2020": "2020.00",
        "20200102": "20200102.00",
    },
    "decimal(38,0)": {
        "0": "0",
        "1": "1",
        "-1": "-1",
        "+1": "1",
        "1.0": "1",
        "1.5": "2",
        "1e3": "1000",
        "1E3": "1000",
        "-0": "0",
        "127": "127",
        "128": "128",
        "32768": "32768",
        "2147483648": "2147483648",
        "9223372036854775807": "9223372036854775807",
        "9223372036854775808": "9223372036854775808",
        "1.": "1",
        ".5": "1",
        "5.": "5",
        "1,000": "1000",
        "1.23456789012": "1",
        "123456789.12": "123456789",
        "12345678.905": "12345679",
        "0.005": "0",
        "1e-3": "0",
        "1E+2": "100",
        "00012": "12",
        "2020": "2020",
        "20200102": "20200102",
        "1577959872": "1577959872",
    },
    "boolean": {
        "true": "true",
        "TRUE": "true",
        "True": "true",
        "false": "false",
        "FALSE": "false",
    },
    "date": {
        "32768": "+32768-01-01",
        "00012": "0012-01-01",
        "2020-01-02": "2020-01-02",
        "2020-1-2": "2020-01-02",
        "2020": "2020-01-01",
        "2020-01": "2020-01-01",
        "2020-01-02 ": "2020-01-02",
        "2020-01-02T": "2020-01-02",
        "2020-01-02T00:00:00": "2020-01-02",
        "2020-01-02 abc": "2020-01-02",
        "12020-01-02": "+12020-01-02",
        "+12020-01-02": "+12020-01-02",
        "0001-01-01": "0001-01-01",
        "2020-01-02 10": "2020-01-02",
        "2020-01-02 10:11": "2020-01-02",
        "2020-01-02T10:11": "2020-01-02",
        "2020-01-02T10:11:12": "2020-01-02",
        "2020-01-02 10:11:12": "2020-01-02",
        "2020-01-02T10:11:12.1": "2020-01-02",
        "2020-01-02T10:11:12.123456": "2020-01-02",
        "2020-01-02T10:11:12.123456789": "2020-01-02",
        "2020-01-02T10:11:12.999999999": "2020-01-02",
        "2020-01-02 10:11:12+02:00": "2020-01-02",
        "2020-01-02T10:11:12+02:00": "2020-01-02",
        "2020-01-02T10:11:12.123+02:00": "2020-01-02",
        "2020-01-02T10:11:12+0200": "2020-01-02",
        "2020-01-02T10:11:12+02": "2020-01-02",
        "2020-01-02T10:11:12Z": "2020-01-02",
        "2020-01-02T10:11:12.5Z": "2020-01-02",
        "2020-01-02 10:11:12 Europe/Berlin": "2020-01-02",
        "2020-01-02T10:11:12 UTC": "2020-01-02",
        "2020-01-02 24:00:00": "2020-01-02",
        "2020-01-02 25:00:00": "2020-01-02",
        "2020-01-02 1:2:3": "2020-01-02",
        "2020-01-02T10:11:60": "2020-01-02",
        "2020-01-02T10:11:12.": "2020-01-02",
        "2020-01-02T10:11Z": "2020-01-02",
        "1969-12-31T23:59:59.5": "1969-12-31",
        "1500-01-01": "1500-01-01",
        "0044-03-15T12:00:00": "0044-03-15",
        "9999-12-31T23:59:59.999999Z": "9999-12-31",
        "2020-01-02T10:11:12+02:00[Europe/Berlin]": "2020-01-02",
        "2020-01-02T10:11:12UTC+3": "2020-01-02",
        "2020-01-02T10:11:12 +02:00": "2020-01-02",
        "10000-01-01T00:00:00": "+10000-01-01",
    },
    "timestamp": {
        "32768": "+32768-01-01 00:00:00",
        "00012": "0012-01-01 00:00:00",
        "2020-01-02": "2020-01-02 00:00:00",
        "2020-1-2": "2020-01-02 00:00:00",
        "2020": "2020-01-01 00:00:00",
        "2020-01": "2020-01-01 00:00:00",
        "2020-01-02 ": "2020-01-02 00:00:00",
        "2020-01-02T00:00:00": "2020-01-02 00:00:00",
        "12020-01-02": "+12020-01-02 00:00:00",
        "+12020-01-02": "+12020-01-02 00:00:00",
        "0001-01-01": "0001-01-01 00:00:00",
        "2020-01-02 10": "2020-01-02 10:00:00",
        "2020-01-02 10:11": "2020-01-02 10:11:00",
        "2020-01-02T10:11": "2020-01-02 10:11:00",
        "2020-01-02T10:11:12": "2020-01-02 10:11:12",
        "2020-01-02 10:11:12": "2020-01-02 10:11:12",
        "2020-01-02T10:11:12.1": "2020-01-02 10:11:12.1",
        "2020-01-02T10:11:12.123456": "2020-01-02 10:11:12.123456",
        "2020-01-02T10:11:12.123456789": "2020-01-02 10:11:12.123456",
        "2020-01-02T10:11:12.999999999": "2020-01-02 10:11:12.999999",
        "2020-01-02 10:11:12+02:00": "2020-01-02 08:11:12",
        "2020-01-02T10:11:12+02:00": "2020-01-02 08:11:12",
        "2020-01-02T10:11:12.123+02:00": "2020-01-02 08:11:12.123",
        "2020-01-02T10:11:12+0200": "2020-01-02 08:11:12",
        "2020-01-02T10:11:12+02": "2020-01-02 08:11:12",
        "2020-01-02T10:11:12Z": "2020-01-02 10:11:12",
        "2020-01-02T10:11:12.5Z": "2020-01-02 10:11:12.5",
        "2020-01-02 10:11:12 Europe/Berlin": "2020-01-02 09:11:12",
        "2020-01-02T10:11:12 UTC": "2020-01-02 10:11:12",
        "2020-01-02 1:2:3": "2020-01-02 01:02:03",
        "2020-01-02T10:11:12.": "2020-01-02 10:11:12",
        "1969-12-31T23:59:59.5": "1969-12-31 23:59:59.5",
        "1500-01-01": "1500-01-01 00:00:00",
        "0044-03-15T12:00:00": "0044-03-15 12:00:00",
        "9999-12-31T23:59:59.999999Z": "9999-12-31 23:59:59.999999",
        "2020-01-02T10:11:12UTC+3": "2020-01-02 07:11:12",
        "2020-01-02T10:11:12 +02:00": "2020-01-02 08:11:12",
        "10000-01-01T00:00:00": "+10000-01-01 00:00:00",
    },
    "timestamp_ntz": {
        "32768": "+32768-01-01 00:00:00",
        "00012": "0012-01-01 00:00:00",
        "2020-01-02": "2020-01-02 00:00:00",
        "2020-1-2": "2020-01-02 00:00:00",
        "2020": "2020-01-01 00:00:00",
        "2020-01": "2020-01-01 00:00:00",
        "2020-01-02 ": "2020-01-02 00:00:00",
        "2020-01-02T00:00:00": "2020-01-02 00:00:00",
        "12020-01-02": "+12020-01-02 00:00:00",
        "+12020-01-02": "+12020-01-02 00:00:00",
        "0001-01-01": "0001-01-01 00:00:00",
        "2020-01-02 10": "2020-01-02 10:00:00",
        "2020-01-02 10:11": "2020-01-02 10:11:00",
        "2020-01-02T10:11": "2020-01-02 10:11:00",
        "2020-01-02T10:11:12": "2020-01-02 10:11:12",
        "2020-01-02 10:11:12": "2020-01-02 10:11:12",
        "2020-01-02T10:11:12.1": "2020-01-02 10:11:12.1",
        "2020-01-02T10:11:12.123456": "2020-01-02 10:11:12.123456",
        "2020-01-02T10:11:12.123456789": "2020-01-02 10:11:12.123456",
        "2020-01-02T10:11:12.999999999": "2020-01-02 10:11:12.999999",
        "2020-01-02 1:2:3": "2020-01-02 01:02:03",
        "2020-01-02T10:11:12.": "2020-01-02 10:11:12",
        "1969-12-31T23:59:59.5": "1969-12-31 23:59:59.5",
        "1500-01-01": "1500-01-01 00:00:00",
        "0044-03-15T12:00:00": "0044-03-15 12:00:00",
        "10000-01-01T00:00:00": "+10000-01-01 00:00:00",
    },
}


TYPES: dict[str, DataType] = {
    "tinyint": ByteType(),
    "smallint": ShortType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "decimal(10,2)": DecimalType(10, 2),
    "decimal(38,0)": DecimalType(38, 0),
    "boolean": BooleanType(),
    "date": DateType(),
    "timestamp": TimestampType(),
    "timestamp_ntz": TimestampNTZType(),
}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as connection:
        yield connection


def read(
    connection: duckdb.DuckDBPyConnection, texts: tuple[str, ...], kind: DataType, **options: str
) -> dict[str, str | None]:
    """What each text means, as a text."""
    value = cast_sql("x", kind, formats=text_formats(options))
    rows = connection.execute(
        f"SELECT x, replace(({value})::VARCHAR, '+00', '') FROM (SELECT unnest(?) AS x)",
        [list(texts)],
    ).fetchall()
    return dict(rows)


def comparable(value: str | None, kind: str) -> float | str | None:
    """Spark and DuckDB write floating point numbers and years after 9999 in two ways."""
    if value is None:
        return None
    if kind in {"float", "double"}:
        number = float(value)
        # `NaN` is not equal to itself.
        return "NaN" if number != number else float(f"{number:.6g}")  # noqa: PLR0124 - NaN is not
    return value.removeprefix("+")


@pytest.mark.parametrize("kind", SPARK)
def test_a_text_means_what_spark_says(connection: duckdb.DuckDBPyConnection, kind: str) -> None:
    found = read(connection, TEXTS, TYPES[kind])
    assert {text: comparable(found[text], kind) for text in TEXTS} == {
        text: comparable(SPARK[kind].get(text), kind) for text in TEXTS
    }


# Of the texts below; not how the code under test has it.
CLOCK = re.compile(
    r"[ \t]*([0-9]{4,6})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:[.][0-9]*)?)?)?)?[ \t]*"
)


def clock(text: str) -> str | None:
    parts = CLOCK.fullmatch(text)
    if parts is None:
        return None
    year, *others = (int(part or 0) for part in parts.groups())
    try:
        # A year that `datetime` knows and that has as many days.
        stamp = dt.datetime(
            2000 + year % 400 if year > dt.MAXYEAR else year, *others, tzinfo=dt.UTC
        )
    except ValueError:
        return None
    return f"{year:04}-{stamp:%m-%d %H:%M:%S}"


@pytest.mark.parametrize("kind", [TimestampType(), TimestampNTZType()])
def test_only_a_text_of_spark_s_shape_is_a_timestamp(
    connection: duckdb.DuckDBPyConnection, kind: DataType
) -> None:
    """DuckDB skips spaces within, takes 24 for an hour, and years with fewer digits."""
    usual = "2026-01-31 12:30:00"
    texts = {usual}
    for one, other in itertools.combinations(range(len(usual)), 2):
        for characters in itertools.product("0429 \t\v:-T.", repeat=2):
            changed = list(usual)
            changed[one], changed[other] = characters
            texts.add("".join(changed))
    texts |= {"202-01-31 18:00:00 ", " 202-01-31 18:00:00", "202-01-31  18:00:00", f"{usual} "}
    texts |= {text[:14] + "\n" + text[14:] for text in [usual, "2026-1-31 12:30:00"]}
    found = read(connection, tuple(sorted(texts)), kind)
    assert {text: value for text, value in found.items() if value != clock(text)} == {}
    assert len(texts) > 10_000


PATTERNS = [
    ("dd/MM/yyyy", "31/12/2020", "2020-12-31"),
    ("dd/MM/yyyy", "1/2/2020", None),
    ("dd/MM/yyyy", "31/02/2020", None),
    ("d/M/yyyy", "1/2/2020", "2020-02-01"),
    ("dd/MM/yy", "31/12/69", "2069-12-31"),
    ("yyyyMMdd", "20200102", "2020-01-02"),
    ("MMM d, yyyy", "Mar 5, 2021", "2021-03-05"),
    ("dd-MMM-yyyy", "05-MAR-2021", "2021-03-05"),
    ("EEEE, d MMMM yyyy", "friday, 5 march 2021", "2021-03-05"),
    ("EEEE, d. MMMM yyyy", "Friday, 5. March 2021", "2021-03-05"),
    ("yyyy DDD", "2020 060", "2020-02-29"),
    ("yyyy-MM-dd", "2020-01-02 10:11", None),
    ("'100%' yyyy''MM''dd", "100% 2020'01'02", "2020-01-02"),
]


@pytest.mark.parametrize(("pattern", "text", "date"), PATTERNS)
def test_a_pattern_says_what_dates_look_like(
    connection: duckdb.DuckDBPyConnection, pattern: str, text: str, date: str | None
) -> None:
    assert read(connection, (text,), DateType(), dateformat=pattern) == {text: date}


STAMPS = [
    ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2020-01-02T10:11:12", "2020-01-02 10:11:12"),
    ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2020-01-02T10:11:12.5Z", "2020-01-02 10:11:12.5"),
    ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2020-01-02T10:11:12+02:00", "2020-01-02 08:11:12"),
    ("yyyy-MM-dd HH:mm:ss.SSSSSSSSS", "1969-12-31 23:59:59.9999999", "1969-12-31 23:59:59.999999"),
    ("MM/dd/yyyy h:mm a", "01/02/2020 3:04 PM", "2020-01-02 15:04:00"),
    ("MM/dd/yyyy h:mm a", "01/02/2020 3:04 pm", "2020-01-02 15:04:00"),
    ("yyyy-MM-dd HH:mm VV", "2020-07-02 10:11 Europe/Berlin", "2020-07-02 08:11:00"),
    ("yyyy-MM-dd HH:mm VV", "2020-07-02 10:11 Nowhere/Land", None),
    ("HH:mm", "10:11", "1970-01-01 10:11:00"),
]


@pytest.mark.parametrize(("pattern", "text", "stamp"), STAMPS)
def test_a_pattern_says_what_timestamps_look_like(
    connection: duckdb.DuckDBPyConnection, pattern: str, text: str, stamp: str | None
) -> None:
    assert read(connection, (text,), TimestampType(), timestampformat=pattern) == {text: stamp}


def test_a_text_with_a_zone_is_no_timestamp_without_one(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    texts = ("2020-01-02 10:11+02:00", "2020-01-02 10:11")
    pattern = "yyyy-MM-dd HH:mm[XXX]"
    assert read(connection, texts, TimestampNTZType(), timestampntzformat=pattern) == {
        texts[0]: None,
        texts[1]: "2020-01-02 10:11:00",
    }


def test_a_text_that_does_not_fit_the_pattern_is_read_without_one_where_that_is_asked_for(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    texts = ("31/12/2020", "2020-12-31")
    assert read(
        connection,
        texts,
        DateType(),
        dateformat="dd/MM/yyyy",
        enabledatetimeparsingfallback="true",
    ) == dict.fromkeys(texts, "2020-12-31")


def test_timestamps_that_do_not_say_their_zone_are_of_the_zone_of_the_option(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    texts = ("2020-07-01 10:00:00", "2020-07-01T10:00:00Z", "2020-07-01")
    assert read(connection, texts, TimestampType(), timezone="Europe/Berlin") == {
        texts[0]: "2020-07-01 08:00:00",
        texts[1]: "2020-07-01 10:00:00",
        texts[2]: "2020-06-30 22:00:00",
    }


def test_special_numbers_are_spelled_as_the_options_say(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    texts = ("n/a", "big", "-1", "NaN")
    found = read(
        connection, texts, TYPES["double"], nanvalue="n/a", positiveinf="big", negativeinf="-1"
    )
    assert found == {"n/a": "nan", "big": "inf", "-1": "-inf", "NaN": "nan"}


@pytest.mark.parametrize("pattern", ["YYYY", "yyyy[", "yyyy]", "QQQ", "  ", "yyyy#", "yyyy 'at"])
def test_a_pattern_that_cannot_be_read_by_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedDatetimePatternError, match="pattern"):
        text_formats({"dateformat": pattern})


def test_a_locale_that_is_not_english_is_refused() -> None:
    assert text_formats({"locale": "en_GB"}) == text_formats({})
    with pytest.raises(UnsupportedFormatOptionError, match="locale"):
        text_formats({"locale": "de-DE"})


def test_a_time_zone_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidFormatOptionError, match="timeZone"):
        text_formats({"timezone": "Europe/Nowhere"})
