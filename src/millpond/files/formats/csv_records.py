"""Finds the rows of a CSV file, one after the other and in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from millpond.errors.file_formats import (
    RowTooLongError,
    TooManyColumnsError,
    ValueTooLongError,
)
from millpond.files.formats.base import LocalFile
from millpond.files.formats.csv_options import CsvOptions
from millpond.files.formats.csv_tokens import SPACES, Tokenizer, UnfinishedError, line_end
from millpond.files.formats.text_lines import MAX_ROW_CHARACTERS, lines_of


class Record(NamedTuple):
    """A row of a file."""

    line: int
    """The line that it begins in, counted from 1."""
    last_line: int
    text: str
    """All of it, without the end of its last line."""
    values: list[str | None]
    """`None` for what is empty without quotes."""


def records(file: LocalFile, options: CsvOptions) -> Iterator[Record]:
    """The rows of a file with its header, without blank lines and comments.

    Raises:
        RowTooLongError: A row is longer than `MAX_ROW_CHARACTERS`.
        TooManyColumnsError: A row has more values than the options allow.
        ValueTooLongError: A value is longer than the options allow.
    """
    tokenizer = Tokenizer(options)
    lines = _Lines(file, options)
    for line, text in lines:
        if options.multi_line:
            record = _joined(line, text, lines, tokenizer)
        else:
            record = Record(line, line, text, tokenizer.split(text))
        _check(file, record, options)
        yield record


class _Lines:
    """The lines that rows may begin in, with their numbers; more can be taken and given back."""

    def __init__(self, file: LocalFile, options: CsvOptions) -> None:
        self._file = file
        self._lines = _lines_of(file, options)
        self._options = options
        self._again: deque[str] = deque()
        self._line = 0
        self.end = line_end(options)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        while (text := self._next_filled()) is not None:
            if self._line > self._options.skip_rows and not _is_nothing(text, self._options):
                yield self._line, text

    def take(self, count: int, *, begun: int, line: int) -> list[str]:
        """Up to so many more lines of a row that began in a line with so many characters."""
        taken: list[str] = []
        while len(taken) < count and (text := self._next()) is not None:
            begun += len(text) + len(self.end)
            if begun > MAX_ROW_CHARACTERS:
                raise RowTooLongError.from_line(
                    self._file.uri, line, limit_characters=MAX_ROW_CHARACTERS
                )
            taken.append(text)
        return taken

    def give_back(self, lines: list[str]) -> None:
        self._again.extendleft(reversed(lines))
        self._line -= len(lines)

    def _next_filled(self) -> str | None:
        """The next line that is not empty. Of those there may be millions."""
        if self._again:
            return self._next()
        for number, text in enumerate(self._lines, start=self._line + 1):
            if text:
                self._line = number
                return text
        return None

    def _next(self) -> str | None:
        text = self._again.popleft() if self._again else next(self._lines, None)
        if text is not None:
            self._line += 1
        return text


def first_lines(file: LocalFile, rows: int, options: CsvOptions) -> Iterator[str]:
    """The lines of a file up to one of so many that rows may begin in, all of them."""
    for line, text in enumerate(_lines_of(file, options), start=1):
        yield text
        if line > options.skip_rows and not _is_nothing(text, options):
            rows -= 1
            if not rows:
                return


def _lines_of(file: LocalFile, options: CsvOptions) -> Iterator[str]:
    # Where values go on in the next line, other ends of lines than the file's are a part of them.
    return lines_of(file, options.line_separator, like_first=options.multi_line)


def _is_nothing(text: str, options: CsvOptions) -> bool:
    """Whether a line is blank or a comment. Spaces are a row where rows go over lines."""
    if options.comment and text.startswith(options.comment):
        return True
    return not (text if options.multi_line else text.strip(SPACES))


def _joined(line: int, text: str, lines: _Lines, tokenizer: Tokenizer) -> Record:
    """A row with the lines that its quoted values go on in.

    Twice as many lines are taken each time, so that the beginning of a row is not read over and
    over again; those behind its end are given back.
    """
    wanted = 1
    finished = False
    while True:
        try:
            values, end = tokenizer.split_first(text, finished=finished)
        except UnfinishedError:
            more = lines.take(wanted, begun=len(text), line=line)
            finished = not more
            text = lines.end.join([text, *more])
            wanted *= 2
            continue
        if end < len(text):
            lines.give_back(text[end + len(lines.end) :].split(lines.end))
        row = text[:end]
        return Record(line, line + row.count(lines.end), row, values)


def _check(file: LocalFile, record: Record, options: CsvOptions) -> None:
    if len(record.values) > options.max_columns:
        raise TooManyColumnsError.from_line(file.uri, record.line, limit=options.max_columns)
    most = options.max_characters
    if most is not None and any(value and len(value) > most for value in record.values):
        raise ValueTooLongError.from_line(file.uri, record.line, limit_characters=most)
