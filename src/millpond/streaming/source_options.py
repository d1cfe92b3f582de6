"""The values of the options of a source, read by name with errors that say what they must be.

Which options there are, and what they mean, each source says for itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from millpond.errors import SourceLocation
from millpond.errors.sources import (
    InvalidSourceOptionError,
    UnknownSourceOptionError,
    UnsupportedSourceOptionError,
)
from millpond.options import CHECKPOINT_LOCATION

MAX_LONG = (1 << 63) - 1


@dataclass(frozen=True)
class SourceOptions:
    """Options by the name that is documented, however the user's letter case was."""

    given: Mapping[str, str]
    where: SourceLocation | None

    @classmethod
    def of(
        cls,
        options: Mapping[str, str],
        *,
        source: str,
        known: Iterable[str],
        refused: Mapping[str, str],
        where: SourceLocation | None,
    ) -> Self:
        """Check the names of the options.

        Args:
            refused: By option of Spark's that is not offered, what to do instead.

        Raises:
            UnknownSourceOptionError: There is no such option.
            UnsupportedSourceOptionError: Spark has the option, millpond does not offer it.
        """
        names = {name.lower(): name for name in known}
        without = {**CHECKPOINT_LOCATION, **refused}
        instead = {name.lower(): (name, hint) for name, hint in without.items()}
        given: dict[str, str] = {}
        for name, value in options.items():
            folded = name.lower()
            if folded in instead:
                option, hint = instead[folded]
                raise UnsupportedSourceOptionError.from_option(option, instead=hint, where=where)
            if folded not in names:
                raise UnknownSourceOptionError.from_option(
                    source, name, known=names.values(), where=where
                )
            given[names[folded]] = value.strip()
        return cls(given, where)

    def text(self, option: str) -> str | None:
        return self.given.get(option) or None

    def boolean(self, option: str, *, default: bool) -> bool:
        value = self.given.get(option)
        if value is None:
            return default
        if value.lower() not in {"true", "false"}:
            raise self.invalid(option, must_be="'true' or 'false'")
        return value.lower() == "true"

    def whole(
        self, option: str, *, least: int, most: int = MAX_LONG, default: int | None = None
    ) -> int | None:
        value = self.given.get(option)
        if value is None:
            return default
        digits = value.removeprefix("-")
        number = int(value) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
        if number is None or not least <= number <= most:
            upper = "" if most == MAX_LONG else f" and at most {most}"
            raise self.invalid(option, must_be=f"a whole number, at least {least}{upper}")
        return number

    def json_object(self, option: str, *, must_be: str) -> dict[str, Any] | None:
        value = self.given.get(option)
        if value is None:
            return None
        try:
            parsed = json.loads(value)
        except ValueError:
            raise self.invalid(option, must_be=must_be) from None
        if not isinstance(parsed, dict):
            raise self.invalid(option, must_be=must_be)
        return parsed

    def only_one(self, source: str, *options: str) -> None:
        both = [option for option in options if option in self.given]
        if len(both) > 1:
            raise InvalidSourceOptionError.from_exclusive(source, both, where=self.where)

    def invalid(self, option: str, *, must_be: str) -> InvalidSourceOptionError:
        return InvalidSourceOptionError.from_value(
            option, self.given[option], must_be=must_be, where=self.where
        )
