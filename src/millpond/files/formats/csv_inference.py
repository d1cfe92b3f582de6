"""Finds the types of the columns of CSV files from their texts, by Spark's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from millpond.files.formats.casts import cast_sql
from millpond.files.formats.csv_columns import text_of
from millpond.files.formats.csv_options import CsvOptions
from millpond.files.formats.csv_tables import CsvTable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql.types import DataType

_MAX_DIGITS = 38
_WHOLE = "'[+-]?[0-9]+\\.?'"
_YEAR = "'^\\s*[+-]?[0-9]{4}'"
_DATE = "'[0-9]{4}-[0-9]{2}-[0-9]{2}'"


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
    """The types that columns have in all tables together, of those that have any value."""
    if not tables or not names:
        return {}
    # A row for each value: the query stays small, however many columns there are.
    values = " UNION ALL ".join(_values(table, names, options) for table in tables)
    texts = f"SELECT number, {text_of('value', options)} AS value FROM ({values})"
    seen = ", ".join(f"{sql} AS {name}" for name, sql in _seen("value", options).items())
    answer = connection.execute(
        f"SELECT number, {seen} FROM ({texts}) WHERE value IS NOT NULL GROUP BY number"
    )
    assert answer.description is not None
    keys = [key for key, *_ in answer.description]
    return {
        names[number]: _type(dict(zip(keys[1:], facts, strict=True)), options)
        for number, *facts in answer.fetchall()
    }


def _values(table: CsvTable, names: Sequence[str], options: CsvOptions) -> str:
    """The values of a table's columns, each with the number of its name."""
    fold = str if options.case_sensitive else str.lower
    numbers = {fold(name): number for number, name in enumerate(names)}
    found = {
        position: numbers[fold(table.column_name(position))]
        for position in range(table.width)
        if fold(table.column_name(position)) in numbers
    }
    columns = ", ".join(f"c{position}" for position in found)
    return (
        f"SELECT unnest({list(found.values())}) AS number, unnest([{columns}]::VARCHAR[]) AS value "
        f"FROM ({table.sql})"
    )


def _seen(text: str, options: CsvOptions) -> dict[str, str]:
    """Which types all texts have, as aggregates."""
    from pyspark.sql.types import DateType, DoubleType, IntegerType, LongType, TimestampType

    formats = options.formats

    def casts(data_type: DataType) -> str:
        return f"({cast_sql(text, data_type, formats=formats)}) IS NOT NULL"

    number = casts(DoubleType())
    date = casts(DateType())
    timestamp = casts(TimestampType())
    if formats.date is None:
        # Dates are read leniently, but recognized by their usual form only.
        date = f"(regexp_full_match({text}, {_DATE}) AND {date})"
    if formats.timestamp is None:
        # Most other texts are seen to be none much quicker.
        timestamp = f"(regexp_matches({text}, {_YEAR}) AND NOT {number} AND {timestamp})"
    return {
        "is_int": f"bool_and({casts(IntegerType())})",
        "is_long": f"bool_and({casts(LongType())})",
        "is_whole": f"bool_and(regexp_full_match({text}, {_WHOLE}))",
        "digits": f"max(length(regexp_replace({text}, '[^0-9]', '', 'g')))",
        "is_double": f"bool_and({number})",
        "is_date": f"bool_and({date})",
        "is_timestamp": f"bool_and({timestamp})",
        "is_boolean": f"bool_and(lower({text}) IN ('true', 'false'))",
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
        (bool(seen["is_int"]), IntegerType()),
        (bool(seen["is_long"]), LongType()),
        (
            bool(seen["is_whole"]) and seen["digits"] <= _MAX_DIGITS,
            DecimalType(min(seen["digits"], _MAX_DIGITS), 0),
        ),
        (bool(seen["is_double"]), DoubleType()),
        (bool(seen["is_date"]) and options.prefers_date, DateType()),
        (bool(seen["is_timestamp"]), TimestampType()),
        (bool(seen["is_boolean"]), BooleanType()),
    ]
    return next((kind for fits, kind in kinds if fits), StringType())
