"""CSV files, with the options and the meaning of Spark's reader."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.delta.schema import duckdb_type, quote
from millpond.errors.file_formats import (
    HeaderMismatchError,
    MalformedRowError,
    UnsupportedColumnTypeError,
)
from millpond.errors.file_reads import TooManyColumnsError
from millpond.files.columns import MAX_INFERRED
from millpond.files.cut_files import cut_header
from millpond.files.formats.base import FILE_INDEX, RESCUED, LocalFile, Selection, irregular
from millpond.files.formats.csv_columns import TypedTable, Wanted, asked_positions
from millpond.files.formats.csv_inference import column_names, column_types
from millpond.files.formats.csv_options import CsvOptions, csv_options
from millpond.files.formats.csv_records import first_lines
from millpond.files.formats.csv_survey import CsvFile, survey
from millpond.files.formats.csv_tables import CsvTable, tables
from millpond.files.formats.csv_tokens import line_end
from millpond.files.options import EvolutionMode, FileOptions, ParseMode

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql.types import DataType, StructType

# Inference looks at so many files, at all rows where these are so small, and else at so many rows
# of them together, but so many of each at least.
_SAMPLE_FILES = 1000
_SAMPLE_BYTES = 32 * 1024 * 1024
_SAMPLE_ROWS = 100_000
_SAMPLE_ROWS_OF_A_FILE = 1000
# A larger file has more than a header.
_MAX_HEADER_BYTES = 64 * 1024
# So many columns can be asked for: DuckDB needs memory for each, however few rows there are.
MAX_ASKED = 3000
_STOPPING = frozenset({EvolutionMode.ADD_NEW_COLUMNS, EvolutionMode.FAIL_ON_NEW_COLUMNS})


class CsvFormat:
    """Reads CSV files."""

    def infer(
        self,
        files: Sequence[LocalFile],
        options: FileOptions,
        *,
        connection: DuckDBPyConnection,
        folder: Path,
    ) -> StructType:
        """The columns of some files together; see `Format.infer`."""
        from pyspark.sql.types import StringType, StructField, StructType

        csv = csv_options(options)
        sample = survey(_sample(files, csv, folder=folder), csv)
        # The end of a header that was cut off would be the name of a column for good.
        sample = [file for file in sample if not _may_be_cut(file.content, csv)] or sample
        for file in sample:
            if file.width > MAX_INFERRED:
                raise TooManyColumnsError.from_files(
                    [file.content.uri], file.width, limit=MAX_INFERRED
                )
        found = list(tables(sample, csv, connection=connection, folder=folder))
        names = column_names(found, csv)
        kinds: dict[str, DataType] = {}
        if options.infer_types:
            kinds = column_types(found, names, csv, connection=connection)
        return StructType([StructField(name, kinds.get(name, StringType())) for name in names])

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
        csv = csv_options(options)
        wanted = Wanted(columns, options.rescued_column is not None, options.mode, csv)
        _check_types(wanted)
        names_lines = options.mode is ParseMode.FAIL_FAST or wanted.has_corrupt_record
        exact = names_lines or options.mode is ParseMode.DROP_MALFORMED
        surveyed = survey(files, csv, counts_values=exact)
        # Columns that are looked at closely are not set aside.
        sets_aside = wanted.rescues and options.evolution not in _STOPPING
        if csv.checks_header:
            _check_headers(surveyed, wanted)
        if csv.by_position:
            # What a file begins with says nothing of how many values the rows below have.
            width = len(wanted.data)
            surveyed = [
                replace(
                    file,
                    names=None,
                    is_regular=file.is_regular and (file.width == width or not exact),
                )
                for file in surveyed
            ]
        read = partial(
            tables,
            options=csv,
            connection=connection,
            folder=folder,
            least_width=len(wanted.data),
            keeps_text=wanted.has_corrupt_record,
            asked=partial(asked_positions, wanted=wanted) if sets_aside else None,
        )
        selected = partial(_selected, files, options, wanted, connection=connection)
        if names_lines:
            found = list(_detailed(read(surveyed), wanted, connection, read))
            if options.mode is ParseMode.FAIL_FAST:
                _fail_fast(found, files, wanted, connection)
            return selected(found)
        untried = list(read(surveyed, is_tried=False))

        def tried() -> Selection:
            """The same where DuckDB fails at some of the files."""
            return selected(
                [
                    table
                    for one in untried
                    for table in ([one] if one.is_detailed else read(one.files))
                ]
            )

        try:
            return replace(selected(untried), otherwise=tried)
        except irregular():
            return tried()


def _selected(
    files: Sequence[LocalFile],
    options: FileOptions,
    wanted: Wanted,
    found: Sequence[CsvTable],
    *,
    connection: DuckDBPyConnection,
) -> Selection:
    """The rows of some tables together."""
    typed = [TypedTable(table, wanted) for table in found]
    index = [FILE_INDEX] if len(files) > 1 else []
    names = [quote(field.name) for field in wanted.columns.fields]
    rows = " UNION ALL ".join(table.sql() for table in typed) or _no_rows(wanted.columns)
    return Selection(
        sql=f"SELECT {', '.join([*names, *index, RESCUED])} FROM ({rows})",
        new_columns=_new_columns(typed, found, options, wanted.options, connection=connection),
    )


def _detailed(
    found: Iterable[CsvTable],
    wanted: Wanted,
    connection: DuckDBPyConnection,
    read: Callable[..., Iterator[CsvTable]],
) -> Iterator[CsvTable]:
    """Some tables, those with malformed rows in detail."""
    for table in found:
        if not table.is_detailed and _malformed(table, wanted, connection):
            yield from read(table.files, is_detailed=True)
        else:
            yield table


def _sample(
    files: Sequence[LocalFile], options: CsvOptions, *, folder: Path
) -> Sequence[LocalFile]:
    """Some of the files; of large ones their first rows, as files of their own."""
    sampled = files[:_SAMPLE_FILES]
    if sum(file.path.stat().st_size for file in sampled) <= _SAMPLE_BYTES:
        return sampled
    rows = max(_SAMPLE_ROWS_OF_A_FILE, _SAMPLE_ROWS // len(sampled))
    return [_head(file, rows, options, folder=folder) for file in sampled]


def _may_be_cut(file: LocalFile, options: CsvOptions) -> bool:
    is_small = file.path.stat().st_size <= _MAX_HEADER_BYTES
    return options.header and is_small and cut_header(file, options) is not None


def _head(file: LocalFile, rows: int, options: CsvOptions, *, folder: Path) -> LocalFile:
    path = folder / f"head-{uuid.uuid4().hex}"
    end = line_end(options)
    with path.open("w", encoding="utf-8", newline="") as head:
        head.writelines(line + end for line in first_lines(file, 1 + rows, options))
    return replace(file, path=path)


def _check_types(wanted: Wanted) -> None:
    if len(wanted.data) > MAX_ASKED:
        raise TooManyColumnsError.from_asked(len(wanted.data), limit=MAX_ASKED)
    for field in wanted.columns.fields:
        duckdb_type(field.dataType, column=field.name)
        if field.dataType.typeName() in {"array", "map", "struct"}:
            raise UnsupportedColumnTypeError.from_column(
                field.name, field.dataType.simpleString(), file_format="csv"
            )


def _check_headers(files: Sequence[CsvFile], wanted: Wanted) -> None:
    expected = [field.name for field in wanted.data]
    fold = str if wanted.options.case_sensitive else str.lower
    for file in files:
        names = file.names or ()
        if list(map(fold, names)) != list(map(fold, expected)):
            raise HeaderMismatchError.from_names(file.content.uri, found=names, expected=expected)


def _malformed(
    table: CsvTable, wanted: Wanted, connection: DuckDBPyConnection
) -> tuple[int, int, str] | None:
    """The first malformed row of a table: its file, its line and what is wrong with it."""
    rows = TypedTable(table, wanted).malformed_sql()
    found = connection.execute(f"{rows} ORDER BY ALL LIMIT 1").fetchall()
    return found[0] if found else None


def _fail_fast(
    found: Sequence[CsvTable],
    files: Sequence[LocalFile],
    wanted: Wanted,
    connection: DuckDBPyConnection,
) -> None:
    for table in found:
        malformed = _malformed(table, wanted, connection) if table.is_detailed else None
        if malformed is not None:
            index, line, reason = malformed
            raise MalformedRowError.from_line(files[index].uri, line, reason=reason)


def _no_rows(columns: StructType) -> str:
    values = [
        f"NULL::{duckdb_type(field.dataType, column=field.name)} AS {quote(field.name)}"
        for field in columns.fields
    ]
    values += [f"NULL::BIGINT AS {FILE_INDEX}", f"NULL::VARCHAR AS {RESCUED}"]
    return f"SELECT {', '.join(values)} WHERE false"


def _new_columns(
    typed: Sequence[TypedTable],
    found: Sequence[CsvTable],
    options: FileOptions,
    csv: CsvOptions,
    *,
    connection: DuckDBPyConnection,
) -> StructType:
    """The columns that tables have beside the asked ones; their types where they are added."""
    from pyspark.sql.types import StringType, StructField, StructType

    names: dict[str, str] = {}
    for table, columns in zip(found, typed, strict=True):
        for position in columns.unasked:
            name = table.column_name(position)
            names.setdefault(name if csv.case_sensitive else name.lower(), name)
    kinds = {}
    if names and options.infer_types and options.evolution is EvolutionMode.ADD_NEW_COLUMNS:
        kinds = column_types(found, list(names.values()), csv, connection=connection)
    return StructType([StructField(name, kinds.get(name, StringType())) for name in names.values()])
