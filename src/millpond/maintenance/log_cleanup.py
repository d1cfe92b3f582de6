"""Removes old entries and checkpoints of a table's log.

Follows "Metadata Cleanup" of Delta's PROTOCOL.md: what is before the newest checkpoint that is no
newer than the retention time goes, and the state at any version after it can still be read.
Sidecars of checkpoints, which millpond does not write, are left to who does.
"""

from __future__ import annotations

import re
from pathlib import Path

from millpond.delta import LOG_FOLDER, Snapshot, Table
from millpond.maintenance.report import Report
from millpond.maintenance.settings import DAY_MS

_OF_VERSION = re.compile(r"(\d{20})\.(?:json|crc|checkpoint(?:\..+)?\.(?:parquet|json))\Z")
_COMPACTED = re.compile(r"(\d{20})\.\d{20}\.compacted\.json\Z")


def expired_log_files(
    table: Table, snapshot: Snapshot, *, retention_ms: int, now_ms: int
) -> list[Path]:
    """Return the files of the log that may be removed, oldest first.

    None, unless the newest checkpoint gives just the state that `snapshot` is: once older entries
    are gone, nothing else would.

    Args:
        table: Whose log it is.
        snapshot: The newest state.
        retention_ms: How long entries stay.
        now_ms: The time.
    """
    cutoff_ms = now_ms - retention_ms
    if retention_ms >= DAY_MS:
        cutoff_ms -= cutoff_ms % DAY_MS
    cutoff = table.last_version_at(cutoff_ms)
    checkpoints = table.checkpoints()
    old = [c.version for c in checkpoints if cutoff is not None and c.version <= cutoff]
    if not old:
        return []
    kept = old[-1]
    folder = snapshot.path / LOG_FOLDER
    names = table.store.list(folder)
    expired = [
        name
        for name in names
        if ((match := _OF_VERSION.match(name)) and int(match[1]) < kept)
        or ((match := _COMPACTED.match(name)) and int(match[1]) <= kept)
    ]
    if not expired or not _is_same_state(table.state_from(checkpoints[-1]), snapshot):
        return []
    return [folder / name for name in expired]


def clean_log(table: Table, snapshot: Snapshot, *, retention_ms: int, now_ms: int) -> Report:
    """Remove them. A reader that is at an older version may find it gone, as after the time."""
    expired = expired_log_files(table, snapshot, retention_ms=retention_ms, now_ms=now_ms)
    if expired:
        # Other writers sync nothing, and without the entries a checkpoint can't be done without.
        folder = snapshot.path / LOG_FOLDER
        checkpoints = table.checkpoints()
        table.store.sync([folder / name for found in checkpoints for name in found.names])
    # Oldest first: whenever this ends, what is left begins somewhere and has no gap.
    for path in expired:
        table.store.remove(path)
    return Report(log_files_removed=len(expired))


def _is_same_state(read: Snapshot, snapshot: Snapshot) -> bool:
    """Whether two readings agree on what matters: files, deleted rows, batches, definition."""
    return (
        {path: file.deletion_vector_id for path, file in read.files.items()}
        == {path: file.deletion_vector_id for path, file in snapshot.files.items()}
        and read.app_versions == snapshot.app_versions
        and read.metadata == snapshot.metadata
        and read.protocol == snapshot.protocol
    )
