"""Reads files by one format, for the tests of formats."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql.types import StructType

from millpond.delta import connect
from millpond.files.formats import format_of
from millpond.files.formats.base import FILE_INDEX, RESCUED, LocalFile, Selection
from millpond.files.formats.duckdb_types import spark_type
from millpond.files.options import FileOptions, ParseMode

RESCUED_COLUMN = "_rescued_data"


@dataclass(frozen=True)
class Answer:
    """What a read gives: rows as dicts, what was rescued of each, and its schemas as text.

    `rescued_texts` is what was rescued as it is written.
    """

    rows: list[dict[str, Any]]
    rescued: list[dict[str, Any] | None]
    rescued_texts: list[str | None]
    schema: str
    new_columns: str
    indexes: list[int]


def local(path: Path, **facts: int) -> LocalFile:
    return LocalFile(path, path.as_uri(), **facts)


def options_of(
    format: str,  # noqa: A002 - what users call it
    *,
    rescues: bool = True,
    types: bool = True,
    mode: str = "PERMISSIVE",
    **given: str,
) -> FileOptions:
    return FileOptions(
        format,
        ("files",),
        rescued_column=RESCUED_COLUMN if rescues else None,
        infer_types=types,
        mode=ParseMode(mode),
        format_options={key.lower(): value for key, value in given.items()},
    )


def struct(columns: str) -> StructType:
    """Columns by DuckDB's names of their types, such as `a BIGINT, b VARCHAR[]`."""
    schema = spark_type(duckdb.sqltype(f"STRUCT({columns})"))
    assert isinstance(schema, StructType)
    return schema


def _rows(
    connection: duckdb.DuckDBPyConnection, selection: Selection
) -> tuple[Selection, list[dict[str, Any]]]:
    cursor = connection.execute(f"SELECT * FROM ({selection.sql})")
    names = [column[0] for column in cursor.description]
    return selection, [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def read(
    format: str,  # noqa: A002 - what users call it
    paths: Path | Sequence[Path],
    columns: str | None = None,
    **options: Any,
) -> Answer:
    files = [local(path) for path in ([paths] if isinstance(paths, Path) else paths)]
    given = options_of(format, **options)
    reader = format_of(given.format)
    with tempfile.TemporaryDirectory() as name, connect(temporary_folder=Path(name)) as connection:
        folder = Path(name)
        if columns is None:
            schema = reader.infer(files, given, connection=connection, folder=folder)
        else:
            schema = struct(columns)
        selection = reader.select(files, given, schema, connection=connection, folder=folder)
        selection, rows = selection.taken(partial(_rows, connection))
    rescued = [row.pop(RESCUED) for row in rows]
    indexes = [row.pop(FILE_INDEX, 0) for row in rows]
    assert all(list(row) == schema.names for row in rows)
    return Answer(
        rows,
        [None if text is None else json.loads(text) for text in rescued],
        rescued,
        schema.simpleString().removeprefix("struct<").removesuffix(">"),
        selection.new_columns.simpleString().removeprefix("struct<").removesuffix(">"),
        indexes,
    )
