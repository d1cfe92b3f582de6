"""A Delta table as the source of a stream: what is there first, then what is added later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from millpond.delta import Snapshot, Table
from millpond.engine.protocol import Input
from millpond.errors import MillpondError
from millpond.errors.streaming import StreamSourceSchemaError, StreamStartNotFoundError
from millpond.streaming.column_change import incompatible_change
from millpond.streaming.delta_offset import DeltaOffset
from millpond.streaming.delta_rows import rows_input
from millpond.streaming.options import LATEST, DeltaReadOptions
from millpond.streaming.source import DataSize, Offset
from millpond.streaming.source_files import SourceFiles, VersionFiles

# A batch is planned for this many commits without rows. Else each update would read them all
# again, and a clean-up of the source's log would leave the stream behind.
COMMITS_WITHOUT_ROWS = 50


@dataclass(frozen=True)
class _Captured:
    """The table as this update sees it."""

    snapshot: Snapshot
    files: SourceFiles


@dataclass(frozen=True)
class _Range:
    start: DeltaOffset
    end: DeltaOffset
    versions: tuple[VersionFiles, ...]


class DeltaSource:
    """A `StreamSource` over one Delta table.

    All batches of an update are read with the columns that the table has when the update starts,
    so that the query sees the same columns in each.
    """

    def __init__(
        self,
        table: Table,
        options: Mapping[str, str] | None = None,
        *,
        name: str | None = None,
        flow: str | None = None,
    ) -> None:
        """Set up a stream; reads nothing yet.

        Args:
            table: The table.
            options: Reader options as the user gave them.
            name: The table's name, for messages.
            flow: The flow that reads the stream, for messages.

        Raises:
            MillpondError: As for `DeltaReadOptions.parse`.
        """
        self._table = table
        self._options = DeltaReadOptions.parse(options or {})
        self._label = name or str(table.path)
        if flow is not None:
            self._label += f" (a stream of flow {flow})"
        self._capture: _Captured | None = None
        self._planned: _Range | None = None

    @property
    def identity(self) -> str:
        return self._captured.snapshot.metadata.id

    @property
    def starts_midway(self) -> bool:
        return self._options.starts_midway

    @property
    def _captured(self) -> _Captured:
        if self._capture is None:
            # What a batch was planned over must not be lost while the plan stays.
            snapshot = self._table.durable_snapshot()
            files = SourceFiles(self._table, self._options, snapshot, label=self._label)
            self._capture = _Captured(snapshot, files)
        return self._capture

    def columns(self) -> Mapping[str, Any]:
        columns: dict[str, Any] = self._captured.snapshot.metadata.schema.jsonValue()
        return columns

    def check_columns(self, earlier: Mapping[str, Any]) -> None:
        from pyspark.sql.types import StructType

        if not earlier or earlier == self.columns():
            return
        now = self._captured.snapshot.metadata.schema
        change = incompatible_change(StructType.fromJson(dict(earlier)), now)
        if change is not None:
            raise StreamSourceSchemaError.from_change(self._label, change=change)

    def latest_offset(self) -> Offset:
        self._capture = None
        self._planned = None
        return DeltaOffset(self._captured.snapshot.version + 1).to_json()

    def first_offset(self, end: Offset) -> Offset:
        """Where a new stream begins.

        Raises:
            StreamStartNotFoundError: The options name a version or a time that the table has not.
        """
        latest = DeltaOffset.from_json(end).version - 1
        start = self._options.starting_version
        if isinstance(start, int):
            earliest = self._table.earliest_version()
            if not earliest <= start <= latest:
                raise StreamStartNotFoundError.from_version(
                    self._label, start, earliest=earliest, latest=latest
                )
            return DeltaOffset(start).to_json()
        if start == LATEST:
            return DeltaOffset(latest + 1).to_json()
        if self._options.starting_timestamp is not None:
            version = self._version_at(self._options.starting_timestamp, latest=latest)
            return DeltaOffset(version).to_json()
        return DeltaOffset(latest, initial_snapshot=True).to_json()

    def next_offset(self, start: Offset, end: Offset) -> Offset | None:
        """The end of the next batch, bounded by the options; at least one file goes.

        A commit that stops the stream is raised only once all before it has been read.
        """
        room = _Room(self._options)
        begin, limit = DeltaOffset.from_json(start), DeltaOffset.from_json(end)
        position = begin
        taken: list[VersionFiles] = []
        try:
            for version in self._captured.files.between(begin, limit):
                fitting = room.admit(version)
                taken.append(replace(version, files=version.files[:fitting]))
                if fitting < len(version.files):
                    index = version.first_index + fitting - 1
                    position = DeltaOffset(version.version, index, version.initial_snapshot)
                    break
                position = DeltaOffset(version.version + 1)
        except MillpondError:
            if not room.files_taken:
                raise
        if not room.files_taken and position.version - begin.version < COMMITS_WITHOUT_ROWS:
            return None
        self._planned = _Range(begin, position, tuple(taken))
        return position.to_json()

    def size(self, start: Offset, end: Offset) -> DataSize:
        versions = self._versions(DeltaOffset.from_json(start), DeltaOffset.from_json(end))
        if versions is None:
            begin, limit = DeltaOffset.from_json(start), DeltaOffset.from_json(end)
            return sum(
                map(_size, self._captured.files.between(begin, limit, check=False)), DataSize()
            )
        return sum(map(_size, versions), DataSize())

    def input(self, start: Offset, end: Offset, *, folder: Path) -> Input:
        """The rows of a range.

        Raises:
            MillpondError: As for `SourceFiles.between`, and where a data file is gone.
        """
        begin, limit = DeltaOffset.from_json(start), DeltaOffset.from_json(end)
        versions = self._versions(begin, limit)
        if versions is None:
            versions = tuple(self._captured.files.between(begin, limit))
        return rows_input(
            self._captured.snapshot,
            [version.files for version in versions],
            folder=folder,
            store=self._table.store,
        )

    def finish(self) -> None:
        """Nothing is left to be done."""

    def _versions(self, start: DeltaOffset, end: DeltaOffset) -> tuple[VersionFiles, ...] | None:
        """The files of the range that was planned last, to spare a second look at the log."""
        planned = self._planned
        if planned is not None and (planned.start, planned.end) == (start, end):
            return planned.versions
        return None

    def _version_at(self, time: datetime, *, latest: int) -> int:
        """The first version committed at `time` or later."""
        wanted_ms = time.timestamp() * 1000
        earliest = self._table.earliest_version()
        first_ms = last_ms = None
        for commit in self._table.commits(after=earliest - 1, until=latest):
            # Clocks go back now and then; the times of commits, as Delta sees them, never do.
            last_ms = commit.timestamp_ms if last_ms is None else max(commit.timestamp_ms, last_ms)
            first_ms = last_ms if first_ms is None else first_ms
            if last_ms >= wanted_ms:
                if commit.version == earliest > 0 and last_ms > wanted_ms:
                    break
                return commit.version
        raise StreamStartNotFoundError.from_timestamp(
            self._label,
            time.isoformat(),
            first=_iso(first_ms or 0),
            last=_iso(self._captured.snapshot.timestamp_ms),
        )


class _Room:
    """What still fits into a batch."""

    def __init__(self, options: DeltaReadOptions) -> None:
        self.files_taken = 0
        self._bytes_taken = 0
        self._options = options

    def admit(self, version: VersionFiles) -> int:
        """Take as many files as fit, in order, and return their number."""
        for number, file in enumerate(version.files):
            size_bytes = self._bytes_taken + file.size_bytes
            full = self.files_taken >= self._options.max_files or (
                size_bytes > self._options.max_bytes
            )
            if full and self.files_taken:
                return number
            self.files_taken += 1
            self._bytes_taken = size_bytes
        return len(version.files)


def _size(version: VersionFiles) -> DataSize:
    return DataSize(len(version.files), sum(file.size_bytes for file in version.files))


def _iso(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, tz=UTC).isoformat(timespec="milliseconds")
