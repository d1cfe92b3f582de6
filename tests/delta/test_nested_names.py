"""Fields inside columns are matched by name without regard to case, and stored as the table has it."""

from __future__ import annotations

import duckdb
import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
)

from millpond.delta import column_types, connect, duckdb_type, with_names_of
from tests.delta.tables import append, columns, create, rows, sorted_rows
from tests.readers import READERS

POINT = columns(x=LongType(), y=LongType())
GIVEN = {
    "the same but for case": (POINT, "{'X': 1, 'Y': 2}", {"x": 1, "y": 2}),
    "one of two": (POINT, "{'X': 1, 'y': 2}", {"x": 1, "y": 2}),
    "in another order": (POINT, "{'y': 2, 'X': 1}", {"x": 1, "y": 2}),
    "a single one": (columns(x=LongType()), "{'X': 1}", {"x": 1}),
    "a missing one": (POINT, "{'X': 1}", {"x": 1, "y": None}),
    "one more": (POINT, "{'z': 3, 'X': 1, 'y': 2}", {"x": 1, "y": 2}),
    "a narrower type": (columns(x=DoubleType()), "{'X': 1::TINYINT}", {"x": 1.0}),
    "a null struct": (POINT, "CASE WHEN false THEN {'X': 1::BIGINT} END", None),
    "a null field": (POINT, "{'X': NULL::BIGINT, 'Y': 2}", {"x": None, "y": 2}),
    "beyond ASCII": (columns(größe=LongType()), "{'GRÖßE': 1}", {"größe": 1}),
    "names to quote": (
        columns(**{"a \"b's": LongType(), "select": LongType()}),
        "{'A \"B''s': 1, 'SELECT': 2}",
        {"a \"b's": 1, "select": 2},
    ),
    "a struct in a struct": (
        columns(p=POINT, n=StringType()),
        "{'p': {'X': 1, 'y': 2}, 'n': 'a'}",
        {"p": {"x": 1, "y": 2}, "n": "a"},
    ),
    "a null in a struct of another case": (
        columns(p=POINT),
        "{'P': CASE WHEN false THEN {'X': 1::BIGINT, 'y': 2::BIGINT} END}",
        {"p": None},
    ),
    "in an array": (
        ArrayType(POINT),
        "[{'X': 1, 'y': 2}, NULL]",
        [{"x": 1, "y": 2}, None],
    ),
    "a null array": (ArrayType(POINT), "CASE WHEN false THEN [{'X': 1, 'y': 2}] END", None),
    "an empty array": (ArrayType(POINT), "[{'X': 1, 'y': 2}][2:]", []),
    "in an array of arrays": (
        ArrayType(ArrayType(columns(l=ArrayType(POINT)))),
        "[[{'L': [{'X': 1, 'y': 2}]}], NULL, []]",
        [[{"l": [{"x": 1, "y": 2}]}], None, []],
    ),
    "in values of a map": (
        MapType(StringType(), POINT),
        "map {'a': {'X': 1, 'y': 2}, 'b': NULL}",
        {"a": {"x": 1, "y": 2}, "b": None},
    ),
    "in a map of maps": (
        MapType(StringType(), MapType(IntegerType(), ArrayType(POINT))),
        "map {'a': map {1: [{'X': 1, 'y': 2}]}}",
        {"a": {1: [{"x": 1, "y": 2}]}},
    ),
    "a null map": (
        MapType(StringType(), POINT),
        "CASE WHEN false THEN map {'a': {'X': 1, 'y': 2}} END",
        None,
    ),
    "an empty map": (
        MapType(StringType(), columns(x=LongType())),
        "map_from_entries([{'k': 'a', 'v': {'X': 1::BIGINT}}][2:])",
        {},
    ),
}


@pytest.fixture
def connection():
    with connect() as connection:
        yield connection


def renamed(connection, sql: str, wanted: DataType) -> str:
    found = column_types(connection, f"(SELECT {sql} AS v) AS given")
    return with_names_of(wanted, "v", found["v"])


@pytest.mark.parametrize(("wanted", "given", "value"), GIVEN.values(), ids=GIVEN)
def test_fields_get_the_names_of_the_wanted_type(connection, wanted, given, value):
    cast = f"CAST({renamed(connection, given, wanted)} AS {duckdb_type(wanted)})"
    relation = connection.sql(f"SELECT {cast} AS v FROM (SELECT {given} AS v)")
    assert relation.fetchall() == [(value,)]
    # Types that differ in case alone are equal to DuckDB; their texts are not.
    assert str(relation.types[0]) == str(duckdb.sqltype(duckdb_type(wanted)))


def test_a_struct_that_is_a_key_of_a_map_gets_its_names(connection):
    wanted = MapType(columns(x=LongType()), LongType())
    given = "map {{'X': 1::BIGINT}: 2::BIGINT}"
    entries = f"map_entries({renamed(connection, given, wanted)})"
    found = connection.sql(f"SELECT {entries} FROM (SELECT {given} AS v)").fetchall()
    assert found == [([{"key": {"x": 1}, "value": 2}],)]


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        (POINT, "{'x': 1, 'y': 2}"),
        (POINT, "{'y': 1::TINYINT, 'x': 2, 'z': 3}"),
        (POINT, "{'x': 1}"),
        (ArrayType(POINT), "[{'x': 1, 'y': 2}]"),
        (MapType(StringType(), ArrayType(POINT)), "map {'a': [{'x': 1, 'y': 2}]}"),
        (columns(p=POINT), "{'p': {'y': 1, 'x': 2}}"),
        (LongType(), "1"),
        (POINT, "NULL"),
    ],
)
def test_a_value_whose_names_are_right_is_left_as_it_is(connection, wanted, given):
    assert renamed(connection, given, wanted) == "v"


@pytest.mark.parametrize("reader", READERS)
def test_other_readers_find_fields_that_a_query_wrote_in_another_case(tmp_path, reader):
    schema = columns(k=LongType(), p=POINT, l=ArrayType(POINT))
    table = create(tmp_path / "t", schema)
    append(table, "SELECT 1 AS K, {'X': 1::BIGINT, 'y': 2::BIGINT} AS P, [{'x': 3, 'Y': 4}] AS l")
    append(table, "SELECT 2 AS k, {'x': 5, 'y': 6} AS p, NULL AS l")
    found = sorted(READERS[reader](tmp_path / "t"), key=lambda row: row["k"])
    assert found == [
        {"k": 1, "p": {"x": 1, "y": 2}, "l": [{"x": 3, "y": 4}]},
        {"k": 2, "p": {"x": 5, "y": 6}, "l": None},
    ]
    assert sorted_rows(rows(table.snapshot())) == sorted_rows(found)
