"""The rows of some data files of a Delta table, as Parquet that an engine reads without Delta.

Files that already hold just the table's rows are read where they lie. Others (with deleted rows,
partition values, mapped or widened columns, a writer's own types) are written anew for the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.delta import (
    AddFile,
    Snapshot,
    connect,
    damage_told,
    data_file_bytes,
    literal,
    live_rows_sql,
)
from millpond.engine.protocol import EmptyInput, Input, ParquetInput
from millpond.errors.delta import DataFileUnreadableError
from millpond.errors.streaming import StreamSourceFileUnreadableError
from millpond.storage import Store
from millpond.streaming.plain_files import is_plain

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def rows_input(
    snapshot: Snapshot,
    versions: Sequence[Sequence[AddFile]],
    *,
    folder: Path,
    store: Store,
) -> Input:
    """The live rows of the files, with the columns of `snapshot`.

    Args:
        versions: The files by the version they come from. The same file may come again in another
            version, with other rows deleted.
        folder: Where files are written, if any must be. It need not exist.
        store: For reading deletion vectors.

    Raises:
        DataFileMissingError: A file is gone.
        DataFileUnreadableError: Something is there that is no file.
        StreamSourceFileUnreadableError: A file is damaged, or does not fit the columns.
    """
    schema = _nullable(snapshot.metadata.schema)
    in_place: list[str] = []
    to_write: list[list[AddFile]] = []
    for files in versions:
        others: list[AddFile] = []
        for file in files:
            path = snapshot.file_path(file)
            data_file_bytes(snapshot, path)
            if is_plain(snapshot, file):
                in_place.append(str(path))
            else:
                others.append(file)
        if others:
            to_write.append(others)
    written = [
        _write(snapshot, group, folder=folder, number=number, store=store)
        for number, group in enumerate(_without_repeats(to_write))
    ]
    if not in_place and not written:
        return EmptyInput(schema)
    return ParquetInput((*in_place, *written), schema)


def _without_repeats(versions: Sequence[Sequence[AddFile]]) -> Iterator[list[AddFile]]:
    """Join groups as long as no file is in one twice: each has one deletion vector in a query."""
    group: list[AddFile] = []
    seen: set[str] = set()
    for files in versions:
        paths = {file.path for file in files}
        if paths & seen:
            yield group
            group, seen = [], set()
        group.extend(files)
        seen |= paths
    if group:
        yield group


def _write(
    snapshot: Snapshot, files: list[AddFile], *, folder: Path, number: int, store: Store
) -> str:
    import duckdb

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rows-{number}.parquet"
    with connect(temporary_folder=folder / "spill") as connection:
        try:
            with damage_told(snapshot.path):
                rows = live_rows_sql(connection, snapshot, files, store=store)
                connection.execute(f"COPY ({rows}) TO {literal(str(path))} (FORMAT parquet)")
        except (DataFileUnreadableError, duckdb.ConversionException) as error:
            told = error.__cause__ or error
            reason = str(told).splitlines()[0].rstrip(".")
            raise StreamSourceFileUnreadableError.from_rows(snapshot.path, reason=reason) from error
    return str(path)


def _nullable(schema: StructType) -> StructType:
    """As Spark has it for files: nothing holds anyone to a declared `NOT NULL` of a file."""
    return schema.toNullable()
