"""Removes files of a table that no version within its retention time names.

Which files earlier versions named, and when they ended, is in the newest checkpoint of the log and
in the entries after it, as Delta's own VACUUM takes it. What killed writes left goes as well: data
files that no commit ever named, and temporary files of the log.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator

from millpond.delta import VECTOR_FOLDER, AddFile, RemoveFile, Snapshot, Table, vector_path
from millpond.maintenance.folder_files import TEMPORARY_KEPT_MS, FoundFile, files_below
from millpond.maintenance.report import Report
from millpond.maintenance.settings import HOUR_MS

# A file that no commit names may be about to be committed.
UNCOMMITTED_KEPT_MS = HOUR_MS


def unneeded_files(
    table: Table, snapshot: Snapshot, *, retention_ms: int, now_ms: int
) -> Iterator[FoundFile]:
    """Give the files in the table's folder that may be removed.

    Args:
        table: Its folder.
        snapshot: The newest state.
        retention_ms: How long files stay that the newest version does not name.
        now_ms: The time.

    Raises:
        CorruptLogError: The log can't be read, so that nothing can be told.
    """
    needed = set(_names(snapshot, snapshot.files.values()))
    ended: set[str] = set()
    for file, ended_ms in table.tombstones():
        is_over = ended_ms <= now_ms - retention_ms
        (ended if is_over else needed).update(_names(snapshot, [file]))
    for found in files_below(snapshot.path):
        if found.is_temporary:
            kept_ms = TEMPORARY_KEPT_MS
        elif found.name in needed or _is_hidden(found.name):
            continue
        elif found.name in ended:
            kept_ms = retention_ms
        else:
            kept_ms = max(retention_ms, UNCOMMITTED_KEPT_MS)
        if found.modified_ms <= now_ms - kept_ms:
            yield found


def vacuum(
    table: Table,
    snapshot: Snapshot,
    *,
    retention_ms: int,
    now_ms: int,
    deadline_s: float | None = None,
) -> Report:
    """Remove them. What is left when the deadline passes waits for the next time.

    Args:
        table: Its folder.
        snapshot: The newest state.
        retention_ms: How long files stay that the newest version does not name.
        now_ms: The time.
        deadline_s: On the monotonic clock.

    Raises:
        CorruptLogError: The log can't be read; nothing was removed.
    """
    report = Report()
    for file in unneeded_files(table, snapshot, retention_ms=retention_ms, now_ms=now_ms):
        table.store.remove(file.path)
        report += Report(files_removed=1, bytes_removed=file.size_bytes)
        if deadline_s is not None and time.monotonic() > deadline_s:
            break
    return report


def _names(snapshot: Snapshot, files: Iterable[AddFile | RemoveFile]) -> Iterator[str]:
    """Where files and their deletion vectors lie, from the table's folder on."""
    for file in files:
        yield os.path.relpath(snapshot.path / file.decoded_path, snapshot.path)
        vector = file.deletion_vector
        if vector is not None and vector.storage_type != "i":
            yield os.path.relpath(vector_path(snapshot.path, vector), snapshot.path)


def _is_hidden(name: str) -> bool:
    """Whether a file is none of the table's data: the log, or what other programs keep beside it.

    A folder of a partition may begin so, too, after the name of its column.
    """
    *folders, last = name.split("/")
    if folders == [VECTOR_FOLDER]:
        return False
    return last.startswith(("_", ".")) or any(
        folder.startswith(("_", ".")) and "=" not in folder for folder in folders
    )
