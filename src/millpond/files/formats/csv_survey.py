"""Looks at CSV files before they are read: their columns, and whether DuckDB may read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from millpond.files.formats.base import LocalFile
from millpond.files.formats.csv_options import CsvOptions
from millpond.files.formats.csv_records import Record, records

_CHUNK_BYTES = 4 * 1024 * 1024
# DuckDB takes separators of so many bytes at most.
_MAX_SEPARATOR_BYTES = 4
_OVERLAP_BYTES = 16
_LONG_LINE_BYTES = 512 * 1024


@dataclass(frozen=True)
class CsvFile:
    """A file and what its beginning says.

    Attributes:
        index: Its place among the files of a read.
        names: The columns of its header, made different from each other; or `None`.
        width: How many values its first row has.
        skip: Lines up to the end of the header, if DuckDB can leave out so many.
        is_regular: Whether DuckDB's reader may be tried on it.
        has_quotes: Whether a quote is anywhere in it.
    """

    index: int
    content: LocalFile
    names: tuple[str, ...] | None
    width: int
    skip: int
    is_regular: bool
    has_quotes: bool


def unnamed(position: int) -> str:
    """What Spark calls a column without a name."""
    return f"_c{position}"


def survey(
    files: Sequence[LocalFile], options: CsvOptions, *, counts_values: bool = False
) -> list[CsvFile]:
    """What the beginnings of files say; files without any row are left out.

    Args:
        counts_values: Whether a row with an empty value too many differs from one without.
    """
    found = []
    for index, file in enumerate(files):
        first = next(records(file, options), None)
        if first is not None:
            found.append(_surveyed(index, file, first, options, counts_values=counts_values))
    return found


def _surveyed(
    index: int, file: LocalFile, first: Record, options: CsvOptions, *, counts_values: bool
) -> CsvFile:
    has_quotes, is_regular = _facts(file.path, options, counts_values=counts_values)
    return CsvFile(
        index=index,
        content=file,
        names=unique_names(first.values, options) if options.header else None,
        width=len(first.values),
        skip=first.last_line if options.header else options.skip_rows,
        # A single column has blank lines that DuckDB takes for rows.
        is_regular=is_regular and len(first.values) > 1 and first.line == first.last_line,
        has_quotes=has_quotes,
    )


def unique_names(values: Sequence[str | None], options: CsvOptions) -> tuple[str, ...]:
    """The names of a header as Spark makes them different: by their position."""
    keys = [None if value is None else value.lower() for value in values]
    count: dict[str | None, int] = {}
    for key in keys:
        count[key] = count.get(key, 0) + 1
    names = []
    for position, (value, key) in enumerate(zip(values, keys, strict=True)):
        if not value or value == options.null_value:
            names.append(unnamed(position))
        elif count[key] > 1:
            names.append(f"{value}{position}")
        else:
            names.append(value)
    return tuple(names)


def _facts(path: Path, options: CsvOptions, *, counts_values: bool) -> tuple[bool, bool]:
    """Whether a file has quotes, and whether DuckDB may be tried on it."""
    if not _may_be_regular(options):
        return True, False
    separator = options.separator.encode()
    quote, escape = options.quote.encode(), options.escape.encode()
    is_escaped = bool(escape) and escape != quote
    spaced_quote = re.compile(rb"(?:\A|[\r\n]|" + re.escape(separator) + rb")[ \t]+" + quote)
    # DuckDB takes no notice of a separator at the end of a line whose values are all there.
    open_end = re.compile(re.escape(separator) + rb"(?:\r?\n|\Z)")
    has_quotes = False
    is_regular = True
    with path.open("rb") as stream:
        before = b""
        while is_regular and (chunk := stream.read(_CHUNK_BYTES)):
            part = before + chunk
            has_quotes = has_quotes or (bool(quote) and quote in chunk)
            is_regular = not (
                _has_carriage_returns(part)
                or _has_long_line(part)
                or (counts_values and open_end.search(part))
                or (has_quotes and is_escaped and escape in part)
                or (has_quotes and spaced_quote.search(part))
            )
            before = chunk[-_OVERLAP_BYTES:]
    return has_quotes, is_regular and not before.endswith(b"\r")


def _may_be_regular(options: CsvOptions) -> bool:
    """Whether DuckDB has all that the options ask for."""
    separator = options.separator.encode()
    return (
        len(separator) <= _MAX_SEPARATOR_BYTES
        and not (len(separator) > 1 and options.quote)
        and not options.comment
        and options.line_separator in {None, "\n"}
        and options.max_characters is None
        and all(len(character.encode()) <= 1 for character in (options.quote, options.escape))
    )


def _has_carriage_returns(part: bytes) -> bool:
    """Whether some stand alone, other than at the end of what is known so far."""
    if b"\r" not in part:
        return False
    return part.count(b"\r") - part.endswith(b"\r") != part.count(b"\r\n")


def _has_long_line(part: bytes) -> bool:
    """Whether a line may be longer than DuckDB reads, which would drop it without a word."""
    return any(
        part.find(b"\n", begin, begin + _LONG_LINE_BYTES) < 0
        for begin in range(0, len(part) - _LONG_LINE_BYTES, _LONG_LINE_BYTES)
    )
