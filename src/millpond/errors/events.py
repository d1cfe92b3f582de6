"""Errors of the event log."""

from collections.abc import Sequence
from typing import Self

from millpond.errors.base import MillpondError
from millpond.errors.disk_reason import disk_reason


class EventLogWriteError(MillpondError, OSError):
    """The event log could not be written; the tables of the update are not affected."""

    error_class = "EVENT_LOG_NOT_WRITABLE"
    sqlstate = "58030"

    @classmethod
    def from_error(cls, folder: str, error: BaseException) -> Self:
        return cls(
            f"The event log in {folder} could not be written: {disk_reason(error)}. The tables "
            "themselves are as the update left them.",
            hint="check that the folder belongs to you and has space left; events that were kept "
            "are added to the log by the next update",
        )


class EventLogReadError(MillpondError, ValueError):
    """The folder of the event log holds something that is not an event log."""

    error_class = "EVENT_LOG_NOT_READABLE"
    sqlstate = "58030"

    @classmethod
    def from_error(cls, folder: str, error: BaseException) -> Self:
        return cls(
            f"The event log in {folder} can't be read: {error}.",
            hint="if the folder is damaged, move it away: millpond starts a new log, and no "
            "table depends on the old one",
        )


class UpdateNotFoundError(MillpondError, LookupError):
    """The event log holds no update of the id that was asked for."""

    error_class = "UPDATE_NOT_FOUND"
    sqlstate = "42704"

    @classmethod
    def from_id(cls, update: str, *, matches: Sequence[str], known: Sequence[str]) -> Self:
        if matches:
            return cls(
                f"{len(matches)} updates have an id that begins with {update!r}.",
                hint=f"write more of it: {', '.join(matches[-3:])}",
            )
        newest = f"the newest is {known[-1]}" if known else "no update has run yet"
        return cls(
            f"The event log has no update {update!r}.",
            hint=f"{newest}; give an id, the beginning of one, latest or all",
        )
