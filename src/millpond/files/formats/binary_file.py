"""Files as they are: where each lies, when it was changed, how long it is, and its content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from millpond.delta.schema import duckdb_type, literal, quote
from millpond.errors.file_formats import FileUnreadableError
from millpond.files.formats.base import FILE_INDEX, RESCUED, LocalFile, Selection
from millpond.files.formats.file_sql import paths_sql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from millpond.files.options import FileOptions

SCHEMA = StructType(
    [
        StructField("path", StringType()),
        StructField("modificationTime", TimestampType()),
        StructField("length", LongType()),
        StructField("content", BinaryType()),
    ]
)
# As in Spark, where an array can't be longer.
MAX_CONTENT_BYTES = (1 << 31) - 1
_CONTENT = "content"


class BinaryFileFormat:
    """A file is a row of fixed columns. Its content is only read where it is asked for."""

    def infer(
        self,
        files: Sequence[LocalFile],  # noqa: ARG002 - every file has the same columns
        options: FileOptions,  # noqa: ARG002 - `Format` has it
        *,
        connection: DuckDBPyConnection,  # noqa: ARG002 - `Format` has it
        folder: Path,  # noqa: ARG002 - `Format` has it
    ) -> StructType:
        """The columns, which are the same for every file."""
        return SCHEMA

    def select(
        self,
        files: Sequence[LocalFile],
        options: FileOptions,  # noqa: ARG002 - the reader has none
        columns: StructType,
        *,
        connection: DuckDBPyConnection,  # noqa: ARG002 - `Format` has it
        folder: Path,  # noqa: ARG002 - `Format` has it
    ) -> Selection:
        """Columns of other names are NULL.

        Raises:
            FileUnreadableError: A content is too long for a value.
        """
        wanted = {field.name.lower() for field in columns.fields}
        rows = " UNION ALL ".join(
            _row_sql(file, index, reads=_CONTENT in wanted) for index, file in enumerate(files)
        )
        known = {field.name.lower(): field for field in SCHEMA.fields}
        shown = [
            f"CAST({quote(known[f.name.lower()].name) if f.name.lower() in known else 'NULL'} "
            f"AS {duckdb_type(f.dataType)}) AS {quote(f.name)}"
            for f in columns.fields
        ]
        if len(files) > 1:
            shown.append(quote(FILE_INDEX))
        shown.append(f"CAST(NULL AS VARCHAR) AS {quote(RESCUED)}")
        new = [field for field in SCHEMA.fields if field.name.lower() not in wanted]
        return Selection(f"SELECT {', '.join(shown)} FROM ({rows})", StructType(new))


def _row_sql(file: LocalFile, index: int, *, reads: bool) -> str:
    length = file.path.stat().st_size
    if reads and length > MAX_CONTENT_BYTES:
        raise FileUnreadableError.too_long(file.uri, what="content", limit_bytes=MAX_CONTENT_BYTES)
    values = [
        f"{literal(file.uri)} AS path",
        f'make_timestamptz({file.modified_ns // 1000}) AS "modificationTime"',
        f"CAST({length} AS BIGINT) AS length",
        f"{_CONTENT if reads else 'CAST(NULL AS BLOB)'} AS content",
        f"CAST({index} AS BIGINT) AS {quote(FILE_INDEX)}",
    ]
    source = f" FROM read_blob({paths_sql([file.path])})" if reads else ""
    return f"SELECT {', '.join(values)}{source}"
