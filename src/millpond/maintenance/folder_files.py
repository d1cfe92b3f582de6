"""Finds files on disk below a folder, among them what killed writes left."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from millpond.maintenance.settings import HOUR_MS

TEMPORARY_KEPT_MS = HOUR_MS
# As the store names files that it is about to put in place.
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp\Z")


@dataclass(frozen=True)
class FoundFile:
    """A file on disk.

    Attributes:
        name: From the folder on.
    """

    path: Path
    name: str
    size_bytes: int
    modified_ms: int

    @property
    def is_temporary(self) -> bool:
        """Whether it was to be put in the place of another, which takes a moment."""
        return _TEMPORARY.match(self.path.name) is not None


def files_below(folder: Path) -> Iterator[FoundFile]:
    """Give all files; links to folders are not followed. What vanishes meanwhile is left out."""
    pending = [(folder, "")]
    while pending:
        current, prefix = pending.pop()
        try:
            entries = sorted(os.scandir(current), key=lambda entry: entry.name)
        except FileNotFoundError:
            continue
        for entry in entries:
            name = f"{prefix}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                pending.append((Path(entry.path), f"{name}/"))
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            yield FoundFile(Path(entry.path), name, status.st_size, status.st_mtime_ns // 1_000_000)


def leftovers(folder: Path, *, now_ms: int) -> Iterator[FoundFile]:
    """What killed writes of whole files left below a folder."""
    for file in files_below(folder):
        if file.is_temporary and file.modified_ms <= now_ms - TEMPORARY_KEPT_MS:
            yield file
