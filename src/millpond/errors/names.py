"""Errors about the names of catalogs, schemas, tables and flows."""

from typing import Self

from millpond.errors.base import MillpondError, SourceLocation


class InvalidNameError(MillpondError, ValueError):
    """A name is empty, too long, has too many parts, or holds a character that no name may hold."""

    error_class = "INVALID_NAME"
    sqlstate = "42602"

    @classmethod
    def from_text(cls, text: str, *, reason: str, where: SourceLocation | None = None) -> Self:
        shown = text if len(text) <= 80 else text[:77] + "..."
        return cls(
            f"{shown!r} is not a valid name: {reason}.",
            where=where,
            hint="write catalog.schema.table, schema.table or table; quote unusual parts with "
            "backticks",
        )
