"""A Delta table in a folder: its newest state, its commits, its creation."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from millpond.delta.actions import Commit, Metadata, Protocol, RemoveFile
from millpond.delta.checkpoints import read_checkpoint, read_tombstones, told_of_checkpoint
from millpond.delta.features import (
    check_readable,
    check_writable,
    required_protocol,
    unsupported_in,
)
from millpond.delta.log import (
    LOG_FOLDER,
    Checkpoint,
    EntryIdentity,
    LogListing,
    entry_identity,
    entry_path,
    file_time_ms,
    list_log,
    read_commit,
)
from millpond.delta.schema import check_schema
from millpond.delta.snapshot import Replay, Snapshot, advance
from millpond.delta.transaction import (
    Transaction,
    as_read_back,
    encode_commit,
    uses_in_commit_timestamps,
)
from millpond.errors.delta import (
    CommitsExpiredError,
    CorruptLogError,
    DeltaTableExistsError,
    DeltaTableNotFoundError,
    UnsupportedTableFeatureError,
)
from millpond.storage import LocalStore, Store


def check_definition(path: Path, metadata: Metadata) -> Protocol:
    """Return the protocol that a new table of this kind gets.

    Raises:
        InvalidTableSchemaError: No table may have these columns.
        UnsupportedTableFeatureError: Its properties ask for what millpond can't do.
    """
    check_schema(metadata.schema, metadata.partition_columns)
    protocol = required_protocol(metadata)
    unsupported = unsupported_in(protocol, metadata)
    if unsupported:
        raise UnsupportedTableFeatureError.for_making(path, unsupported)
    return protocol


class Table:
    """A Delta table that other writers may change at any time. Safe to use from several threads.

    Attributes:
        path: The table's folder, which need not exist yet.
        store: Through which the log is read and written.
    """

    def __init__(self, path: Path, store: Store | None = None) -> None:
        self.path = path
        self.store: Store = store if store is not None else LocalStore()
        self._lock = threading.RLock()
        self._newest: Snapshot | None = None
        self._durable: EntryIdentity | None = None

    def exists(self) -> bool:
        """Whether there is a table, which may or may not be readable."""
        if self.store.exists(entry_path(self.path, 0)):
            return True
        listing = list_log(self.path, self.store)
        return bool(listing.entries or listing.checkpoints)

    def snapshot(self) -> Snapshot:
        """Return the newest state; when nothing is new, at the cost of two look-ups.

        Raises:
            DeltaTableNotFoundError: There is no table.
            CorruptLogError: The log can't be read, or has gaps.
            UnsupportedTableFeatureError: The table needs a reader that can do more.
        """
        with self._lock:
            newest = self._newest
            if newest is None or not self.is_unreplaced(newest):
                newest = self._load(None)
            while self.store.exists(entry_path(self.path, newest.version + 1)):
                newest = self._advance(newest)
            self._newest = newest
            return newest

    def durable_snapshot(self) -> Snapshot:
        """Return the newest state, durable: for work that must not outlive what it rests on.

        An entry can be read before its name is durable, as long as its writer is at it, and for
        good if its writer died.
        """
        with self._lock:
            newest = self.snapshot()
            if newest.entry_identity is None or newest.entry_identity != self._durable:
                self.store.sync_names(self.path / LOG_FOLDER)
                self._durable = newest.entry_identity
            return newest

    def snapshot_at(self, version: int) -> Snapshot:
        """Return the state as of a version.

        Raises:
            CommitsExpiredError: The log no longer reaches back so far, or never got there.
        """
        with self._lock:
            if self._newest is not None and self._newest.version == version:
                return self._newest
        return self._load(version)

    def commits(self, after: int, until: int) -> Iterator[Commit]:
        """Give the commits of the versions `after + 1` to `until`, in order.

        Raises:
            CommitsExpiredError: One of them is no longer in the log.
            CorruptLogError: One of them can't be read.
        """
        for version in range(after + 1, until + 1):
            try:
                yield read_commit(self.path, version, self.store)
            except FileNotFoundError:
                raise self._expired(version) from None

    def earliest_version(self) -> int:
        """Return the first version from which on all commits are in the log.

        Raises:
            DeltaTableNotFoundError: There is no table, or only a checkpoint is left of its log.
        """
        entries = list_log(self.path, self.store).entries
        if not entries:
            raise DeltaTableNotFoundError.at(self.path)
        earliest = entries[-1]
        for version in reversed(entries[:-1]):
            if version != earliest - 1:
                break
            earliest = version
        return earliest

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """Return the complete checkpoints of the log, ascending by version."""
        return list_log(self.path, self.store).checkpoints

    def last_version_at(self, time_ms: int) -> int | None:
        """Return the newest version that was committed up to a time, `None` if none that is known.

        Clocks go back now and then; the times of commits, as Delta sees them, never do.
        """
        found = None
        dated = uses_in_commit_timestamps(self.snapshot().metadata)
        for version in list_log(self.path, self.store).entries:
            commit_ms = (
                self._read(version).timestamp_ms
                if dated
                else file_time_ms(entry_path(self.path, version))
            )
            if commit_ms > time_ms:
                break
            found = version
        return found

    def state_from(self, checkpoint: Checkpoint) -> Snapshot:
        """Return the newest state as one checkpoint and the entries after it give it.

        Raises:
            CorruptLogError: They can't be read, or some are missing.
        """
        return self._replay(checkpoint, self.snapshot().version)

    def tombstones(self) -> Iterator[tuple[RemoveFile, int]]:
        """Give files that are no longer in the table, each with the time when it ended.

        They are those that the newest checkpoint still knows, which are at least all that ended
        within the retention time of deleted files, and those that ended since.

        Raises:
            CorruptLogError: The checkpoint or an entry can't be read.
        """
        version = self.snapshot().version
        bases = [base for base in self.checkpoints() if base.version <= version]
        if bases:
            now_ms = time.time_ns() // 1_000_000
            for file in read_tombstones(self.path, bases[-1], self.store):
                yield file, file.deletion_time_ms or now_ms
        first = bases[-1].version + 1 if bases else 0
        for number in range(first, version + 1):
            commit = self._read(number)
            for file in commit.removes:
                yield file, max(file.deletion_time_ms or 0, commit.timestamp_ms)

    def create(self, metadata: Metadata) -> Snapshot:
        """Create an empty table. Deletion vectors are on unless the properties turn them off.

        Raises:
            DeltaTableExistsError: There is a table, which is left as it was.
            InvalidTableSchemaError: No table may have these columns.
        """
        configuration = {"delta.enableDeletionVectors": "true", **metadata.configuration}
        now_ms = time.time_ns() // 1_000_000
        created_ms = metadata.created_time_ms or now_ms
        metadata = replace(metadata, configuration=configuration, created_time_ms=created_ms)
        protocol = check_definition(self.path, metadata)
        if self.exists():
            raise DeltaTableExistsError.at(self.path)
        commit, data = encode_commit(
            version=0,
            timestamp_ms=now_ms,
            operation="CREATE TABLE",
            parameters={"partitionBy": list(metadata.partition_columns)},
            protocol=protocol,
            metadata=metadata,
            in_commit_timestamp=uses_in_commit_timestamps(metadata),
        )
        try:
            self.store.put_if_absent(entry_path(self.path, 0), data)
        except FileExistsError:
            raise DeltaTableExistsError.at(self.path) from None
        replay = Replay(self.path)
        identity = entry_identity(self.path, 0)
        replay.apply(as_read_back(commit, identity))
        return self.publish(replay.finish(identity))

    def begin(self) -> Transaction:
        """Start a change to the newest state.

        Raises:
            UnsupportedTableFeatureError: The table needs a writer that can do more.
        """
        snapshot = self.durable_snapshot()
        check_writable(self.path, snapshot.protocol, snapshot.metadata)
        return Transaction(self, snapshot)

    def publish(self, snapshot: Snapshot) -> Snapshot:
        """Take over a state that a commit made durable, unless a newer one is known."""
        with self._lock:
            if self._newest is None or self._newest.version < snapshot.version:
                self._newest = snapshot
                self._durable = snapshot.entry_identity
        return snapshot

    def is_unreplaced(self, snapshot: Snapshot) -> bool:
        """Whether the log still holds the very entry that made `snapshot`."""
        identity = snapshot.entry_identity
        return identity is not None and identity == entry_identity(self.path, snapshot.version)

    def _advance(self, snapshot: Snapshot) -> Snapshot:
        version = snapshot.version + 1
        identity = entry_identity(self.path, version)
        following = advance(snapshot, read_commit(self.path, version, self.store), identity)
        check_readable(self.path, following.protocol, following.metadata)
        return following

    def _load(self, until: int | None) -> Snapshot:
        """Read the log from the newest usable checkpoint, up to `until` or its end."""
        listing = list_log(self.path, self.store)
        if not listing.entries and not listing.checkpoints:
            self._newest = None
            raise DeltaTableNotFoundError.at(self.path)
        newest = max(listing.entries[-1:] + tuple(c.version for c in listing.checkpoints[-1:]))
        if until is not None and not 0 <= until <= newest:
            raise self._expired(until)
        target = newest if until is None else until
        bases = [c for c in reversed(listing.checkpoints) if c.version <= target]
        snapshot = self._replay_from_any(bases, listing, target, is_newest=until is None)
        check_readable(self.path, snapshot.protocol, snapshot.metadata)
        return snapshot

    def _replay_from_any(
        self, bases: list[Checkpoint], listing: LogListing, target: int, *, is_newest: bool
    ) -> Snapshot:
        """Replay from the newest checkpoint; where that one is damaged, from an older one."""
        first_error: CorruptLogError | None = None
        for base in [*bases, None]:
            start = base.version + 1 if base is not None else 0
            if not set(range(start, target + 1)) <= set(listing.entries):
                break  # older checkpoints only need more of the entries
            try:
                return self._replay(base, target)
            except CorruptLogError as error:
                first_error = first_error or error
        if first_error is not None:
            raise first_error
        if not is_newest:
            raise self._expired(target)
        raise CorruptLogError.incomplete(
            self.path / LOG_FOLDER,
            reason=f"entries before version {target} are missing, with no checkpoint after them",
        )

    def _replay(self, base: Checkpoint | None, target: int) -> Snapshot:
        replay = Replay(self.path)
        if base is not None:
            with told_of_checkpoint(self.path, base):
                replay.load(read_checkpoint(self.path, base, self.store), version=base.version)
            replay.timestamp_ms = self._checkpoint_time_ms(base, replay.metadata)
        for version in range(replay.version + 1, target + 1):
            replay.apply(self._read(version))
        return replay.finish(entry_identity(self.path, target))

    def _read(self, version: int) -> Commit:
        try:
            return read_commit(self.path, version, self.store)
        except FileNotFoundError:
            raise CorruptLogError.incomplete(
                self.path / LOG_FOLDER, reason=f"the entry of version {version} is missing"
            ) from None

    def _checkpoint_time_ms(self, base: Checkpoint, metadata: Metadata | None) -> int:
        try:
            if metadata is not None and uses_in_commit_timestamps(metadata):
                return read_commit(self.path, base.version, self.store).timestamp_ms
            return file_time_ms(entry_path(self.path, base.version))
        except FileNotFoundError:
            return file_time_ms(self.path / LOG_FOLDER / base.names[0])

    def _expired(self, version: int) -> CommitsExpiredError:
        entries = list_log(self.path, self.store).entries
        earliest = entries[0] if entries else -1
        return CommitsExpiredError.missing(self.path, version=version, earliest=earliest)
