"""The settings under `millpond.samples.*`: how many rows, and how far time has gone on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from millpond.errors.samples import SampleOptionError

SCALE_OPTION = "millpond.samples.scale"
SLICES_OPTION = "millpond.samples.slices"

BOOKINGS_PER_SCALE = 2000
MAX_SCALE = 1000
MAX_SLICES = 100


@dataclass(frozen=True)
class SampleOptions:
    """What a sample table shall hold.

    Attributes:
        bookings: Rows of `bookings`; every other count follows from it.
        slices: 1 is the base; each further slice appends a week of later events.
    """

    bookings: int = BOOKINGS_PER_SCALE
    slices: int = 1

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, str]) -> SampleOptions:
        """Read the two settings.

        >>> SampleOptions.from_configuration({"millpond.samples.scale": "0.5"}).bookings
        1000

        Raises:
            SampleOptionError: A value is no number, or out of range.
        """
        scale = _number(configuration, SCALE_OPTION, low=0.01, high=MAX_SCALE)
        slices = _number(configuration, SLICES_OPTION, low=1, high=MAX_SLICES)
        if not slices.is_integer():
            raise SampleOptionError.from_value(
                SLICES_OPTION, configuration[SLICES_OPTION], expected="a whole number"
            )
        return cls(bookings=round(scale * BOOKINGS_PER_SCALE), slices=int(slices))


def _number(configuration: Mapping[str, str], option: str, *, low: float, high: float) -> float:
    text = str(configuration.get(option, 1))
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise SampleOptionError.from_value(
            option, text, expected=f"a number from {low:g} to {high:g}"
        )
    return value
