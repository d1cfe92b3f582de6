"""Files of text: a row is a line, or the whole file."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.delta.schema import quote
from millpond.errors.file_formats import (
    InvalidFormatOptionError,
    RowTooLongError,
    UnsupportedColumnTypeError,
)
from millpond.files.formats.base import FILE_INDEX, RESCUED, LocalFile, Selection
from millpond.files.formats.file_sql import paths_sql
from millpond.files.formats.text_lines import MAX_ROW_CHARACTERS, lines_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql.types import StructType

    from millpond.files.options import FileOptions

_COLUMN = "value"
_FLUSH_ROWS = 50_000
_FLUSH_CHARACTERS = 8 * 1024 * 1024


class TextFormat:
    """Reads files of text."""

    def infer(
        self,
        files: Sequence[LocalFile],
        options: FileOptions,
        *,
        connection: DuckDBPyConnection,
        folder: Path,
    ) -> StructType:
        """One column of strings; see `Format.infer`."""
        del files, options, connection, folder
        from pyspark.sql.types import StringType, StructField, StructType

        return StructType([StructField(_COLUMN, StringType())])

    def select(
        self,
        files: Sequence[LocalFile],
        options: FileOptions,
        columns: StructType,
        *,
        connection: DuckDBPyConnection,
        folder: Path,
    ) -> Selection:
        """How to read some files with given columns; see `Format.select`."""
        del connection
        from pyspark.sql.types import StructType

        shown = []
        for field in columns.fields:
            kind = field.dataType.simpleString()
            if kind != "string" or len(columns.fields) > 1:
                raise UnsupportedColumnTypeError.from_text_column(field.name, kind)
            shown.append(f"{_COLUMN} AS {quote(field.name)}")
        if len(files) > 1:
            shown.append(FILE_INDEX)
        shown.append(f"NULL::VARCHAR AS {RESCUED}")
        path = _written(files, options, folder)
        rows = f"read_parquet({paths_sql([path])}, hive_partitioning = false)"
        return Selection(f"SELECT {', '.join(shown)} FROM {rows}", StructType([]))


def _written(files: Sequence[LocalFile], options: FileOptions, folder: Path) -> Path:
    """A Parquet file of the rows.

    DuckDB has no reader of lines: that of CSV leaves out blank ones.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(_COLUMN, pa.string()), (FILE_INDEX, pa.int64())])
    path = folder / f"lines-{uuid.uuid4().hex}.parquet"
    with pq.ParquetWriter(path, schema, compression="snappy") as writer:
        for index, file in enumerate(files):
            for rows in _chunks(_rows(file, options)):
                indices = pa.array([index] * len(rows), pa.int64())
                writer.write_table(pa.table([pa.array(rows, pa.string()), indices], schema=schema))
    return path


def _rows(file: LocalFile, options: FileOptions) -> Iterator[str]:
    given = options.format_options
    whole = given.get("wholetext", "false").strip().lower()
    if whole not in {"true", "false"}:
        raise InvalidFormatOptionError.from_value("wholetext", whole, must_be="true or false")
    separator = given.get("linesep")
    if separator == "":
        raise InvalidFormatOptionError.from_value("lineSep", separator, must_be="not empty")
    if whole == "false":
        yield from lines_of(file, separator)
        return
    with file.path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        text = stream.read(MAX_ROW_CHARACTERS + 1)
    if len(text) > MAX_ROW_CHARACTERS:
        raise RowTooLongError.from_line(file.uri, 1, limit_characters=MAX_ROW_CHARACTERS)
    yield text


def _chunks(rows: Iterator[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    characters = 0
    for row in rows:
        chunk.append(row)
        characters += len(row)
        if len(chunk) >= _FLUSH_ROWS or characters >= _FLUSH_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk
