"""The state of a table at one version, and how commits turn it into the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from millpond.delta.actions import AddFile, Commit, Metadata, Protocol
from millpond.delta.log import LOG_FOLDER, EntryIdentity
from millpond.delta.stats import misleads
from millpond.errors.delta import CorruptLogError


@dataclass(frozen=True)
class Snapshot:
    """A table as of a version. It stays valid while newer versions are written.

    Attributes:
        path: The table's folder.
        timestamp_ms: When the version was committed.
        files: The data files by their path in the log.
        app_versions: For each application, the last batch that it recorded here.
        entry_identity: Which file was this version's log entry, so that a table that was replaced
            by another is noticed; `None` where the entry was cleaned up.
    """

    path: Path
    version: int
    timestamp_ms: int
    protocol: Protocol
    metadata: Metadata
    files: Mapping[str, AddFile] = field(default_factory=dict, repr=False)
    app_versions: Mapping[str, int] = field(default_factory=dict, repr=False)
    entry_identity: EntryIdentity | None = field(default=None, repr=False, compare=False)

    @property
    def writes_deletion_vectors(self) -> bool:
        """Whether the table's properties ask for deletion vectors rather than rewritten files."""
        return self.metadata.configuration.get("delta.enableDeletionVectors") == "true"

    @property
    def is_append_only(self) -> bool:
        return self.metadata.configuration.get("delta.appendOnly") == "true"

    @property
    def row_count(self) -> int | None:
        """Rows of the table, or `None` where a file does not say how many it holds."""
        rows = 0
        for file in self.files.values():
            if file.num_rows is None:
                return None
            rows += file.num_rows
        return rows

    @property
    def has_misleading_bounds(self) -> bool:
        """Whether another program wrote statistics that readers would be led astray by."""
        schema = self.metadata.schema
        return any(misleads(file.stats, schema) for file in self.files.values())

    def takes_deletion_vector(self, file: AddFile) -> bool:
        """Whether rows of a file should be deleted by a vector rather than by rewriting it.

        A path that is encoded in the log, as odd partition values make it, is a reason not to:
        Polars 2.1 overlooks the vectors of such files and would give deleted rows.
        """
        return self.writes_deletion_vectors and "%" not in file.path

    def file_path(self, file: AddFile) -> Path:
        """Where a data file lies."""
        return self.path / file.decoded_path


@dataclass
class Replay:
    """A table's state while its log is read, from a checkpoint or from nothing."""

    path: Path
    version: int = -1
    timestamp_ms: int = 0
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: dict[str, AddFile] = field(default_factory=dict)
    app_versions: dict[str, int] = field(default_factory=dict)

    def load(self, actions: Iterable[Mapping[str, Any]], *, version: int) -> None:
        """Take over the actions of a checkpoint, none of which undoes another."""
        self.apply(Commit.from_actions(actions, version=version, timestamp_ms=0))

    def apply(self, commit: Commit) -> None:
        """Go on by one commit.

        The actions of a commit have no order: a file may be removed with its old deletion vector
        and added with a new one, so removals come first and end only the very file they name.
        """
        for remove in commit.removes:
            current = self.files.get(remove.path)
            if current is not None and current.deletion_vector_id == remove.deletion_vector_id:
                del self.files[remove.path]
        for add in commit.adds:
            self.files[add.path] = add
        self.app_versions.update(commit.app_versions)
        self.protocol = commit.protocol or self.protocol
        self.metadata = commit.metadata or self.metadata
        self.version = commit.version
        self.timestamp_ms = commit.timestamp_ms

    def finish(self, identity: EntryIdentity | None) -> Snapshot:
        """Return the state as a snapshot. The replay must not go on afterwards.

        Raises:
            CorruptLogError: The log never said what the table is.
        """
        if self.protocol is None or self.metadata is None:
            missing = "protocol" if self.protocol is None else "metaData"
            raise CorruptLogError.incomplete(
                self.path / LOG_FOLDER,
                reason=f"up to version {self.version} it holds no {missing} action",
            )
        return Snapshot(
            path=self.path,
            version=self.version,
            timestamp_ms=self.timestamp_ms,
            protocol=self.protocol,
            metadata=self.metadata,
            files=self.files,
            app_versions=self.app_versions,
            entry_identity=identity,
        )


def advance(snapshot: Snapshot, commit: Commit, identity: EntryIdentity | None) -> Snapshot:
    """Return the state after one more commit; `snapshot` stays as it is."""
    changes_files = bool(commit.adds or commit.removes)
    replay = Replay(
        path=snapshot.path,
        protocol=snapshot.protocol,
        metadata=snapshot.metadata,
        files=dict(snapshot.files) if changes_files else {},
        app_versions=dict(snapshot.app_versions),
    )
    replay.apply(commit)
    following = replay.finish(identity)
    return following if changes_files else replace(following, files=snapshot.files)
