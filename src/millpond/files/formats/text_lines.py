"""Splits a file of text into lines, in bounded memory."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from millpond.errors.file_formats import RowTooLongError
from millpond.files.formats.base import LocalFile

# What is longer is more likely a quote that never closes, or no text, than a row.
MAX_ROW_CHARACTERS = 16 * 1024 * 1024
_CHUNK_CHARACTERS = 1024 * 1024
_END = re.compile(r"\r\n|\r|\n")


def lines_of(file: LocalFile, separator: str | None, *, like_first: bool = False) -> Iterator[str]:
    """All lines of a file, without their ends.

    What is not UTF-8 becomes U+FFFD, as in Spark.

    Args:
        separator: What ends lines, or `None` for line feeds and carriage returns.
        like_first: Whether, without a separator, it is what the first line ends with that ends
            others, and line feeds.

    Raises:
        RowTooLongError: A line is longer than `MAX_ROW_CHARACTERS`.
    """
    newline: str | None = "" if separator is not None else None
    end = "\n"
    if separator is None and like_first and (first := _first_end(file)) != "\r":
        newline, end = "\n", first
    with file.path.open(encoding="utf-8-sig", errors="replace", newline=newline) as text:
        if separator is None:
            yield from _by_newlines(file, text, end)
        else:
            yield from _by_separator(file, text, separator)


def _first_end(file: LocalFile) -> str:
    """What the first line ends with, as far as it is looked at."""
    with file.path.open(encoding="utf-8-sig", errors="replace", newline="") as text:
        found = _END.search(text.read(_CHUNK_CHARACTERS))
    return found.group() if found else "\n"


def _by_newlines(file: LocalFile, text: io.TextIOBase, end: str) -> Iterator[str]:
    line = 0
    length = len(end)
    while row := text.readline(MAX_ROW_CHARACTERS):
        line += 1
        if len(row) == MAX_ROW_CHARACTERS:
            raise _too_long(file, line)
        yield row[:-length] if row.endswith(end) else row.removesuffix("\n")


def _by_separator(file: LocalFile, text: io.TextIOBase, separator: str) -> Iterator[str]:
    line = 1
    rest = ""
    while chunk := text.read(_CHUNK_CHARACTERS):
        *rows, rest = (rest + chunk).split(separator)
        line += len(rows)
        if len(rest) > MAX_ROW_CHARACTERS:
            raise _too_long(file, line)
        yield from rows
    if rest:
        yield rest


def _too_long(file: LocalFile, line: int) -> RowTooLongError:
    return RowTooLongError.from_line(file.uri, line, limit_characters=MAX_ROW_CHARACTERS)
