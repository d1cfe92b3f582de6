"""One change to a table: collected in memory, then written as one log entry or not at all."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import millpond
from millpond.delta.actions import AddFile, Commit, Metadata, Protocol, RemoveFile
from millpond.delta.checkpoints import is_due, write_checkpoint
from millpond.delta.deletion_vectors import vector_path
from millpond.delta.features import check_writable, required_protocol
from millpond.delta.log import EntryIdentity, entry_identity, entry_path
from millpond.delta.schema import check_schema
from millpond.delta.snapshot import Snapshot, advance
from millpond.errors.delta import AppendOnlyTableError, CommitConflictError
from millpond.storage import Store

if TYPE_CHECKING:
    from millpond.delta.table import Table

_TIMESTAMPS_SINCE = (
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
)


class Transaction:
    """A change to one snapshot of a table. Use it once, from one thread.

    Attributes:
        table: What is changed.
        snapshot: The state that the change starts from.
    """

    def __init__(self, table: Table, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.table = table
        self._adds: dict[str, AddFile] = {}
        self._removes: dict[str, tuple[AddFile, bool]] = {}
        self._metadata: Metadata | None = None
        self._app_versions: dict[str, int] = {}

    @property
    def store(self) -> Store:
        """Of the table."""
        return self.table.store

    def add(self, file: AddFile) -> None:
        """Add a data file, or one of the snapshot with another deletion vector.

        In the second case the file as it was must be removed in the same transaction.
        """
        if file.path in self._adds:
            raise ValueError(f"{file.path} is added twice")
        self._adds[file.path] = file

    def remove(self, file: AddFile, *, data_change: bool = True) -> None:
        """End a file of the snapshot.

        Args:
            file: The file as the snapshot has it.
            data_change: `False` where its rows only move to files that are added.
        """
        if self.snapshot.files.get(file.path) != file:
            raise ValueError(f"{file.path} is no file of version {self.snapshot.version}")
        self._removes[file.path] = (file, data_change)

    def set_metadata(self, metadata: Metadata) -> None:
        """Replace schema, partitioning and properties. The protocol is raised where they need it.

        Where the schema widens a column's type, the files that stay are written anew on commit,
        unless the table uses Delta's type widening feature.

        Raises:
            InvalidTableSchemaError: No table may have these columns.
        """
        check_schema(metadata.schema, metadata.partition_columns)
        self._metadata = metadata

    def set_app_version(self, app_id: str, version: int) -> None:
        """Record in the same commit how far an application has come."""
        self._app_versions[app_id] = version

    def commit(
        self,
        operation: str,
        *,
        parameters: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
    ) -> Snapshot:
        """Write the change as the version after the snapshot's, and return the new state.

        Every file that it names must be durable by now.

        Raises:
            CommitConflictError: Another writer took the version; nothing was applied.
            AppendOnlyTableError: Rows would be removed from a table that forbids it.
            UnsupportedTableFeatureError: The new metadata asks for what millpond can't honour.
            SchemaChangeNotAllowedError: Files that stay do not fit the new metadata.
        """
        self._fit_files_to_schema()
        self._check_files()
        metadata = self._metadata or self.snapshot.metadata
        protocol = required_protocol(metadata, self.snapshot.protocol)
        check_writable(self.snapshot.path, protocol, metadata)
        version = self.snapshot.version + 1
        now_ms = time.time_ns() // 1_000_000
        if uses_in_commit_timestamps(metadata):
            # They must rise even where the clock goes back.
            now_ms = max(now_ms, self.snapshot.timestamp_ms + 1)
        self._note_in_commit_timestamps(version, now_ms)
        commit, data = encode_commit(
            version=version,
            timestamp_ms=now_ms,
            operation=operation,
            parameters=parameters or {},
            metrics=metrics or {},
            protocol=protocol if protocol != self.snapshot.protocol else None,
            metadata=self._metadata,
            adds=tuple(self._adds.values()),
            removes=tuple(
                RemoveFile.of(file, time_ms=now_ms, data_change=data_change)
                for file, data_change in self._removes.values()
            ),
            app_versions=self._app_versions,
            in_commit_timestamp=uses_in_commit_timestamps(metadata),
        )
        self._put(version, data)
        identity = entry_identity(self.snapshot.path, version)
        commit = as_read_back(commit, identity)
        snapshot = self.table.publish(advance(self.snapshot, commit, identity))
        if is_due(snapshot):
            write_checkpoint(snapshot, self.table.store)
        return snapshot

    def discard(self) -> None:
        """Remove the files that were written for this change, after its commit conflicted."""
        written: set[Path] = set()
        for path, file in self._adds.items():
            before = self.snapshot.files.get(path)
            if before is None:
                written.add(self.snapshot.file_path(file))
            vector = file.deletion_vector
            if vector is not None and (before is None or before.deletion_vector != vector):
                written.add(vector_path(self.snapshot.path, vector))
        for written_path in written:
            self.table.store.remove(written_path)

    def _fit_files_to_schema(self) -> None:
        if self._metadata is None:
            return
        from millpond.delta import type_changes

        kept = [file for path, file in self.snapshot.files.items() if path not in self._removes]
        readded = self._adds.keys() & self.snapshot.files.keys()
        current = self.snapshot.metadata
        if not (kept or readded):
            if not type_changes.uses_widening(self._metadata):
                self._metadata = type_changes.without_type_changes(self._metadata)
            return
        type_changes.check_change(current, self._metadata)
        if not type_changes.needs_rewrite(current, self._metadata):
            return
        if readded:
            raise ValueError("rows can't be deleted by vector in a commit that widens a type")
        self._metadata = type_changes.without_type_changes(self._metadata)
        store = self.table.store
        for file in type_changes.rewrite_files(self.snapshot, kept, self._metadata, store):
            self.add(file)
        for file in kept:
            self.remove(file, data_change=False)

    def _note_in_commit_timestamps(self, version: int, time_ms: int) -> None:
        """Where in-commit timestamps did not begin with the table, it must say since when."""
        if self._metadata is None or not uses_in_commit_timestamps(self._metadata):
            return
        if not uses_in_commit_timestamps(self.snapshot.metadata):
            since = dict(zip(_TIMESTAMPS_SINCE, (str(version), str(time_ms)), strict=True))
        else:
            before = self.snapshot.metadata.configuration
            since = {key: before[key] for key in _TIMESTAMPS_SINCE if key in before}
        configuration = {**self._metadata.configuration, **since}
        self._metadata = replace(self._metadata, configuration=configuration)

    def _check_files(self) -> None:
        for path in self._adds.keys() & self.snapshot.files.keys():
            if path not in self._removes:
                raise ValueError(f"{path} is in the table, and is not removed")
        removes_rows = any(data_change for _, data_change in self._removes.values())
        metadata = self._metadata or self.snapshot.metadata
        still_append_only = metadata.configuration.get("delta.appendOnly") == "true"
        if removes_rows and self.snapshot.is_append_only and still_append_only:
            raise AppendOnlyTableError.at(self.snapshot.path)

    def _put(self, version: int, data: bytes) -> None:
        path = self.snapshot.path
        # Without this, a commit to a table that was removed would create half a table.
        if self.snapshot.entry_identity is not None and not self.table.is_unreplaced(self.snapshot):
            raise CommitConflictError.table_replaced(path, version=self.snapshot.version)
        try:
            self.table.store.put_if_absent(entry_path(path, version), data)
        except FileExistsError:
            raise CommitConflictError.lost_race(path, version=version) from None


def encode_commit(
    *,
    version: int,
    timestamp_ms: int,
    operation: str,
    parameters: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
    protocol: Protocol | None = None,
    metadata: Metadata | None = None,
    adds: Sequence[AddFile] = (),
    removes: Sequence[RemoveFile] = (),
    app_versions: Mapping[str, int] | None = None,
    in_commit_timestamp: bool = False,
) -> tuple[Commit, bytes]:
    """Build a log entry, as a value and as its text."""
    info: dict[str, Any] = {
        "timestamp": timestamp_ms,
        "operation": operation,
        "operationParameters": {key: _text(value) for key, value in (parameters or {}).items()},
        "operationMetrics": {key: _text(value) for key, value in (metrics or {}).items()},
        "isBlindAppend": False,
        "engineInfo": f"millpond/{millpond.__version__}",
        "txnId": str(uuid.uuid4()),
    }
    if version > 0:
        info["readVersion"] = version - 1
    if in_commit_timestamp:
        info["inCommitTimestamp"] = timestamp_ms
    commit = Commit(
        version=version,
        timestamp_ms=timestamp_ms,
        adds=tuple(adds),
        removes=tuple(removes),
        metadata=metadata,
        protocol=protocol,
        app_versions=dict(app_versions or {}),
        commit_info=info,
    )
    actions: list[dict[str, Any]] = [{"commitInfo": info}]
    if protocol is not None:
        actions.append({"protocol": protocol.to_json()})
    if metadata is not None:
        actions.append({"metaData": metadata.to_json()})
    actions += [
        {"txn": {"appId": app_id, "version": batch, "lastUpdated": timestamp_ms}}
        for app_id, batch in commit.app_versions.items()
    ]
    actions += [{"remove": remove.to_json()} for remove in commit.removes]
    actions += [{"add": add.to_json()} for add in commit.adds]
    lines = [json.dumps(action, ensure_ascii=False, separators=(",", ":")) for action in actions]
    return commit, ("\n".join(lines) + "\n").encode("utf-8")


def as_read_back(commit: Commit, identity: EntryIdentity | None) -> Commit:
    """The commit as a reader of its entry dates it: by the file, unless the entry says when."""
    if identity is None or "inCommitTimestamp" in commit.commit_info:
        return commit
    return replace(commit, timestamp_ms=identity[1] // 1_000_000)


def uses_in_commit_timestamps(metadata: Metadata) -> bool:
    return metadata.configuration.get("delta.enableInCommitTimestamps") == "true"


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
