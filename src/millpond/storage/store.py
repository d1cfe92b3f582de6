"""The thin interface to the file system under every file of the log and the checkpoints.

Data files are written by DuckDB and the engine; `sync` makes those durable before a commit names
them. Nothing else in millpond renames, links or removes files.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol


class Store(Protocol):
    """What a commit and a checkpoint need of a file system."""

    def read(self, path: Path) -> bytes:
        """Return the whole file. Raises `FileNotFoundError`."""
        ...

    def exists(self, path: Path) -> bool: ...

    def list(self, folder: Path) -> list[str]:
        """Return the sorted names in a folder; of a folder that does not exist, none."""
        ...

    def put_if_absent(self, path: Path, data: bytes) -> None:
        """Write a new file, whole or not at all, durable on return.

        Raises:
            FileExistsError: There is a file of that name; it is left as it was.
        """
        ...

    def put(self, path: Path, data: bytes) -> None:
        """Write a file or replace it, whole or not at all, durable on return."""
        ...

    def append(self, path: Path, data: bytes) -> None:
        """Add to the end of a file, making it first if need be.

        Not durable on return, and not whole or nothing: a crash may leave a part of `data`.
        """
        ...

    def sync(self, paths: Iterable[Path]) -> None:
        """Make files and folders that others made, and their names, durable."""
        ...

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second place; not durable on return.

        Raises:
            OSError: It can't be had there, as where that is another file system.
        """
        ...

    def remove(self, path: Path) -> None:
        """Remove a file; one that is not there is no error."""
        ...

    def remove_tree(self, folder: Path) -> None:
        """Remove a folder and as much as can be of what is in it; what is left is no error."""
        ...


class LocalStore:
    """A `Store` on a local file system with POSIX rename and hard links."""

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def exists(self, path: Path) -> bool:
        return path.exists()

    def list(self, folder: Path) -> list[str]:
        try:
            return sorted(entry.name for entry in folder.iterdir())
        except FileNotFoundError:
            return []

    def put_if_absent(self, path: Path, data: bytes) -> None:
        # A plain exclusive create could be seen half written; a link appears whole.
        temporary = self._write_temporary(path, data)
        try:
            os.link(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_path(path.parent)

    def put(self, path: Path, data: bytes) -> None:
        temporary = self._write_temporary(path, data)
        try:
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_path(path.parent)

    def append(self, path: Path, data: bytes) -> None:
        _make_folder(path.parent)
        with path.open("ab", buffering=0) as file:
            written = file.write(data)
        if written != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def sync(self, paths: Iterable[Path]) -> None:
        folders: dict[Path, None] = {}
        for path in paths:
            _sync_path(path)
            folders[path.parent] = None
        for folder in folders:
            _sync_path(folder)

    def link(self, source: Path, target: Path) -> None:
        os.link(source, target)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def remove_tree(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    def _write_temporary(self, path: Path, data: bytes) -> Path:
        _make_folder(path.parent)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return temporary


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, durably: a file is lost with the name of its folder."""
    made: list[Path] = []
    while not folder.is_dir():
        made.append(folder)
        folder = folder.parent
    for new in reversed(made):
        new.mkdir(exist_ok=True)
        _sync_path(new.parent)


def _sync_path(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
