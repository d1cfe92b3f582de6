"""Gives the texts of CSV files as rows of DuckDB.

DuckDB reads a file itself where its reader agrees with Spark's parser on it; others are taken apart
here and written to Parquet first.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millpond.delta.schema import literal
from millpond.files.formats.base import FILE_INDEX, irregular
from millpond.files.formats.csv_options import CsvOptions
from millpond.files.formats.csv_records import records
from millpond.files.formats.csv_survey import CsvFile, unnamed
from millpond.files.formats.csv_tokens import SPACES
from millpond.files.formats.file_sql import file_index_sql, paths_sql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_FLUSH_ROWS = 20_000
# Each thread needs memory for all columns: files with more are read by one.
_WIDE = 500
# Of more columns than these that are only kept aside, DuckDB needs too much memory.
_SET_ASIDE = 600
_FLUSH_CHARACTERS = 8 * 1024 * 1024

# Columns beside the values, of tables that were taken apart here.
EXTRA = "extra"
WIDTH = "width"
LINE = "line"
RAW = "raw"


# Of the names of a header, if there is one, and the number of columns.
Asked = Callable[[tuple[str, ...] | None, int], frozenset[int]]


@dataclass(frozen=True)
class CsvTable:
    """The texts of files that have the same columns.

    Attributes:
        sql: A SELECT of `c0` and so on, VARCHAR, and `FILE_INDEX`. A text is NULL where it means
            that. If `is_detailed`, also `EXTRA`: the values beyond, the inside of a JSON object;
            `WIDTH`: how many values there are in all; `LINE`; and `RAW`, the text of the row.
            Else it is DuckDB that reads the files, and if it can't, or takes rows for others than
            Spark does, the query fails with `duckdb.InvalidInputException`.
        width: How many such columns there are.
        names: The columns of the header, or `None`.
        files: Those that it is of.
        kept: The positions that have a column, or `None` for all. What stands at others is in
            `EXTRA`.
    """

    sql: str
    width: int
    names: tuple[str, ...] | None
    is_detailed: bool
    files: tuple[CsvFile, ...]
    kept: frozenset[int] | None = None

    def column_name(self, position: int) -> str:
        return self.names[position] if self.names is not None else unnamed(position)


def tables(
    files: Sequence[CsvFile],
    options: CsvOptions,
    *,
    connection: DuckDBPyConnection,
    folder: Path,
    least_width: int = 0,
    is_detailed: bool = False,
    is_tried: bool = True,
    keeps_text: bool = False,
    asked: Asked | None = None,
) -> Iterator[CsvTable]:
    """The texts of files, those with the same columns together.

    Args:
        least_width: So many columns there are at least where files do not name them.
        is_detailed: Whether all tables must be.
        is_tried: Whether files that DuckDB can't read are found before, which takes one more read
            of all; else the query of a table may fail.
        keeps_text: Whether detailed tables have `RAW`; else it is NULL.
        asked: Tells the positions that are asked for. Where very many others are there, these need
            no columns.
    """
    groups: dict[tuple[object, ...], list[CsvFile]] = {}
    for file in files:
        key = (file.names or file.width, file.skip, file.is_regular and not is_detailed)
        groups.setdefault((*key, file.has_quotes), []).append(file)
    for group in groups.values():
        regular: list[CsvFile] = []
        irregular = group
        kept = _kept(group[0], asked, least_width)
        if group[0].is_regular and not is_detailed and kept is None:
            regular, irregular = group, []
            if is_tried:
                regular, irregular = _tried(group, options, connection)
        if regular:
            yield _read_by_duckdb(regular, options)
        if irregular:
            yield _taken_apart(
                irregular,
                options,
                folder=folder,
                least_width=least_width,
                keeps_text=keeps_text,
                kept=kept,
            )


def _width(file: CsvFile, least_width: int) -> int:
    return max(file.width, least_width if file.names is None else 0)


def _kept(file: CsvFile, asked: Asked | None, least_width: int) -> frozenset[int] | None:
    """The positions that need columns; `None` for all."""
    if asked is None:
        return None
    width = _width(file, least_width)
    positions = asked(file.names, width)
    return positions if width - len(positions) > _SET_ASIDE else None


def _tried(
    files: list[CsvFile],
    options: CsvOptions,
    connection: DuckDBPyConnection,
) -> tuple[list[CsvFile], list[CsvFile]]:
    """Which files DuckDB can read, and which it can't."""
    if _is_readable(files, options, connection):
        return files, []
    if len(files) == 1:
        return [], files
    half = len(files) // 2
    first = _tried(files[:half], options, connection)
    second = _tried(files[half:], options, connection)
    return first[0] + second[0], first[1] + second[1]


def _is_readable(
    files: list[CsvFile],
    options: CsvOptions,
    connection: DuckDBPyConnection,
) -> bool:
    """Whether DuckDB reads all rows, and as Spark does."""
    table = _read_by_duckdb(files, options)
    counts = ", ".join(f"count(c{position})" for position in range(table.width))
    try:
        connection.execute(f"SELECT {counts} FROM ({table.sql})").fetchall()
    except irregular():
        return False
    return True


def _read_by_duckdb(files: Sequence[CsvFile], options: CsvOptions) -> CsvTable:
    first = files[0]
    columns = ", ".join(f"'c{position}': 'VARCHAR'" for position in range(first.width))
    paths = paths_sql(file.content.path for file in files)
    # Without quotes in the files DuckDB need not look for them.
    quote = options.quote if first.has_quotes else ""
    escape = options.escape if first.has_quotes else ""
    # Where nothing but the empty text is NULL, DuckDB sees to that itself.
    is_plain = not (options.null_value or options.empty_value)
    names = ", ".join(
        _shown(text, position, options, is_plain=is_plain)
        for position, text in enumerate(_texts(options, first.width, trims=not first.has_quotes))
    )
    rows = f" WHERE {_one_line(first.width, options)}" if first.has_quotes else ""
    index = file_index_sql([file.index for file in files])
    sql = (
        f"SELECT {names}, {index} AS {FILE_INDEX} FROM read_csv({paths}, "
        f"auto_detect = false, columns = {{{columns}}}, header = false, skip = {first.skip}, "
        f"delim = {literal(options.separator)}, quote = {literal(quote)}, "
        f"escape = {literal(escape)}, strict_mode = true, nullstr = '', "
        f"allow_quoted_nulls = {is_plain}, compression = 'none', hive_partitioning = false, "
        f"parallel = {first.width <= _WIDE})"
        f"{rows}"
    )
    return CsvTable(sql, first.width, first.names, is_detailed=False, files=tuple(files))


def _texts(options: CsvOptions, width: int, *, trims: bool) -> Iterator[str]:
    spaces = literal(SPACES.replace("\0", ""))
    for position in range(width):
        text = f"c{position}"
        if trims and options.trims_left:
            text = f"ltrim({text}, {spaces})"
        if trims and options.trims_right:
            text = f"rtrim({text}, {spaces})"
        yield text if text == f"c{position}" else f"nullif({text}, '')"


def _shown(text: str, position: int, options: CsvOptions, *, is_plain: bool = False) -> str:
    """What the text of a column means, NULL, or the empty value, or itself, by its name."""
    column = f"c{position}"
    if not is_plain:
        if options.empty_value:
            text = f"CASE WHEN {text} = '' THEN {literal(options.empty_value)} ELSE {text} END"
        text = f"nullif({text}, {literal(options.null_value)})"
    return text if text == column else f"{text} AS {column}"


def _one_line(width: int, options: CsvOptions) -> str:
    """A condition that holds for all rows, or fails: a line is a row, if that was asked for."""
    ends = ["chr(13)"] if options.multi_line else ["chr(10)", "chr(13)"]
    goes_on = " OR ".join(
        f"contains(c{position}, {end})" for position in range(width) for end in ends
    )
    return f"CASE WHEN {goes_on} THEN error('a row goes on in the next line') ELSE true END"


def _taken_apart(
    files: Sequence[CsvFile],
    options: CsvOptions,
    *,
    folder: Path,
    least_width: int,
    keeps_text: bool,
    kept: frozenset[int] | None,
) -> CsvTable:
    """The texts of files, taken apart here."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = files[0].names
    width = _width(files[0], least_width)
    positions = range(width) if kept is None else sorted(kept)
    text = pa.string()
    schema = pa.schema(
        [
            *((f"c{position}", text) for position in positions),
            (FILE_INDEX, pa.int64()),
            (WIDTH, pa.int64()),
            (LINE, pa.int64()),
            (EXTRA, text),
            (RAW, text),
        ]
    )
    path = folder / f"rows-{uuid.uuid4().hex}.parquet"
    with pq.ParquetWriter(path, schema, compression="snappy") as writer:
        for rows in _chunks(files, options, _Layout(names, width, kept, options)):
            if not keeps_text:
                rows[-1] = (None,) * len(rows[-1])
            arrays = [
                pa.array(column, kind) for column, kind in zip(rows, schema.types, strict=True)
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
    shown = [_shown(f"c{position}", position, options) for position in positions]
    sql = (
        f"SELECT {', '.join([*shown, FILE_INDEX, WIDTH, LINE, EXTRA, RAW])} "
        f"FROM read_parquet({paths_sql([path])}, hive_partitioning = false)"
    )
    return CsvTable(sql, width, names, is_detailed=True, files=tuple(files), kept=kept)


class _Layout:
    """Which values of a row get columns, and how the others are kept."""

    def __init__(
        self,
        names: tuple[str, ...] | None,
        width: int,
        kept: frozenset[int] | None,
        options: CsvOptions,
    ) -> None:
        self._names = names or ()
        self._width = width
        self._kept = kept
        self._positions = [] if kept is None else sorted(kept)
        self._options = options

    def columns(self, values: list[str | None]) -> list[str | None]:
        if self._kept is None:
            return _padded(values, self._width)
        padded = _padded(values, self._width)
        return [padded[position] for position in self._positions]

    def others(self, values: list[str | None]) -> str | None:
        """The values without columns, as the inside of a JSON object."""
        if self._kept is None:
            return _beyond(values, self._width)
        members = [
            self._member(position, text)
            for position, value in enumerate(values)
            if position not in self._kept and (text := self._meant(value)) is not None
        ]
        return ",".join(members) or None

    def _meant(self, value: str | None) -> str | None:
        """What a text means; see `_shown`."""
        text = (self._options.empty_value or value) if value == "" else value
        return None if text == self._options.null_value else text

    def _member(self, position: int, text: str) -> str:
        name = self._names[position] if position < len(self._names) else unnamed(position)
        return f"{_json(name)}:{_json(text)}"


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _chunks(
    files: Sequence[CsvFile], options: CsvOptions, layout: _Layout
) -> Iterator[list[Sequence[Any]]]:
    """The rows of files in parts, column by column."""
    values: list[list[str | None]] = []
    beside: list[tuple[Any, ...]] = []
    characters = 0
    for file in files:
        rows = records(file.content, options)
        if options.header:
            next(rows, None)
        for record in rows:
            values.append(layout.columns(record.values))
            beside.append(
                (
                    file.index,
                    len(record.values),
                    record.line,
                    layout.others(record.values),
                    record.text,
                )
            )
            characters += len(record.text)
            if len(values) >= _FLUSH_ROWS or characters >= _FLUSH_CHARACTERS:
                yield _by_column(values, beside)
                values, beside, characters = [], [], 0
    if values:
        yield _by_column(values, beside)


def _by_column(
    values: Sequence[Sequence[str | None]], beside: Sequence[tuple[Any, ...]]
) -> list[Sequence[Any]]:
    return [*zip(*values, strict=True), *zip(*beside, strict=True)]


def _padded(values: list[str | None], width: int) -> list[str | None]:
    missing = width - len(values)
    if missing > 0:
        return values + [None] * missing
    return values[:width] if missing else values


def _beyond(values: list[str | None], width: int) -> str | None:
    """The values that a row has too many, as the inside of a JSON object."""
    if len(values) <= width:
        return None
    kept = [
        f"{_json(unnamed(position))}:{_json(value)}"
        for position, value in enumerate(values[width:], start=width)
        if value is not None
    ]
    return ",".join(kept) or None
