"""Errors about the `millpond.*` settings of a pipeline."""

from collections.abc import Iterable
from typing import Self

from millpond.errors.base import MillpondError, SourceLocation
from millpond.errors.suggestion import cut_short, did_you_mean
from millpond.redaction import shown_value


class UnknownOptionError(MillpondError, LookupError):
    """A setting begins with `millpond.` but is none of millpond's."""

    error_class = "UNKNOWN_OPTION"
    sqlstate = "42K0I"

    @classmethod
    def from_key(cls, key: str, *, known: Iterable[str], where: SourceLocation | None) -> Self:
        options = sorted(known)
        near = did_you_mean(key, options)
        return cls(
            f"There is no setting {cut_short(key)}.",
            where=where,
            hint=f"did you mean {near}?" if near else "the settings are " + ", ".join(options),
        )


class InvalidOptionError(MillpondError, ValueError):
    """A `millpond.*` setting has a value that it can't have."""

    error_class = "INVALID_OPTION"
    sqlstate = "22023"

    @classmethod
    def from_value(
        cls, key: str, value: str, *, expected: str, where: SourceLocation | None
    ) -> Self:
        return cls(
            f"The setting {key} must be {expected}, not {cut_short(shown_value(key, value))!r}.",
            where=where,
            hint=f"correct {key} under configuration in the spec or in --conf, or leave it out",
        )

    @classmethod
    def from_property(
        cls, key: str, value: str, *, expected: str, where: SourceLocation | None
    ) -> Self:
        return cls(
            f"The setting {key} must be {expected}, not {cut_short(shown_value(key, value))!r}.",
            where=where,
            hint="correct it where it is set: in the table's properties, or in the flow's "
            "spark_conf; or leave it out",
        )
