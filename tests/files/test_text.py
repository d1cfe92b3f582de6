"""A row of a file of text is a line of it, or the whole of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from millpond.delta import connect
from millpond.errors.file_formats import (
    InvalidFormatOptionError,
    RowTooLongError,
    UnsupportedColumnTypeError,
)
from millpond.files.formats.base import FILE_INDEX, RESCUED, LocalFile
from millpond.files.formats.text import TextFormat
from millpond.files.options import FileOptions

VALUE = StructType([StructField("value", StringType())])


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as connection:
        connection.execute("SET preserve_insertion_order = true")
        yield connection


def read(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    *contents: bytes,
    columns: StructType = VALUE,
    **given: str,
) -> list[tuple[object, ...]]:
    files = []
    for number, content in enumerate(contents):
        path = folder / f"{number}.txt"
        path.write_bytes(content)
        files.append(LocalFile(path, f"file:///data/{number}.txt"))
    options = FileOptions("text", ("/data",), format_options=given)
    selection = TextFormat().select(files, options, columns, connection=connection, folder=folder)
    assert selection.new_columns == StructType([])
    return connection.execute(selection.sql).fetchall()


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"\n\na\n\n", ["", "", "a", ""]),
        (b"a", ["a"]),
        (b"a\r\n\r\nb\r", ["a", "", "b"]),
        (b"", []),
        (b'\xef\xbb\xbfa,"b\n c"\x00\n', ['a,"b', ' c"\x00']),
        (b"\xff\n", ["\ufffd"]),
    ],
)
def test_a_row_is_a_line(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, content: bytes, lines: list[str]
) -> None:
    assert read(connection, tmp_path, content) == [(line, None) for line in lines]


def test_lines_end_where_the_option_says(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    rows = read(connection, tmp_path, b"a;\nb;;c", linesep=";")
    assert [row[0] for row in rows] == ["a", "\nb", "", "c"]


def test_a_row_is_a_whole_file_where_that_is_asked_for(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    rows = read(connection, tmp_path, b"a\r\nb\n", b"", wholetext="true")
    assert rows == [("a\r\nb\n", 0, None), ("", 1, None)]


def test_rows_say_which_file_they_are_of(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    rows = read(connection, tmp_path, b"a\nb\n", b"", b"c\n")
    assert rows == [("a", 0, None), ("b", 0, None), ("c", 2, None)]
    assert (FILE_INDEX, RESCUED) == ("__millpond_file", "__millpond_rescued")


def test_there_is_one_column_of_strings(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    options = FileOptions("text", ("/data",))
    inferred = TextFormat().infer([], options, connection=connection, folder=tmp_path)
    assert inferred == VALUE
    line = StructType([StructField("line", StringType())])
    assert read(connection, tmp_path, b"a\n", columns=line) == [("a", None)]
    with pytest.raises(UnsupportedColumnTypeError, match="column n of type int"):
        read(connection, tmp_path, b"1\n", columns=StructType([StructField("n", IntegerType())]))


def test_a_line_is_read_up_to_a_limit(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    content = b"a\n" + b"x" * 20_000_000
    with pytest.raises(RowTooLongError, match=r"line 2 of file:///data/0.txt"):
        read(connection, tmp_path, content)
    with pytest.raises(RowTooLongError, match=r"line 1 of file:///data/0.txt"):
        read(connection, tmp_path, content, wholetext="true")
    with pytest.raises(RowTooLongError, match=r"line 2 of file:///data/0.txt"):
        read(connection, tmp_path, content.replace(b"\n", b";"), linesep=";")


def test_a_value_that_an_option_cannot_have_is_refused(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    with pytest.raises(InvalidFormatOptionError, match="wholetext"):
        read(connection, tmp_path, b"a\n", wholetext="maybe")
    with pytest.raises(InvalidFormatOptionError, match="lineSep"):
        read(connection, tmp_path, b"a\n", linesep="")
