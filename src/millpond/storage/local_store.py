"""The store on a local file system: in which order files are written, named and made durable.

A file gets its content, the content becomes durable, the file gets its name, the name becomes
durable. So there is no moment at which a loss of power leaves a name without what belongs to it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path

from millpond.storage.disk import Disk

_FOLDER_MODE = 0o777


class LocalStore:
    """A `Store` on a local file system with POSIX rename and hard links.

    Args:
        disk: The file system.
    """

    _disk: Disk = Disk()

    def __init__(self, disk: Disk | None = None) -> None:
        if disk is not None:
            self._disk = disk

    def read(self, path: Path) -> bytes:
        return self._disk.read(path)

    def exists(self, path: Path) -> bool:
        return self._disk.exists(path)

    def list(self, folder: Path) -> list[str]:
        try:
            return sorted(self._disk.names(folder))
        except FileNotFoundError:
            return []

    def put_if_absent(self, path: Path, data: bytes) -> None:
        # A plain exclusive create could be seen half written; a link appears whole.
        temporary = self._write_temporary(path, data)
        try:
            self._disk.link(temporary, path)
        finally:
            self._disk.remove(temporary)
        self._disk.sync(path.parent)

    def put(self, path: Path, data: bytes) -> None:
        temporary = self._write_temporary(path, data)
        try:
            self._disk.rename(temporary, path)
        except BaseException:
            self._disk.remove(temporary)
            raise
        self._disk.sync(path.parent)

    def append(self, path: Path, data: bytes) -> None:
        self.make_folder(path.parent)
        self._disk.append(path, data)

    def sync(self, paths: Iterable[Path]) -> None:
        folders: dict[Path, None] = {}
        for path in paths:
            self._disk.sync(path)
            folders[path.parent] = None
        for folder in folders:
            self._disk.sync(folder)

    def sync_names(self, folder: Path) -> None:
        self._disk.sync(folder)

    def link(self, source: Path, target: Path) -> None:
        self._disk.link(source, target)

    def remove(self, path: Path) -> None:
        self._disk.remove(path)

    def remove_tree(self, folder: Path) -> None:
        self._disk.remove_tree(folder)

    def make_folder(self, folder: Path, *, mode: int = _FOLDER_MODE) -> None:
        missing: list[Path] = []
        found = folder
        while not self._disk.is_folder(found):
            missing.append(found)
            found = found.parent
        if self._disk.is_empty(found):
            # Whoever made it may have died before its name was durable; nobody has relied on it.
            self._disk.sync(found.parent)
        for new in reversed(missing):
            self._disk.make_folder(new, mode if new == folder else _FOLDER_MODE)
            self._disk.sync(new.parent)

    def _write_temporary(self, path: Path, data: bytes) -> Path:
        self.make_folder(path.parent)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            self._disk.write_new(temporary, data)
            self._disk.sync(temporary)
        except BaseException:
            self._disk.remove(temporary)
            raise
        return temporary
