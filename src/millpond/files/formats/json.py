"""JSON files: a record a line, or one value or array of records in several lines.

Every batch of files is looked through once before it is read: for keys without a column, and for
values that do not fit. Columns whose values all fit are then read by DuckDB without a check.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from millpond.files.formats.base import LocalFile, Selection
from millpond.files.formats.casts import cast_sql
from millpond.files.formats.json_found import TIMESTAMP, inferred_schema, texts_within
from millpond.files.formats.json_numbers import note_numbers, note_words
from millpond.files.formats.json_options import JsonOptions, json_options
from millpond.files.formats.json_records import Records, find_records
from millpond.files.formats.json_select import JsonSelect
from millpond.files.formats.json_values import pointer
from millpond.files.formats.merged_types import merge_structs
from millpond.files.options import Dialect, EvolutionMode, ParseMode

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from millpond.files.options import FileOptions


# Of so many texts it is looked at whether they are times; others stay texts.
MAX_TEXTS = 200
STOPPING = frozenset({EvolutionMode.ADD_NEW_COLUMNS, EvolutionMode.FAIL_ON_NEW_COLUMNS})


class JsonFormat:
    """JSON, by DuckDB's reader; records that it does not take are written anew for it."""

    def infer(
        self,
        files: Sequence[LocalFile],
        options: FileOptions,
        *,
        connection: DuckDBPyConnection,
        folder: Path,
    ) -> StructType:
        """The keys of all records, in order of their names.

        Raises:
            TooManyKeysError: There are more than a table could have columns.
        """
        given = json_options(options.format_options)
        records = find_records(files, given, options.mode, connection=connection, folder=folder)
        if given.infer_timestamp and options.infer_types:
            _find_timestamps(records, given, connection)
        if options.infer_types and not given.primitives_as_string:
            note_numbers(records, given, connection)
            note_words(records, connection)
        schema = inferred_schema(records.found, given, types=options.infer_types)
        if _wants_corrupt_column(records, options) and given.corrupt_column not in schema.names:
            schema = StructType([StructField(given.corrupt_column, StringType()), *schema.fields])
        return schema

    def select(
        self,
        files: Sequence[LocalFile],
        options: FileOptions,
        columns: StructType,
        *,
        connection: DuckDBPyConnection,
        folder: Path,
    ) -> Selection:
        """Keys match columns in the same case; those in another one are rescued.

        Without a rescued column, keys match in any case.
        """
        given = json_options(options.format_options)
        records = find_records(
            files,
            given,
            options.mode,
            connection=connection,
            folder=folder,
            keeps_text=given.corrupt_column in columns.names or options.mode is ParseMode.FAIL_FAST,
        )
        select = JsonSelect(records, columns, given, options, connection)
        return Selection(select.sql(), _new_columns(records, columns, given, options, connection))


def _find_timestamps(records: Records, given: JsonOptions, connection: DuckDBPyConnection) -> None:
    """Note which texts are times, all of them."""
    places = list(texts_within(records.found))[:MAX_TEXTS]
    if not places:
        return
    value = cast_sql("__text", TimestampType(), formats=given.formats)
    checks = ", ".join(
        f"bool_and(list_transform([json_extract_string(json, {pointer(*path)})], "
        f"lambda __text: __text IS NULL OR ({value}) IS NOT NULL)[1])"
        for path, _ in places
    )
    found = connection.execute(f"SELECT {checks} FROM ({records.sql()})").fetchall()[0]
    for (_, inner), are_times in zip(places, found, strict=True):
        if are_times:
            inner.kinds = {TIMESTAMP}


def _wants_corrupt_column(records: Records, options: FileOptions) -> bool:
    """Whether a column is inferred for records that can't be read, as Spark does."""
    return (
        records.has_corrupt
        and options.rescued_column is None
        and options.dialect is Dialect.SPARK
        and options.mode is ParseMode.PERMISSIVE
    )


def _new_columns(
    records: Records,
    columns: StructType,
    given: JsonOptions,
    options: FileOptions,
    connection: DuckDBPyConnection,
) -> StructType:
    if records.found.has_more and options.evolution not in STOPPING:
        return StructType([])
    new = _beyond(records, columns, given, options)
    if new.fields and options.infer_types and options.evolution in STOPPING:
        note_numbers(records, given, connection)
        note_words(records, connection)
        new = _beyond(records, columns, given, options)
    return new


def _beyond(
    records: Records, columns: StructType, given: JsonOptions, options: FileOptions
) -> StructType:
    """The columns that are found beyond some, or with more fields."""
    inferred = inferred_schema(records.found, given, types=options.infer_types)
    merged = merge_structs(columns, inferred, keep_types=True)
    known = {field.name: field.dataType for field in columns.fields}
    return StructType([f for f in merged.fields if known.get(f.name) != f.dataType])
