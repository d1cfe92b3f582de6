"""The options of a streaming read of a Delta table, from text to values.

Names follow Delta's own reader options. Checked when the pipeline is read, before any data is.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from millpond.errors import SourceLocation
from millpond.errors.streaming import (
    InvalidStreamOptionError,
    UnknownStreamOptionError,
    UnsupportedStreamOptionError,
)
from millpond.options import CHECKPOINT_LOCATION, parse_bytes

LATEST = "latest"
DEFAULT_MAX_FILES = 1000
DEFAULT_MAX_BYTES = 1 << 30

_OPTIONS = (
    "skipChangeCommits",
    "ignoreDeletes",
    "ignoreChanges",
    "startingVersion",
    "startingTimestamp",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
)
_CHANGE_FEED = "read the table itself; rows that were updated or deleted can be skipped with "
_CHANGE_FEED += "skipChangeCommits"
_TIME_TRAVEL = "use startingVersion or startingTimestamp, or read the table without streaming"
_TRACKING = "leave it out: new columns need no option, and other changes need a full refresh"
_REFUSED = {
    **CHECKPOINT_LOCATION,
    "readChangeFeed": _CHANGE_FEED,
    "readChangeData": _CHANGE_FEED,
    "withEventTimeOrder": "leave it out; REPLACE USING does not depend on the order of rows",
    "excludeRegex": "leave it out and filter the rows in the query",
    "ignoreFileDeletion": "use skipChangeCommits or ignoreChanges instead",
    "failOnDataLoss": "leave it out: a stream that would lose rows always fails",
    "versionAsOf": _TIME_TRAVEL,
    "timestampAsOf": _TIME_TRAVEL,
    "endingVersion": "leave it out: an update reads up to the table's newest version",
    "endingTimestamp": "leave it out: an update reads up to the table's newest version",
    "schemaTrackingLocation": _TRACKING,
    "schemaLocation": _TRACKING,
    "streamingSourceTrackingId": _TRACKING,
    "allowSourceColumnRename": _TRACKING,
    "allowSourceColumnDrop": _TRACKING,
    "allowSourceColumnTypeChange": _TRACKING,
}
# Written out in older pipelines; these say what holds anyway.
_HARMLESS = {
    ("readchangefeed", "false"),
    ("readchangedata", "false"),
    ("witheventtimeorder", "false"),
    ("ignorefiledeletion", "false"),
    ("failondataloss", "true"),
}


@dataclass(frozen=True)
class DeltaReadOptions:
    """How a Delta table is read as a stream.

    Attributes:
        skip_change_commits: Leave out commits that update or delete rows, whole.
        ignore_deletes: Take commits that only remove whole files for empty ones.
        ignore_changes: Read the files that an update wrote anew, unchanged rows among them.
        starting_version: The first version read, `LATEST` for what comes after now, or `None`
            for the whole table.
        starting_timestamp: The first commit read is the first one not before this time.
        max_files: Files in one batch at most.
        max_bytes: Bytes in one batch at most, but always one file.
    """

    skip_change_commits: bool = False
    ignore_deletes: bool = False
    ignore_changes: bool = False
    starting_version: int | str | None = None
    starting_timestamp: datetime | None = None
    max_files: int = DEFAULT_MAX_FILES
    max_bytes: int = DEFAULT_MAX_BYTES

    @property
    def allows_changes(self) -> bool:
        return self.skip_change_commits or self.ignore_changes

    @property
    def starts_midway(self) -> bool:
        return self.starting_version is not None or self.starting_timestamp is not None

    @classmethod
    def parse(cls, options: Mapping[str, str], *, where: SourceLocation | None = None) -> Self:
        """Read options as the user gave them; names count without their letter case.

        Raises:
            UnknownStreamOptionError: There is no such option.
            UnsupportedStreamOptionError: Delta has the option, millpond does not offer it.
            InvalidStreamOptionError: A value does not fit, or two options exclude each other.
        """
        given: dict[str, str] = {}
        for name, value in options.items():
            if (name.lower(), value.strip().lower()) not in _HARMLESS:
                given[_known(name, where=where)] = value.strip()
        if "startingVersion" in given and "startingTimestamp" in given:
            raise InvalidStreamOptionError.from_two_starts(where=where)
        reader = _Values(given, where)
        max_files = reader.positive("maxFilesPerTrigger")
        max_bytes = reader.size("maxBytesPerTrigger")
        return cls(
            skip_change_commits=reader.boolean("skipChangeCommits"),
            ignore_deletes=reader.boolean("ignoreDeletes"),
            ignore_changes=reader.boolean("ignoreChanges"),
            starting_version=reader.version("startingVersion"),
            starting_timestamp=reader.timestamp("startingTimestamp"),
            max_files=_max_files(max_files, max_bytes),
            max_bytes=DEFAULT_MAX_BYTES if max_bytes is None else max_bytes,
        )


def _max_files(max_files: int | None, max_bytes: int | None) -> int:
    if max_files is not None:
        return max_files
    # As in Delta: whoever limits by size alone does not want a limit on the number of files too.
    return DEFAULT_MAX_FILES if max_bytes is None else sys.maxsize


def _known(name: str, *, where: SourceLocation | None) -> str:
    for option in _OPTIONS:
        if name.lower() == option.lower():
            return option
    for option, instead in _REFUSED.items():
        if name.lower() == option.lower():
            raise UnsupportedStreamOptionError.from_option(option, instead=instead, where=where)
    raise UnknownStreamOptionError.from_option(name, known=_OPTIONS, where=where)


@dataclass(frozen=True)
class _Values:
    given: Mapping[str, str]
    where: SourceLocation | None

    def boolean(self, option: str) -> bool:
        value = self.given.get(option, "false")
        if value.lower() not in {"true", "false"}:
            raise self._invalid(option, must_be="'true' or 'false'")
        return value.lower() == "true"

    def positive(self, option: str) -> int | None:
        value = self.given.get(option)
        if value is None:
            return None
        number = _whole_number(value)
        if number is None or number == 0:
            raise self._invalid(option, must_be="a whole number above 0")
        return number

    def size(self, option: str) -> int | None:
        value = self.given.get(option)
        if value is None:
            return None
        try:
            return parse_bytes(value)
        except ValueError:
            must_be = "a size above 0, such as '512m' or '10g'"
            raise self._invalid(option, must_be=must_be) from None

    def version(self, option: str) -> int | str | None:
        value = self.given.get(option)
        if value is None:
            return None
        if value.lower() == LATEST:
            return LATEST
        number = _whole_number(value)
        if number is None:
            raise self._invalid(option, must_be="a version of the table, 0 or more, or 'latest'")
        return number

    def timestamp(self, option: str) -> datetime | None:
        value = self.given.get(option)
        if value is None:
            return None
        try:
            parsed = datetime.fromisoformat(value)
        except ValueError:
            must_be = "a time such as '2026-01-31' or '2026-01-31T12:00:00Z'"
            raise self._invalid(option, must_be=must_be) from None
        return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)

    def _invalid(self, option: str, *, must_be: str) -> InvalidStreamOptionError:
        return InvalidStreamOptionError.from_value(
            option, self.given[option], must_be=must_be, where=self.where
        )


def _whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None
