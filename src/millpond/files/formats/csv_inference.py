"""Finds the types of the columns of CSV files from their texts, by Spark's rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from millpond.files.formats.casts import cast_sql
from millpond.files.formats.csv_options import CsvOptions
from millpond.files.formats.csv_tables import CsvTable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql.types import DataType

_MAX_DIGITS = 38
_WHOLE = "'[+-]?[0-9]+\\.?'"
_YEAR = "'^\\s*[+-]?[0-9]{4}'"
_DATE = "'[0-9]{4}-[0-9]{2}-[0-9]{2}'"
_DIGITS = "max(length(regexp_replace(value, '[^0-9]', '', 'g')))"
_FIRST_ROWS = 100


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
    # A type before the one that some texts have in common is none of all texts either. So few texts
    # say which type to look for in the others: most columns are seen to have it at once.
    first = [
        replace(table, sql=f"SELECT * FROM ({table.sql}) LIMIT {_FIRST_ROWS}") for table in tables
    ]
    types = _types(first, names, options, connection=connection)
    kept = _kept(tables, types, options, connection=connection)
    rest = [name for name in names if name not in kept]
    return types | _types(tables, rest, options, connection=connection)


def _types(
    tables: Sequence[CsvTable],
    names: Sequence[str],
    options: CsvOptions,
    *,
    connection: DuckDBPyConnection,
) -> dict[str, DataType]:
    """The types of columns, by looking for all types in all texts."""
    if not tables or not names:
        return {}
    kinds = _kinds("value", options)
    seen = [f"bool_and({condition})" for condition, _ in kinds]
    answer = connection.execute(
        f"SELECT number, {_DIGITS}, {', '.join(seen)} FROM ({_texts(tables, names, options)}) "
        "GROUP BY number"
    )
    return {
        names[number]: _first(zip(fits, (kind for _, kind in kinds), strict=True), digits)
        for number, digits, *fits in answer.fetchall()
    }


def _kept(
    tables: Sequence[CsvTable],
    types: Mapping[str, DataType],
    options: CsvOptions,
    *,
    connection: DuckDBPyConnection,
) -> set[str]:
    """Those columns that have no text that is none of its type."""
    from pyspark.sql.types import DecimalType, StringType

    kept = {name for name, kind in types.items() if isinstance(kind, StringType)}
    # How large a decimal is only all texts can say.
    names = [name for name, kind in types.items() if not isinstance(kind, StringType | DecimalType)]
    if not names:
        return kept
    branches = " ".join(
        f"WHEN number IN ({', '.join(numbers)}) THEN {condition}"
        for condition, kind in _kinds("value", options)
        if (numbers := [str(number) for number, name in enumerate(names) if types[name] == kind])
    )
    answer = connection.execute(
        f"SELECT number FROM ({_texts(tables, names, options)}) "
        f"GROUP BY number HAVING bool_and(CASE {branches} END)"
    )
    return kept | {names[number] for (number,) in answer.fetchall()}


def _texts(tables: Sequence[CsvTable], names: Sequence[str], options: CsvOptions) -> str:
    """The texts of columns, each with the number of its name.

    A row for each text: the query stays small, however many columns there are.
    """
    values = " UNION ALL ".join(_values(table, names, options) for table in tables)
    return f"SELECT * FROM ({values}) WHERE value IS NOT NULL"


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


def _kinds(text: str, options: CsvOptions) -> list[tuple[str, DataType]]:
    """The types that there are, each with the condition that a text is of it; the first wins.

    Of decimals there is one, without their size.
    """
    from pyspark.sql.types import (
        BooleanType,
        DateType,
        DecimalType,
        DoubleType,
        IntegerType,
        LongType,
        TimestampType,
    )

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
    return [
        (casts(IntegerType()), IntegerType()),
        (casts(LongType()), LongType()),
        (f"regexp_full_match({text}, {_WHOLE})", DecimalType()),
        (number, DoubleType()),
        *([(date, DateType())] if options.prefers_date else []),
        (timestamp, TimestampType()),
        (f"lower({text}) IN ('true', 'false')", BooleanType()),
    ]


def _first(kinds: Iterable[tuple[bool, DataType]], digits: int) -> DataType:
    """The first type that all texts have, of which the longest has so many digits."""
    from pyspark.sql.types import DecimalType, StringType

    for fits, kind in kinds:
        if fits and not isinstance(kind, DecimalType):
            return kind
        if fits and digits <= _MAX_DIGITS:
            return DecimalType(digits, 0)
    return StringType()
