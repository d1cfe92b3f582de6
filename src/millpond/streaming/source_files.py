"""Which data files of a Delta table a stream reads, in which order, and which commits stop it.

Follows Delta's streaming source: the files of the initial snapshot by modification time and path,
then the files that each commit adds, in the order of its log entry. A commit that only moves rows
(`dataChange` is false, as for OPTIMIZE) is read as an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millpond.delta import AddFile, Commit, Metadata, Snapshot, Table
from millpond.errors.streaming import (
    CheckpointSourceChangedError,
    StreamSourceChangedError,
    StreamSourceSchemaError,
    StreamSourceWentBackError,
)
from millpond.streaming.column_change import incompatible_change
from millpond.streaming.delta_offset import DeltaOffset
from millpond.streaming.options import DeltaReadOptions


@dataclass(frozen=True)
class VersionFiles:
    """The files that a stream reads of one version, from `first_index` on."""

    version: int
    initial_snapshot: bool
    first_index: int
    files: tuple[AddFile, ...]


class SourceFiles:
    """The files of one table as a stream sees them, read with the columns of `snapshot`."""

    def __init__(
        self, table: Table, options: DeltaReadOptions, snapshot: Snapshot, *, label: str
    ) -> None:
        self._table = table
        self._label = label
        self._options = options
        self._snapshot = snapshot
        self._initial: tuple[int, tuple[AddFile, ...]] | None = None

    def between(
        self, start: DeltaOffset, end: DeltaOffset, *, check: bool = True
    ) -> Iterator[VersionFiles]:
        """Give the files after `start`, up to and including `end`, version by version.

        Raises:
            StreamSourceWentBackError: The table has not got the versions asked for.
            StreamSourceChangedError: A commit changes rows, and the options don't allow it.
            StreamSourceSchemaError: The columns changed, and not only by new ones.
            CheckpointSourceChangedError: A commit makes it another table.
            CommitsExpiredError: Versions that are needed are gone from the log.
        """
        latest = self._snapshot.version
        if max(start.last_version, end.last_version) > latest:
            raise StreamSourceWentBackError.from_versions(
                self._label,
                read=max(start.last_version, end.last_version),
                latest=latest,
            )
        first = start.version
        if start.initial_snapshot and end.position > start.position:
            files = self._initial_files(start.version)
            yield _cut(start.version, files, start, end, initial_snapshot=True)
            first += 1
        if start.initial_snapshot and end.initial_snapshot:
            return
        if first <= end.last_version:
            for commit in self._table.commits(after=first - 1, until=end.last_version):
                if check:
                    self._check(commit)
                yield _cut(commit.version, self._added(commit), start, end)

    def _initial_files(self, version: int) -> tuple[AddFile, ...]:
        """The files of the table at a version; the order must be the same in each update."""
        if self._initial is None or self._initial[0] != version:
            snapshot = self._snapshot
            if snapshot.version != version:
                snapshot = self._table.snapshot_at(version)
                self._check_metadata(snapshot.metadata, version=version)
            files = sorted(
                snapshot.files.values(), key=lambda file: (file.modification_time_ms, file.path)
            )
            self._initial = (version, tuple(files))
        return self._initial[1]

    def _added(self, commit: Commit) -> tuple[AddFile, ...]:
        if self._options.skip_change_commits and _removes_rows(commit):
            return ()
        return tuple(file for file in commit.adds if file.data_change)

    def _check(self, commit: Commit) -> None:
        if commit.metadata is not None:
            self._check_metadata(commit.metadata, version=commit.version)
        if not _removes_rows(commit) or self._options.allows_changes:
            return
        only_removes = not any(file.data_change for file in commit.adds)
        if only_removes and self._options.ignore_deletes:
            return
        raise StreamSourceChangedError.from_commit(
            self._label,
            commit.version,
            operation=str(commit.commit_info.get("operation") or "unknown operation"),
            only_removes=only_removes,
        )

    def _check_metadata(self, metadata: Metadata, *, version: int) -> None:
        now = self._snapshot.metadata
        if metadata.id != now.id:
            raise CheckpointSourceChangedError.from_identity(
                self._label, before=metadata.id, now=now.id
            )
        change = incompatible_change(metadata.schema, now.schema)
        if change is None and metadata.partition_columns != now.partition_columns:
            change = "it is partitioned by other columns"
        if change is not None:
            raise StreamSourceSchemaError.from_change(self._label, change=change, version=version)


def _removes_rows(commit: Commit) -> bool:
    return any(file.data_change for file in commit.removes)


def _cut(
    version: int,
    files: tuple[AddFile, ...],
    start: DeltaOffset,
    end: DeltaOffset,
    *,
    initial_snapshot: bool = False,
) -> VersionFiles:
    begins_here = version == start.version and initial_snapshot == start.initial_snapshot
    first = start.index + 1 if begins_here else 0
    stop = end.index + 1 if version == end.version else len(files)
    return VersionFiles(version, initial_snapshot, first, files[first:stop])
