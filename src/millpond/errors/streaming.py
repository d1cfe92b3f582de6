"""Errors of streaming reads: their options, what happens to their source, and checkpoints."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Self

from millpond.errors.base import MillpondError, SourceLocation
from millpond.errors.suggestion import did_you_mean

FULL_REFRESH = "a full refresh of the table that the flow feeds (--full-refresh TABLE)"


class UnknownStreamOptionError(MillpondError, ValueError):
    """A streaming read has an option that does not exist."""

    error_class = "STREAM_OPTION_UNKNOWN"
    sqlstate = "42616"

    @classmethod
    def from_option(
        cls, option: str, *, known: Iterable[str], where: SourceLocation | None = None
    ) -> Self:
        known = sorted(known)
        meant = did_you_mean(option, known)
        hint = f"did you mean {meant}?" if meant else f"the options are {', '.join(known)}"
        return cls(
            f"A streaming read of a Delta table has no option {option!r}.", hint=hint, where=where
        )


class UnsupportedStreamOptionError(MillpondError, NotImplementedError):
    """A streaming read has an option of Delta's that millpond does not offer."""

    error_class = "STREAM_OPTION_UNSUPPORTED"
    sqlstate = "0A000"

    @classmethod
    def from_option(cls, option: str, *, instead: str, where: SourceLocation | None = None) -> Self:
        return cls(
            f"The option {option} is not supported for a streaming read.",
            hint=instead,
            where=where,
        )


class InvalidStreamOptionError(MillpondError, ValueError):
    """An option of a streaming read has a value that it can't have."""

    error_class = "STREAM_OPTION_INVALID"
    sqlstate = "42616"

    @classmethod
    def from_value(
        cls, option: str, value: str, *, must_be: str, where: SourceLocation | None = None
    ) -> Self:
        return cls(
            f"{value!r} is not a value for the option {option}.",
            hint=f"it must be {must_be}",
            where=where,
        )

    @classmethod
    def from_two_starts(cls, *, where: SourceLocation | None = None) -> Self:
        return cls(
            "A streaming read can't have both startingVersion and startingTimestamp.",
            hint="keep the one that says where the stream begins",
            where=where,
        )


class StreamStartNotFoundError(MillpondError, LookupError):
    """A stream is told to start at a version that the table has not got, or has no longer."""

    error_class = "STREAM_START_NOT_FOUND"
    sqlstate = "22003"

    @classmethod
    def from_version(cls, source: str, version: int, *, earliest: int, latest: int) -> Self:
        return cls(
            f"The stream over {source} can't start at version {version}: its log holds the "
            f"versions {earliest} to {latest}.",
            hint="set startingVersion to one of those, or leave it out to read the whole table",
        )

    @classmethod
    def from_timestamp(cls, source: str, timestamp: str, *, first: str, last: str) -> Self:
        return cls(
            f"The stream over {source} can't start at {timestamp}: its log holds commits from "
            f"{first} to {last}.",
            hint="set startingTimestamp to a time between those, or leave it out to read the "
            "whole table",
        )


class StreamSourceChangedError(MillpondError, RuntimeError):
    """A commit updated or deleted rows of a table that is read as a stream."""

    error_class = "STREAM_SOURCE_CHANGED"
    sqlstate = "0A000"

    @classmethod
    def from_commit(cls, source: str, version: int, *, operation: str, only_removes: bool) -> Self:
        verb = "removed rows from" if only_removes else "changed or removed rows of"
        also = " or ignoreDeletes" if only_removes else ""
        return cls(
            f"At version {version}, {operation} {verb} {source}; a streaming read takes rows "
            "that are added and can't take rows back.",
            hint=f"set the option skipChangeCommits{also} to read past such commits, read the "
            f"table without streaming in a materialized view, or run {FULL_REFRESH} to read the "
            "table as it is now",
        )


class StreamSourceSchemaError(MillpondError, RuntimeError):
    """The columns of a stream's source changed in a way that its rows can't be read across."""

    error_class = "STREAM_SOURCE_SCHEMA_CHANGED"
    sqlstate = "KD007"

    @classmethod
    def from_change(cls, source: str, *, change: str, version: int | None = None) -> Self:
        at = f" at version {version}" if version is not None else ""
        return cls(
            f"The columns of {source} changed{at} so that the rows before and after can't be read "
            f"as one stream: {change}.",
            hint=f"undo the change, or run {FULL_REFRESH}; new columns alone need neither",
        )


class StreamSourceFileUnreadableError(MillpondError, ValueError):
    """A data file of a stream's source is damaged, or holds other columns than the table."""

    error_class = "STREAM_SOURCE_FILE_UNREADABLE"
    sqlstate = "22000"

    @classmethod
    def from_file(cls, path: Path, *, reason: str) -> Self:
        return cls(
            f"The data file {path} can't be read: {reason}.",
            hint="bring the file back from a copy; no row of the batch was applied",
        )

    @classmethod
    def from_rows(cls, table: Path, *, reason: str) -> Self:
        return cls(
            f"A data file of {table} can't be read with the table's columns: {reason}.",
            hint="bring the file back from a copy; no row of the batch was applied",
        )


class StreamSourceWentBackError(MillpondError, RuntimeError):
    """A stream's source is older than what was already read of it."""

    error_class = "STREAM_SOURCE_WENT_BACK"

    @classmethod
    def from_versions(cls, source: str, *, read: int, latest: int) -> Self:
        return cls(
            f"The stream over {source} has read version {read}, but the table's newest version "
            f"is {latest}; an older copy was put in its place.",
            hint=f"bring the newer copy back, or run {FULL_REFRESH}",
        )


class CheckpointUnreadableError(MillpondError, ValueError):
    """A file of a checkpoint is torn, or is not what it should be."""

    error_class = "CHECKPOINT_UNREADABLE"
    sqlstate = "22000"

    @classmethod
    def from_file(cls, path: Path, *, reason: str) -> Self:
        return cls(
            f"The checkpoint file {path} can't be read: {reason}.",
            hint=f"bring the file back from a copy, or run {FULL_REFRESH}; don't remove it: the "
            "stream would lose its place",
        )

    @classmethod
    def from_streams(cls, path: Path, *, reason: str) -> Self:
        return cls(
            f"The checkpoint file {path} can't be read: it does not name the streams of a flow "
            f"({reason}).",
            hint="bring the file back from a copy; or, if the flow reads each table, folder and "
            "topic with one set of options only, remove it: the streams then go on by their names; "
            f"else run {FULL_REFRESH}",
        )

    @classmethod
    def from_offset(cls, offset: object) -> Self:
        return cls(
            f"The checkpoint of a stream over a Delta table holds {offset!r}, which is no place "
            "in such a stream.",
            hint=f"bring the checkpoint back from a copy, or run {FULL_REFRESH}",
        )

    @classmethod
    def from_format(cls, path: Path, *, found: object, known: int) -> Self:
        return cls(
            f"The checkpoint file {path} is of format {found!r}; this millpond reads format "
            f"{known}.",
            hint="a newer millpond wrote it: use that version or a newer one",
        )


class CheckpointSourceChangedError(MillpondError, ValueError):
    """A flow no longer reads what its checkpoint says it reads."""

    error_class = "CHECKPOINT_SOURCE_CHANGED"

    @classmethod
    def from_removed(cls, sources: Iterable[str], *, now: Iterable[str]) -> Self:
        """Build the error.

        Args:
            sources: Names of what is no longer read.
            now: All that is read as a stream now.
        """
        gone, there = ", ".join(sorted(sources)), ", ".join(sorted(now))
        return cls(
            f"The flow no longer reads {gone} as a stream, which it has read so far; what it reads "
            f"now is {there}.",
            hint=f"read it under its former name or path again, run {FULL_REFRESH}, or feed the "
            "table from a new flow under another name, which reads all from the beginning",
        )

    @classmethod
    def from_removed_read(cls, place: str, *, removed: Iterable[str], now: Iterable[str]) -> Self:
        """Build the error.

        Args:
            place: What the flow still reads, but in fewer ways.
            removed: Names of those ways that are gone, as far as they tell something.
            now: Those that there are, with their options.
        """
        names = ", ".join(sorted(removed))
        gone = f" ({names})" if names else ""
        return cls(
            f"The flow no longer reads {place} in one of the ways in which it has read it so far"
            f"{gone}; what it reads now is {', '.join(sorted(now))}.",
            hint=f"read it with its former options again, too, run {FULL_REFRESH}, or feed the "
            "table from a new flow under another name, which reads all from the beginning",
        )

    @classmethod
    def from_unclear(cls, place: str, *, now: Iterable[str]) -> Self:
        """Build the error.

        Args:
            place: What several streams of the flow read.
            now: Those that could be one that it has read so far, with their options.
        """
        return cls(
            f"The flow has read {place} before, but with other options, and it can't be told which "
            f"of its streams went on with others: {', '.join(sorted(now))}.",
            hint="give the streams their former options again, then change those of one at a time, "
            f"and add a further one, with an update between; or run {FULL_REFRESH}",
        )

    @classmethod
    def from_moved(cls, place: str, *, now: Iterable[str]) -> Self:
        """Build the error.

        Args:
            place: What several streams of the flow read.
            now: All of them in the order of their reads, with the options that tell them apart.
        """
        return cls(
            f"Reads of {place} were changed or added, and the former ones no longer come first, in "
            f"their former order: {', '.join(now)}. It can't be told whether a read moved, or got "
            "the options of another.",
            hint="keep the order of the reads while you change or add one, and put a new one after "
            "them; change the order in an edit of its own, with an update between; or run "
            f"{FULL_REFRESH}",
        )

    @classmethod
    def from_parted(cls, place: str, *, now: Iterable[str]) -> Self:
        """Build the error.

        Args:
            place: What streams of the flow read.
            now: Those that it has not read before, with their options.
        """
        return cls(
            f"The flow has read {place} at several places with equal options, as one stream, and "
            f"reads it at fewer now, but with other options as well: {', '.join(sorted(now))}. It "
            "would read from the beginning what may have been read there.",
            hint="give the reads equal options again; if another read is meant to go, and a "
            f"further one to come, do it with an update between; or run {FULL_REFRESH}",
        )

    @classmethod
    def from_identity(cls, source: str, *, before: str, now: str) -> Self:
        return cls(
            f"{source} is no longer what the flow has read so far (it is {now}, and was "
            f"{before}): a table was dropped and made anew, or the query reads something else "
            "under that name.",
            hint=f"run {FULL_REFRESH}",
        )


class CheckpointBehindTableError(MillpondError, RuntimeError):
    """The table holds a batch that its checkpoint does not know of."""

    error_class = "CHECKPOINT_BEHIND_TABLE"

    @classmethod
    def from_batches(cls, folder: Path, *, planned: int | None, committed: int) -> Self:
        newest = "holds no batch" if planned is None else f"ends at batch {planned}"
        return cls(
            f"The table holds batch {committed} of the flow, but its checkpoint {folder} "
            f"{newest}: the checkpoint was lost, or an older copy was put in its place.",
            hint="bring the newer checkpoint back, or run "
            f"{FULL_REFRESH}; going on would read rows a second time",
        )


class CheckpointAheadOfTableError(MillpondError, RuntimeError):
    """Batches that a table lacks are no longer in its checkpoint."""

    error_class = "CHECKPOINT_AHEAD_OF_TABLE"

    @classmethod
    def from_batches(cls, folder: Path, *, planned: int, committed: int | None, gone: int) -> Self:
        holds = "no batch" if committed is None else f"batch {committed} as its newest"
        return cls(
            f"The table holds {holds} of the flow, but its checkpoint {folder} is at batch "
            f"{planned} and no longer has batch {gone}: an older copy of the table was put in "
            "its place.",
            hint=f"bring the newer table back, or run {FULL_REFRESH}; going on would lose rows",
        )


class CheckpointConflictError(MillpondError, RuntimeError):
    """Two updates planned the same batch of one flow."""

    error_class = "CHECKPOINT_CONFLICT"
    sqlstate = "55006"

    @classmethod
    def from_batch(cls, path: Path) -> Self:
        return cls(
            f"Another update planned the same batch at the same time: {path} was just written.",
            hint="run one update of a pipeline at a time, then run again",
        )
