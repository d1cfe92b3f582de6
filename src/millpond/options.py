"""The `millpond.*` settings that may stand under `configuration` in a pipeline's spec.

One table says which there are, what each may be, and what it is where it is left out. Parts that
use a setting read it from here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from millpond.errors import MillpondError, SourceLocation
from millpond.errors.options import InvalidOptionError, UnknownOptionError

T = TypeVar("T")

PREFIX = "millpond."
# An option of streams elsewhere that no source has, with what to do instead.
CHECKPOINT_LOCATION = {
    "checkpointLocation": "leave it out: each flow has a checkpoint of its own below the storage "
    "of the pipeline"
}
_BYTES = re.compile(r"(\d{1,18})\s*([kmgtp]?)(?:i?b)?\Z", re.ASCII | re.IGNORECASE)
SPARK_URL = re.compile(r"sc://(\[[0-9A-Fa-f:]+\]|[^/:;\s]+)(:\d{1,5})?(/(;\S*)?)?\Z")
_SHIFT = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


@dataclass(frozen=True)
class Option(Generic[T]):
    """One setting.

    Attributes:
        expected: What a value may be, in words that follow "must be".
        parse: Turns the text into the value; raises `ValueError`.
    """

    key: str
    default: T
    meaning: str
    expected: str
    parse: Callable[[str], T]

    def read(self, configuration: Mapping[str, str], *, where: SourceLocation | None = None) -> T:
        """The setting's value, or its default.

        Raises:
            InvalidOptionError: The value is not what it may be.
        """
        text = configuration.get(self.key)
        if text is None:
            return self.default
        try:
            return self.parse(text.strip())
        except ValueError:
            raise InvalidOptionError.from_value(
                self.key, text, expected=self.expected, where=where
            ) from None


def _number(text: str, *, low: float, high: float) -> float:
    value = float(text)
    if not low <= value <= high:
        raise ValueError(text)
    return value


def _count(text: str, *, high: int = sys.maxsize) -> int:
    value = int(text)
    if not 1 <= value <= high:
        raise ValueError(text)
    return value


def parse_bytes(text: str) -> int:
    """Read a size as Spark does: bytes, or a number with k, m, g, t or p.

    >>> parse_bytes("64m")
    67108864

    Raises:
        ValueError: It is no such text, or zero.
    """
    match = _BYTES.match(text)
    if match is None or int(match[1]) == 0:
        raise ValueError(text)
    return int(match[1]) << _SHIFT[match[2].lower()]


def _engine(text: str) -> str:
    if text != EMBEDDED and not SPARK_URL.match(text):
        raise ValueError(text)
    return text


def _location(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text.rstrip("/") or "/"


def _one_of(text: str, known: tuple[str, ...]) -> str:
    if text not in known:
        raise ValueError(text)
    return text


SAMPLES_SCALE = Option(
    "millpond.samples.scale",
    default=1.0,
    meaning="How large the built-in samples are; 1 gives 2,000 bookings.",
    expected="a number from 0.01 to 1000",
    parse=lambda text: _number(text, low=0.01, high=1000),
)
SAMPLES_SLICES = Option(
    "millpond.samples.slices",
    default=1,
    meaning="How many slices of the samples there are; each after the first adds later events.",
    expected="a whole number from 1 to 100",
    parse=lambda text: _count(text, high=100),
)
MAX_FILES_PER_TRIGGER: Option[int | None] = Option(
    "millpond.maxFilesPerTrigger",
    default=None,
    meaning="How many files a micro-batch reads at most, where a stream does not say so itself.",
    expected="a whole number above 0",
    parse=_count,
)
MAX_BYTES_PER_TRIGGER: Option[int | None] = Option(
    "millpond.maxBytesPerTrigger",
    default=None,
    meaning="How many bytes a micro-batch reads, about, where a stream does not say so itself.",
    expected="a number of bytes above 0, such as 500m or 1g",
    parse=parse_bytes,
)
EMBEDDED = "embedded"
ENGINE = Option(
    "millpond.engine",
    default=EMBEDDED,
    meaning="What queries run on: embedded, or the address of a Spark Connect server. "
    "--engine comes before it, SPARK_REMOTE after it.",
    expected="embedded, or an address such as sc://localhost:15002",
    parse=_engine,
)
SPARK_STORAGE: Option[str | None] = Option(
    "millpond.spark.storage",
    default=None,
    meaning="Where a Spark server keeps checkpoints, and tables if millpond.spark.tables says so: "
    "a location that all machines of its cluster can write. Needed where the server is not on "
    "this machine.",
    expected="a location such as s3a://bucket/pipeline or /shared/pipeline",
    parse=_location,
)
SPARK_TABLES = Option(
    "millpond.spark.tables",
    default="catalog",
    meaning="Where a Spark server keeps tables: in its catalog, or as folders below the storage, "
    "as the embedded engine does, which can then take them over.",
    expected="catalog or storage",
    parse=lambda text: _one_of(text, ("catalog", "storage")),
)

OPTIONS: tuple[
    Option[float] | Option[int] | Option[int | None] | Option[str] | Option[str | None], ...
] = (
    ENGINE,
    SPARK_STORAGE,
    SPARK_TABLES,
    SAMPLES_SCALE,
    SAMPLES_SLICES,
    MAX_FILES_PER_TRIGGER,
    MAX_BYTES_PER_TRIGGER,
)


def stream_limits(configuration: Mapping[str, str]) -> dict[str, str]:
    """Limits of a micro-batch that a configuration sets, as options of a reader.

    >>> stream_limits({"millpond.maxFilesPerTrigger": "10"})
    {'maxfilespertrigger': '10'}
    """
    limits = (MAX_FILES_PER_TRIGGER, MAX_BYTES_PER_TRIGGER)
    found = {limit.key.removeprefix(PREFIX).lower(): limit.read(configuration) for limit in limits}
    return {name: str(value) for name, value in found.items() if value is not None}


def check_option(
    key: str, configuration: Mapping[str, str], *, where: SourceLocation | None = None
) -> MillpondError | None:
    """What is wrong with the setting `key`; nothing, if it is not one of millpond's."""
    if not key.lower().startswith(PREFIX):
        return None
    known = {option.key: option for option in OPTIONS}
    if key not in known:
        return UnknownOptionError.from_key(key, known=known, where=where)
    try:
        known[key].read(configuration, where=where)
    except InvalidOptionError as error:
        return error
    return None
