"""Avro files, written anew as Parquet and then read as that.

The reader of records is fastavro, an extra of the package.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from millpond.errors.file_formats import (
    FileColumnTypeError,
    FileReaderMissingError,
    FileUnreadableError,
    UnsupportedFormatOptionError,
)
from millpond.files.formats.avro_types import AvroType, UnsupportedAvroError, record_type
from millpond.files.formats.base import LocalFile, Selection
from millpond.files.formats.typed_columns import (
    TypedFile,
    merged_schema,
    new_columns,
    select_sql,
    typed_file,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection
    from pyspark.sql.types import StructType

    from millpond.files.options import FileOptions

_REFUSED = {
    "avroschemaurl": ("avroSchemaUrl", "give the text of the schema in avroSchema"),
    "positionalfieldmatching": (
        "positionalFieldMatching",
        "fields are found by their names; rename them in avroSchema by aliases",
    ),
    "enablestableidentifiersforuniontype": (
        "enableStableIdentifiersForUnionType",
        "the branches of a union are the fields member0, member1 and so on",
    ),
}
# A row group is written when the blocks it came from had so many bytes, or it has so many rows.
_GROUP_BYTES = 16 << 20
_GROUP_ROWS = 50_000
# Writers keep blocks far below; a longer one is a damaged length.
_MAX_BLOCK_BYTES = 256 << 20


class AvroFormat:
    """Avro, by fastavro. Files are read with their own schema, or that of the option avroSchema."""

    def infer(
        self,
        files: Sequence[LocalFile],
        options: FileOptions,
        *,
        connection: DuckDBPyConnection,
        folder: Path,
    ) -> StructType:
        """The fields of all files' schemas."""
        schema = _asked_schema(options)
        typed: list[TypedFile] = []
        for file in files:
            target = folder / f"{uuid.uuid4().hex}.parquet"
            # No record is needed for the types of columns.
            _write(file, target, schema, with_records=False)
            typed.append(typed_file(replace(file, path=target), connection))
        return merged_schema(typed, options)

    def select(
        self,
        files: Sequence[LocalFile],
        options: FileOptions,
        columns: StructType,
        *,
        connection: DuckDBPyConnection,
        folder: Path,
    ) -> Selection:
        """Fields are columns by their names."""
        schema = _asked_schema(options)
        typed: list[TypedFile] = []
        for file in files:
            target = folder / f"{uuid.uuid4().hex}.parquet"
            _write(file, target, schema, with_records=True)
            typed.append(typed_file(replace(file, path=target), connection))
        return Selection(select_sql(typed, columns, options), new_columns(typed, columns))


def _asked_schema(options: FileOptions) -> Any:
    given = options.format_options
    for key, (name, instead) in _REFUSED.items():
        if given.get(key, "false").strip().lower() != "false":
            raise UnsupportedFormatOptionError.from_value(name, given[key], instead=instead)
    text = given.get("avroschema")
    if not text:
        return None
    with _readable("the option avroSchema"):
        return _fastavro().parse_schema(json.loads(text))


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError:
        raise FileReaderMissingError.from_extra("avro", package="fastavro") from None
    return fastavro


@contextmanager
def _readable(uri: str) -> Iterator[None]:
    """Turn what goes wrong with a file's content into an error that names it."""
    try:
        yield
    except FileReaderMissingError:
        raise
    except (RecursionError, MemoryError) as error:
        reason = f"it is nested too deeply or has a damaged length ({type(error).__name__})"
        hint = "see whether the file is damaged; if not, less memory may be in use another time"
        raise FileUnreadableError.beyond_reach(uri, reason=reason, hint=hint) from error
    except (OverflowError, UnsupportedAvroError) as error:
        hint = "the file may be whole: write it anew with other types, or keep it elsewhere"
        raise FileUnreadableError.beyond_reach(uri, reason=_reason(error), hint=hint) from error
    except Exception as error:  # fastavro fails with whatever its Python code meets
        if isinstance(error, OSError) and error.errno is not None:
            raise
        if type(error).__name__ == "SchemaResolutionError":
            raise FileColumnTypeError.from_reader_schema(uri, reason=_reason(error)) from error
        raise FileUnreadableError.from_file(uri, reason=_reason(error)) from error


def _reason(error: Exception) -> str:
    text = str(error).strip().rstrip(".")
    match error:
        case OverflowError():
            # Python's dates and times end there, and with them fastavro's.
            return f"it has a date or time outside of the years 1 to 9999 ({text})"
        case UnsupportedAvroError():
            return text
        case EOFError() | StopIteration():
            return text or "it ends too early"
        case KeyError():
            return f"its schema names a type that it does not have: {text}"
    return f"it is damaged, or no Avro file ({text or 'its structure can not be followed'})"


class _Bounded:
    """A file that never gives more than it has: damaged lengths ask for any amount."""

    def __init__(self, content: IO[bytes], size_bytes: int) -> None:
        self._content = content
        self._size_bytes = size_bytes
        self.seek = content.seek
        self.tell = content.tell

    def read(self, size: int = -1) -> bytes:
        if size > min(self._size_bytes - self.tell(), _MAX_BLOCK_BYTES):
            raise EOFError("the file ends within a block")
        return self._content.read(size)


def _write(file: LocalFile, target: Path, asked: Any, *, with_records: bool) -> None:
    """Write the records of an Avro file as Parquet.

    Raises:
        FileUnreadableError: It is none, it is damaged, or it has what no table can hold.
    """
    import pyarrow.parquet as pq

    fastavro = _fastavro()
    with file.path.open("rb") as content, _readable(file.uri):
        bounded = _Bounded(content, file.path.stat().st_size)
        blocks = fastavro.block_reader(bounded, reader_schema=asked)
        schema = asked if asked is not None else fastavro.parse_schema(blocks.writer_schema)
        kind = record_type(schema)
        columns = _columns(kind)
        with pq.ParquetWriter(target, columns, compression="snappy") as writer:
            if with_records:
                for rows in _groups(blocks):
                    writer.write_table(_table(rows, kind, columns))


def _columns(kind: AvroType) -> pa.Schema:
    import pyarrow as pa

    if not pa.types.is_struct(kind.arrow):
        # As Spark names the one column of files whose values are no records.
        return pa.schema([pa.field("value", kind.arrow)])
    return pa.schema(list(kind.arrow))


def _groups(blocks: Any) -> Iterator[list[Any]]:
    rows: list[Any] = []
    size_bytes = 0
    for block in blocks:
        rows.extend(block)
        size_bytes += block.size
        if size_bytes >= _GROUP_BYTES or len(rows) >= _GROUP_ROWS:
            yield rows
            rows, size_bytes = [], 0
    if rows:
        yield rows


def _table(rows: list[Any], kind: AvroType, columns: pa.Schema) -> pa.Table:
    import pyarrow as pa

    if kind.convert is not None:
        rows = [kind.convert(row) for row in rows]
    values = pa.array(rows, kind.arrow)
    arrays = values.flatten() if pa.types.is_struct(kind.arrow) else [values]
    return pa.Table.from_arrays(arrays, schema=columns)
