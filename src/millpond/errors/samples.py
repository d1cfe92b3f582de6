"""Errors about the built-in sample tables."""

from collections.abc import Sequence
from typing import Self

from millpond.errors.base import MillpondError, SourceLocation
from millpond.errors.suggestion import did_you_mean


class SampleTableNotFoundError(MillpondError, LookupError):
    """A name in `samples.wanderbricks` that is none of its tables."""

    error_class = "SAMPLE_TABLE_NOT_FOUND"
    sqlstate = "42P01"

    @classmethod
    def from_name(
        cls, table: str, *, known: Sequence[str], where: SourceLocation | None = None
    ) -> Self:
        meant = did_you_mean(table, known)
        tables = ", ".join(sorted(known))
        return cls(
            f"samples.wanderbricks has no table {table!r}.",
            where=where,
            hint=f"did you mean {meant}?" if meant else f"its tables are {tables}",
        )
