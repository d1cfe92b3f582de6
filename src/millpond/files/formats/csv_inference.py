"""Finds the types of the columns of CSV files from their texts, by Spark's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from millpond.delta.schema import quote
from millpond.files.formats.casts import cast_sql
from millpond.files.formats.csv_columns import text_of
from millpond.files.formats.csv_options import CsvOptions
from millpond.files.formats.csv_tables import CsvTable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql.types import DataType

_MAX_DIGITS = 38
_WHOLE = "'[+-]?[0-9]+\\.?'"
_DATE = "'[0-9]{4}-[0-9]{2}-[0-9]{2}'"
_COLUMNS_AT_ONCE = 100


def column_names(tables: Sequence[CsvTable], options: CsvOptions) -> list[str]:
    """All columns of some tables, in the order in which they come up."""
    names: dict[str, str] = {}
    for table in tables:
        for position in range(table.width):
            name = table.column_name(position)
            names.setdefault(name if options.case_sensitive else name.lower(), name)
    return list(names.values())


def column_types(
    tables: Sequence[CsvTable],
    names: Sequence[str],
    options: CsvOptions,
    *,
    connection: DuckDBPyConnection,
) -> dict[str, DataType]:
    """The type that each of the columns has in all tables together."""
    found: dict[str, DataType] = {}
    for first in range(0, len(names), _COLUMNS_AT_ONCE):
        part = names[first : first + _COLUMNS_AT_ONCE]
        rows = " UNION ALL ".join(_texts(table, part, options) for table in tables)
        seen = [_seen(f"v{position}", options) for position in range(len(part))]
        structs = ", ".join(
            "{" + ", ".join(f"'{key}': {sql}" for key, sql in facts.items()) + "}" for facts in seen
        )
        answer = connection.execute(f"SELECT {structs} FROM ({rows})").fetchall()[0]
        for name, facts in zip(part, answer, strict=True):
            found[name] = _type(facts, options)
    return found


def _texts(table: CsvTable, names: Sequence[str], options: CsvOptions) -> str:
    """The texts of columns, NULL for those that the table lacks."""
    fold = str if options.case_sensitive else str.lower
    positions = {fold(table.column_name(position)): position for position in range(table.width)}
    texts = []
    for number, name in enumerate(names):
        position = positions.get(fold(name))
        text = "NULL::VARCHAR" if position is None else text_of(f"c{position}", options)
        texts.append(f"{text} AS {quote(f'v{number}')}")
    return f"SELECT {', '.join(texts)} FROM ({table.sql})"


def _seen(text: str, options: CsvOptions) -> dict[str, str]:
    """Which types all texts have, as aggregates."""
    from pyspark.sql.types import DateType, DoubleType, IntegerType, LongType, TimestampType

    formats = options.formats

    def all_are(condition: str) -> str:
        return f"coalesce(bool_and({condition}) FILTER ({text} IS NOT NULL), true)"

    def all_cast(data_type: DataType) -> str:
        return all_are(f"({cast_sql(text, data_type, formats=formats)}) IS NOT NULL")

    digits = f"length(regexp_replace({text}, '[^0-9]', '', 'g'))"
    date = f"({cast_sql(text, DateType(), formats=formats)}) IS NOT NULL"
    if formats.date is None:
        # Dates are read leniently, but recognized by their usual form only.
        date = f"(regexp_full_match({text}, {_DATE}) AND {date})"
    return {
        "rows": f"count({text})",
        "int": all_cast(IntegerType()),
        "long": all_cast(LongType()),
        "whole": all_are(f"regexp_full_match({text}, {_WHOLE})"),
        "digits": f"coalesce(max({digits}), 0)",
        "double": all_cast(DoubleType()),
        "date": all_are(date),
        "timestamp": all_cast(TimestampType()),
        "boolean": all_are(f"lower({text}) IN ('true', 'false')"),
    }


def _type(seen: Mapping[str, int], options: CsvOptions) -> DataType:
    from pyspark.sql.types import (
        BooleanType,
        DateType,
        DecimalType,
        DoubleType,
        IntegerType,
        LongType,
        StringType,
        TimestampType,
    )

    kinds: list[tuple[bool, DataType]] = [
        (not seen["rows"], StringType()),
        (bool(seen["int"]), IntegerType()),
        (bool(seen["long"]), LongType()),
        (
            bool(seen["whole"]) and seen["digits"] <= _MAX_DIGITS,
            DecimalType(max(1, min(seen["digits"], _MAX_DIGITS)), 0),
        ),
        (bool(seen["double"]), DoubleType()),
        (bool(seen["date"]) and options.prefers_date, DateType()),
        (bool(seen["timestamp"]), TimestampType()),
        (bool(seen["boolean"]), BooleanType()),
    ]
    return next((kind for fits, kind in kinds if fits), StringType())
