"""Places in a source file: offsets to lines and columns, also through replaced variables."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from millpond.definitions import SqlQuery
from millpond.errors import SourceLocation
from millpond.errors.caret import WIDTH, point_at

_LINE_END = re.compile(r"\r\n|\r|\n")
# More than what is shown on either side, so that what is left out is seen to be.
NEIGHBOURHOOD = 4 * WIDTH


@dataclass(frozen=True)
class SourceText:
    """The text of a file, without a byte order mark."""

    text: str
    file: str

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    def location(self, offset: int) -> SourceLocation:
        """Line and column, both from 1, of an offset; columns count characters."""
        index = bisect_right(self._line_starts, offset) - 1
        return SourceLocation(self.file, index + 1, offset - self._line_starts[index] + 1)

    def offset(self, location: SourceLocation) -> int:
        """The offset of a location in this file."""
        return self._line_starts[(location.line or 1) - 1] + (location.column or 1) - 1

    def caret(self, start: int, end: int) -> str:
        """The line of `start` with carets from there to `end`, or to the line's end."""
        location = self.location(start)
        line = location.line or 1
        line_start = self._line_starts[line - 1]
        # Only the neighbourhood, so that a file of one huge line costs no more for each problem.
        first = max(line_start, start - NEIGHBOURHOOD)
        last = min(len(self.text), start + NEIGHBOURHOOD)
        line_end = _LINE_END.search(self.text, start, last)
        stop = line_end.start() if line_end else last
        return point_at(
            self.text[first:stop],
            line=line,
            column=start - first + 1,
            length=min(end, stop) - start,
        )


class Replacement(NamedTuple):
    """A stretch of a file that was replaced by the value of a variable or parameter."""

    start: int
    end: int
    value: str


@dataclass(frozen=True)
class ExpandedText:
    """A stretch of a file with its variables replaced, and the way back to the file.

    Attributes:
        start: Where the stretch starts in the file.
        replacements: In the order of the file, not overlapping.
    """

    source: SourceText
    start: int
    end: int
    replacements: tuple[Replacement, ...]

    @cached_property
    def text(self) -> str:
        parts: list[str] = []
        position = self.start
        for start, end, value in self.replacements:
            parts += (self.source.text[position:start], value)
            position = end
        return "".join([*parts, self.source.text[position : self.end]])

    @cached_property
    def _starts(self) -> list[int]:
        """Where each value starts in `text`."""
        starts: list[int] = []
        shift = -self.start
        for start, end, value in self.replacements:
            starts.append(start + shift)
            shift += len(value) - (end - start)
        return starts

    def replacement_at(self, offset: int) -> Replacement | None:
        """The replacement whose value the offset in `text` lies in."""
        index = bisect_right(self._starts, offset) - 1
        if index < 0:
            return None
        found = self.replacements[index]
        return found if offset < self._starts[index] + len(found.value) else None

    def file_offset(self, offset: int) -> int:
        """The offset in the file; inside a value, that of the variable."""
        index = bisect_right(self._starts, offset) - 1
        if index < 0:
            return self.start + offset
        found = self.replacements[index]
        behind = offset - self._starts[index] - len(found.value)
        return found.start if behind < 0 else found.end + behind

    def replaced_in(self, start: int, end: int) -> tuple[tuple[int, int, int], ...]:
        """What `SqlQuery.replaced` says of the part of `text` from `start` to `end`."""
        found: list[tuple[int, int, int]] = []
        for value_start, replacement in zip(self._starts, self.replacements, strict=True):
            value_end = value_start + len(replacement.value)
            empty_inside = value_start == value_end and start < value_start < end
            if empty_inside or (value_start < end and value_end > start):
                inside = max(value_start, start)
                length = min(value_end, end) - inside
                found.append((inside - start, length, replacement.end - replacement.start))
        return tuple(found)


def query_location(query: SqlQuery, offset: int) -> SourceLocation:
    """The place in the user's file of an offset in `query.text`.

    Inside the value of a variable it is the place of the variable.
    """
    source = _source_of(query.file_text, query.location.file)
    shift = 0
    for start, length, file_length in query.replaced:
        if offset < start:
            break
        if offset < start + length:
            offset = start
            break
        shift += file_length - length
    return source.location(source.offset(query.location) + offset + shift)


def query_caret(query: SqlQuery, start: int, end: int) -> str:
    """The line of the user's file that holds a part of `query.text`, with carets below the part."""
    source = _source_of(query.file_text, query.location.file)
    first = source.offset(query_location(query, start))
    last = source.offset(query_location(query, max(start, end - 1)))
    return source.caret(first, last + 1)


@lru_cache(maxsize=16)
def _source_of(text: str, file: str) -> SourceText:
    """Kept for the next query of the same file, since finding its lines takes a while."""
    return SourceText(text, file)
