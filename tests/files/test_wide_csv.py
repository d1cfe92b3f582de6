"""CSV files of many columns are read as those of few are, in a time that grows with their number."""

from __future__ import annotations

import time
from datetime import date
from decimal import Decimal

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from millpond.delta import connect, copy_to_files
from millpond.errors.file_reads import TooManyColumnsError
from millpond.files.columns import MAX_INFERRED, NewColumn
from millpond.files.formats import format_of
from millpond.files.formats.csv import MAX_ASKED
from millpond.files.schema import KeptColumns
from tests.files.format_reads import local, options_of, read, struct

KINDS = {"BIGINT": "1", "DOUBLE": "2.5", "DATE": "2026-01-31", "BOOLEAN": "true", "VARCHAR": "x"}
VALUES = {
    "BIGINT": 1,
    "DOUBLE": 2.5,
    "DATE": date(2026, 1, 31),
    "BOOLEAN": True,
    "VARCHAR": "x",
    "DECIMAL(5,2)": Decimal("3.20"),
}


def test_many_columns_have_the_values_that_few_have(tmp_path):
    kinds = {f"c{i}": list(VALUES)[i % len(VALUES)] for i in range(240)}
    texts = [KINDS.get(kind, "3.2") for kind in kinds.values()]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(map(",".join, [kinds, texts, ["?"] * 240])) + "\n")
    columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
    answer = read("csv", path, columns, header="true")
    assert answer.rows[0] == {name: VALUES[kind] for name, kind in kinds.items()}
    assert answer.rescued[0] is None
    misfits = [name for name, kind in kinds.items() if kind != "VARCHAR"]
    assert answer.rescued[1] == dict.fromkeys(misfits, "?")
    assert answer.rows[1] == {name: None if name in misfits else "?" for name in kinds}


def write_wide(folder, width, rows=1):
    """A file with a column of empty values, one of nulls, and numbers in the others."""
    path = folder / "a.csv"
    names = [f"c{i}" for i in range(width)]
    values = ["", '""', *map(str, range(2, width))]
    path.write_text("\n".join(map(",".join, [names, *[values] * rows])) + "\n")
    return path


def test_columns_that_are_not_asked_for_are_rescued_however_many_they_are(tmp_path):
    path = write_wide(tmp_path, 20_480, rows=3)
    options = {"header": "true", "nullValue": "7", "emptyValue": "none"}
    answer = read("csv", path, "c20479 INT, c3 VARCHAR, c5 DATE", **options)
    assert answer.rows == [{"c20479": 20479, "c3": "3", "c5": None}] * 3
    (rescued, *others) = answer.rescued
    assert others == [rescued] * 2
    expected = {f"c{i}": str(i) for i in range(2, 20_479) if i not in {3, 7}}
    assert rescued == {"c1": "none", **expected}
    assert len(answer.new_columns.split(",")) == 20_477


@pytest.mark.parametrize("width", [100, 700])
def test_few_and_many_columns_are_rescued_alike(tmp_path, width):
    path = write_wide(tmp_path, width)
    answer = read("csv", path, "c2 INT, c3 DATE", header="true")
    assert answer.rows == [{"c2": 2, "c3": None}]
    assert answer.rescued == [{"c3": "3"} | {f"c{i}": str(i) for i in range(4, width)}]


def test_many_columns_are_read_in_the_memory_that_there_is(tmp_path):
    path = write_wide(tmp_path, 2000, rows=4000)
    columns = ", ".join(f"c{i} INT" for i in range(2000))
    found = format_of("csv")
    with connect(temporary_folder=tmp_path) as connection:
        selection = found.select(
            [local(path)],
            options_of("csv", header="true"),
            struct(columns),
            connection=connection,
            folder=tmp_path,
        )
        written = selection.taken(lambda one: copy_to_files(connection, one.sql, tmp_path))
    assert sum(file.rows for file, _ in written) == 4000


def test_more_columns_than_can_be_read_are_refused_before_any_file_is(tmp_path):
    columns = ", ".join(f"c{i} INT" for i in range(MAX_ASKED + 1))
    with pytest.raises(TooManyColumnsError, match="3001 columns; it can give 3000 at most"):
        read("csv", [], columns)


def test_a_file_of_more_columns_than_are_inferred_is_named(tmp_path):
    path = write_wide(tmp_path, MAX_INFERRED + 1)
    with pytest.raises(TooManyColumnsError, match=rf"The columns of {path.as_uri()} are 2001"):
        read("csv", path, header="true")


def planning_s(folder, width):
    """The processor's time for planning a read of so many columns."""
    names = [f"c{i}" for i in range(width)]
    path = folder / "a.csv"
    path.write_text("\n".join(map(",".join, [names, ["1"] * width])) + "\n")
    columns = struct(", ".join(f"{name} BIGINT" for name in names))
    options = options_of("csv", header="true")
    with connect(temporary_folder=folder) as connection:
        selection = format_of("csv").select(
            [local(path)], options, columns, connection=connection, folder=folder
        )
        before = time.process_time()
        connection.execute(f"EXPLAIN {selection.sql}")
        return time.process_time() - before


def test_the_time_to_plan_a_read_does_not_grow_with_the_square_of_the_columns(tmp_path):
    assert planning_s(tmp_path, 1200) < 9 * planning_s(tmp_path, 300)


def test_columns_that_were_found_are_added_together():
    new = [
        NewColumn(StructField("a", LongType())),
        NewColumn(StructField("s", StructType().add("x", LongType()))),
        NewColumn(StructField("day", StringType()), of_folder=True),
        NewColumn(StructField("S", StructType().add("y", LongType()))),
        NewColumn(StructField("A", StringType())),
    ]
    kept = KeptColumns(StructType().add("b", LongType()), StructType()).with_columns(new)
    assert kept.inside.simpleString() == "struct<b:bigint,a:bigint,s:struct<x:bigint,y:bigint>>"
    assert kept.of_folders.names == ["day"]
