"""A query's text, with the place that it has in a user's file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from millpond.definitions import SqlQuery
from millpond.errors import SourceLocation
from millpond.sql import query_caret, query_location
from millpond.sql.positions import SourceText


@dataclass(frozen=True)
class QueryText:
    """A query's text.

    Attributes:
        location: Where the text starts or, for text inside Python code, the line that passes it.
        query: The query that the text is of, where it stands in an SQL file.
        catalog: Default catalog for names in the text.
        schema: Default schema for names in the text.
        whole: Of a part of a text: the whole, with every character of the part in its place.
    """

    text: str
    location: SourceLocation
    query: SqlQuery | None = None
    catalog: str | None = None
    schema: str | None = None
    whole: str = ""

    @classmethod
    def of_query(cls, query: SqlQuery) -> QueryText:
        return cls(
            query.text,
            query.location,
            query=query if query.file_text else None,
            catalog=query.catalog,
            schema=query.schema,
        )

    def locate(self, offset: int) -> SourceLocation:
        """The place of a character of the text in the user's file."""
        return self.location if self.query is None else query_location(self.query, offset)

    def caret(self, start: int, end: int) -> str:
        """The line that holds a part of the text, with carets below that part."""
        if self.query is not None:
            return query_caret(self.query, start, end)
        shown = SourceText(self.whole or self.text, self.location.file)
        return shown.caret(start, max(end, start + 1))

    def part(self, text: str) -> QueryText:
        """A part of this text, every character in its place."""
        return replace(self, text=text, whole=self.whole or self.text)


@dataclass(frozen=True)
class Edit:
    """Characters `start` to `end` of a text, and what stands there instead."""

    start: int
    end: int
    replacement: str


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Make edits that do not overlap.

    >>> apply_edits("select * from t", [Edit(14, 15, "u"), Edit(0, 6, "SELECT")])
    'SELECT * from u'
    """
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        text = text[: edit.start] + edit.replacement + text[edit.end :]
    return text


def blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Put spaces over parts of a text, so that every other character keeps its place.

    >>> blanked("STREAM(t)", [(0, 7), (8, 9)])
    '       t '
    """
    return apply_edits(
        text,
        (
            Edit(start, end, "".join(c if c in "\r\n" else " " for c in text[start:end]))
            for start, end in spans
        ),
    )
