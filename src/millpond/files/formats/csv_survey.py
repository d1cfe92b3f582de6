"""Looks at CSV files before they are read: their columns, and whether DuckDB may read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from millpond.files.formats.base import LocalFile
from millpond.files.formats.csv_options import CsvOptions
from millpond.files.formats.csv_records import Record, first_lines, records

_CHUNK_BYTES = 1024 * 1024
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
    """What files say that are looked at, but not read; those without any row are left out.

    Args:
        counts_values: Whether a row with an empty value too many differs from one without.
    """
    scan = _Scan(options, counts_values=counts_values) if _may_be_regular(options) else None
    found = []
    for index, file in enumerate(files):
        first = next(records(file, options), None)
        if first is not None:
            found.append(_surveyed(index, file, first, options, scan))
    return found


def _surveyed(
    index: int, file: LocalFile, first: Record, options: CsvOptions, scan: _Scan | None
) -> CsvFile:
    has_quotes, is_regular = scan.facts(file.path) if scan is not None else (True, False)
    return CsvFile(
        index=index,
        content=file,
        names=unique_names(first.values, options) if options.header else None,
        width=len(first.values),
        skip=first.last_line if options.header else options.skip_rows,
        # A single column has blank lines that DuckDB takes for rows.
        is_regular=is_regular
        and len(first.values) > 1
        and first.line == first.last_line
        and (not has_quotes or _may_skip(file, options)),
        has_quotes=has_quotes,
    )


def _may_skip(file: LocalFile, options: CsvOptions) -> bool:
    """Whether DuckDB leaves out just the lines before the rows: it minds quotes in them, too."""
    quote, separator = re.escape(options.quote), re.escape(options.separator)
    value = rf"(?:{quote}[^{quote}]*{quote}|(?:(?!{separator})[^{quote}])*)"
    *before, line = first_lines(file, 1, options)
    if any(options.quote in each for each in before):
        return False
    return not options.header or re.fullmatch(rf"{value}(?:{separator}{value})*", line) is not None


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


class _Scan:
    """Looks through files for what DuckDB reads otherwise than Spark.

    All go through the same memory: new memory for each part takes longer than to look at it.
    """

    def __init__(self, options: CsvOptions, *, counts_values: bool) -> None:
        separator = re.escape(options.separator.encode())
        self._multi_line = options.multi_line
        self._quote = options.quote.encode()
        self._escape = b"" if options.escape == options.quote else options.escape.encode()
        # DuckDB takes no notice of a separator at the end of a line whose values are all there, nor
        # of two quotes behind it.
        empty = rb"(?:" + re.escape(self._quote) * 2 + rb")?"
        open_end = separator + empty + rb"(?:\r?\n|\Z)"
        self._open_end = re.compile(open_end) if counts_values else None
        begin, end = rb"(?:\A|[\r\n]|" + separator + rb")", rb"(?:\Z|[\r\n]|" + separator + rb")"
        self._spaced_quote = re.compile(begin + rb"[ \t]+" + self._quote)
        # DuckDB does not trim, and afterwards nobody knows which values had quotes.
        trimmed = [begin + rb"[\0- ]"] if options.trims_left else []
        trimmed += [rb"[\0- ]" + end] if options.trims_right else []
        self._trimmed = re.compile(rb"|".join(trimmed)) if trimmed else None
        self._room = bytearray(_OVERLAP_BYTES + _CHUNK_BYTES)

    def facts(self, path: Path) -> tuple[bool, bool]:
        """Whether a file has quotes, and whether DuckDB may be tried on it."""
        room = self._room
        has_quotes = has_spaces = has_returns = has_feeds = False
        known = 0
        with path.open("rb") as stream, memoryview(room) as view:
            while read := stream.readinto(view[known : known + _CHUNK_BYTES]):
                end = known + read
                if self._quote and not has_quotes:
                    has_quotes = room.find(self._quote, known, end) >= 0
                if self._trimmed and not has_spaces:
                    has_spaces = self._trimmed.search(room, 0, end) is not None
                if self._multi_line:
                    has_returns = has_returns or room.find(b"\r", 0, end) >= 0
                    has_feeds = has_feeds or _has_line_feeds(room, min(known, 1), end)
                if (
                    (has_returns and has_feeds)
                    or _has_carriage_returns(room, end)
                    or _has_long_line(room, end)
                    or (self._open_end and self._open_end.search(room, 0, end))
                    or (has_quotes and (has_spaces or self._is_odd(end)))
                ):
                    return has_quotes, False
                known = min(_OVERLAP_BYTES, end)
                room[:known] = room[end - known : end]
        return has_quotes, not room.endswith(b"\r", 0, known)

    def _is_odd(self, end: int) -> bool:
        """Whether escapes, or spaces before quotes, are in a part that has quotes."""
        room = self._room
        has_escapes = bool(self._escape) and room.find(self._escape, 0, end) >= 0
        return has_escapes or self._spaced_quote.search(room, 0, end) is not None


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


def _has_carriage_returns(room: bytearray, end: int) -> bool:
    """Whether some stand alone, other than at the end of what is known so far."""
    # Looking for the first is much quicker than counting.
    if room.find(b"\r", 0, end) < 0:
        return False
    return room.count(b"\r", 0, end) - room.endswith(b"\r", 0, end) != room.count(b"\r\n", 0, end)


def _has_line_feeds(room: bytearray, begin: int, end: int) -> bool:
    """Whether some stand without a carriage return before them."""
    if room.find(b"\r", begin, end) < 0:
        return room.find(b"\n", begin, end) >= 0
    return room.count(b"\n", begin, end) != room.count(b"\r\n", max(begin - 1, 0), end)


def _has_long_line(room: bytearray, end: int) -> bool:
    """Whether a line may be longer than DuckDB reads, which would drop it without a word.

    Of a line of 2,000,000 bytes, DuckDB's limit, one part has so many that it is seen.
    """
    return any(
        room.find(b"\n", begin, begin + _LONG_LINE_BYTES) < 0
        for begin in range(0, end - _LONG_LINE_BYTES, _LONG_LINE_BYTES)
    )
