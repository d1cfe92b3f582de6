"""Parquet files: columns by name, each read as the type that is asked for where it fits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.files.formats.base import LocalFile, Selection
from millpond.files.formats.typed_columns import (
    merged_schema,
    new_columns,
    select_sql,
    typed_file,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql.types import StructType

    from millpond.files.options import FileOptions


class ParquetFormat:
    """Parquet, by DuckDB's own reader.

    Files are always merged by the names of their columns; `mergeSchema` changes nothing.
    """

    def infer(
        self,
        files: Sequence[LocalFile],
        options: FileOptions,
        *,
        connection: DuckDBPyConnection,
        folder: Path,  # noqa: ARG002 - nothing has to be written
    ) -> StructType:
        """The columns of all files."""
        return merged_schema([typed_file(file, connection) for file in files], options)

    def select(
        self,
        files: Sequence[LocalFile],
        options: FileOptions,
        columns: StructType,
        *,
        connection: DuckDBPyConnection,
        folder: Path,  # noqa: ARG002 - nothing has to be written
    ) -> Selection:
        """Columns that a file has as asked for are read as they are."""
        typed = [typed_file(file, connection) for file in files]
        return Selection(select_sql(typed, columns, options), new_columns(typed, columns))
