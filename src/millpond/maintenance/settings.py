"""How a table wants to be looked after, as its properties say; their names are the field's own.

Names of properties match without regard to case, as Delta takes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self, TypeVar

from millpond.errors.maintenance import InvalidTablePropertyError
from millpond.options import parse_bytes

T = TypeVar("T")

AUTO_COMPACT = "delta.autoOptimize.autoCompact"
MANAGED = "pipelines.autoOptimize.managed"
TARGET_FILE_SIZE = "delta.targetFileSize"
Z_ORDER = "pipelines.autoOptimize.zOrderCols"
FILE_RETENTION = "delta.deletedFileRetentionDuration"
LOG_RETENTION = "delta.logRetentionDuration"
LOG_CLEANUP = "delta.enableExpiredLogCleanup"

DEFAULT_TARGET_BYTES = 128 * 1024 * 1024
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

_UNITS_MS = {
    "microsecond": 0.001,
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": HOUR_MS,
    "day": DAY_MS,
    "week": 7 * DAY_MS,
}
_PART = re.compile(r"(\d{1,12})\s+(microsecond|millisecond|second|minute|hour|day|week)s?\s*")


@dataclass(frozen=True)
class Settings:
    """What the properties of a table say.

    Attributes:
        target_bytes: How large compaction makes files, about.
        is_managed: Whether anything but checkpoints happens by itself.
        compacts: Whether small files are put together by themselves.
        sorted_by: Columns to sort by, where the definition of the table names none.
        file_retention_ms: How long files stay that the newest version does not name.
        log_retention_ms: How long entries of the log stay.
        cleans_log: Whether older entries are removed by themselves.
    """

    target_bytes: int = DEFAULT_TARGET_BYTES
    is_managed: bool = True
    compacts: bool = True
    sorted_by: tuple[str, ...] = ()
    file_retention_ms: int = 7 * DAY_MS
    log_retention_ms: int = 30 * DAY_MS
    cleans_log: bool = True

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self:
        """Read them.

        Raises:
            InvalidTablePropertyError: A value is not what it may be.
        """
        found = {key.lower(): (key, value.strip()) for key, value in properties.items()}

        def read(name: str, default: T, expected: str, parse: Callable[[str], T]) -> T:
            key, value = found.get(name.lower(), (name, None))
            if value is None:
                return default
            try:
                return parse(value)
            except ValueError:
                raise InvalidTablePropertyError.from_value(key, value, expected=expected) from None

        switch = "true or false"
        interval = "an interval such as 'interval 1 week' or 'interval 36 hours'"
        return cls(
            target_bytes=read(
                TARGET_FILE_SIZE,
                cls.target_bytes,
                "a number of bytes above 0, such as 134217728 or 128mb",
                parse_bytes,
            ),
            is_managed=read(MANAGED, cls.is_managed, switch, _switch),
            compacts=read(AUTO_COMPACT, cls.compacts, "auto, true, legacy or false", _auto_compact),
            sorted_by=read(Z_ORDER, cls.sorted_by, "names of columns with commas", _names),
            file_retention_ms=read(FILE_RETENTION, cls.file_retention_ms, interval, parse_interval),
            log_retention_ms=read(LOG_RETENTION, cls.log_retention_ms, interval, parse_interval),
            cleans_log=read(LOG_CLEANUP, cls.cleans_log, switch, _switch),
        )


def parse_interval(text: str) -> int:
    """Read an interval as Delta writes it, in milliseconds. It has no months: they differ.

    >>> parse_interval("interval 1 week") == parse_interval("7 days") == 604_800_000
    True

    Raises:
        ValueError: It is none.
    """
    rest = text.strip().lower().removeprefix("interval").strip()
    total_ms = 0.0
    if not rest:
        raise ValueError(text)
    while rest:
        part = _PART.match(rest)
        if part is None:
            raise ValueError(text)
        total_ms += int(part[1]) * _UNITS_MS[part[2]]
        rest = rest[part.end() :]
    return int(total_ms)


def _switch(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError(text)
    return text.lower() == "true"


def _auto_compact(text: str) -> bool:
    return text.lower() in {"auto", "legacy"} or _switch(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip().strip("`") for name in text.split(",") if name.strip())
