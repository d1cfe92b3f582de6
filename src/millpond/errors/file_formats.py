"""Errors of the content of files: what is not as its format says, and options of formats."""

from __future__ import annotations

from typing import Self

from millpond.errors.base import MillpondError


class InvalidFormatOptionError(MillpondError, ValueError):
    """An option of a format of files has a value that it can't have."""

    error_class = "FILE_FORMAT_OPTION_INVALID"
    sqlstate = "42616"

    @classmethod
    def from_value(cls, option: str, value: str, *, must_be: str) -> Self:
        return cls(
            f"{value!r} is not a value for the option {option} of a read of files.",
            hint=f"it must be {must_be}",
        )


class UnsupportedFormatOptionError(MillpondError, NotImplementedError):
    """An option of a format has a value that Spark knows, but millpond does not."""

    error_class = "FILE_FORMAT_OPTION_UNSUPPORTED"
    sqlstate = "0A000"

    @classmethod
    def from_value(cls, option: str, value: str, *, instead: str) -> Self:
        return cls(
            f"The value {value!r} of the option {option} is not supported for a read of files.",
            hint=instead,
        )


class UnsupportedDatetimePatternError(MillpondError, ValueError):
    """A pattern of dates or timestamps has something that can't be read."""

    error_class = "FILE_DATETIME_PATTERN_UNSUPPORTED"
    sqlstate = "22007"

    @classmethod
    def from_pattern(cls, pattern: str, *, found: str) -> Self:
        return cls(
            f"The pattern {pattern!r} of dates or timestamps has {found}.",
            hint="patterns are those of Spark, such as yyyy-MM-dd or dd/MM/yyyy HH:mm:ss[.SSS]XXX; "
            "read the column as a string and convert it in the query where no pattern fits",
        )
