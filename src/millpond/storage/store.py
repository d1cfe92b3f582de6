"""The thin interface to the file system under every file of the log and the checkpoints.

Data files are written by DuckDB and the engine; `sync` makes those durable before a commit names
them. Nothing else in millpond renames, links or removes files.
"""

from __future__ import annotations

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

    def sync_names(self, folder: Path) -> None:
        """Make the names in a folder durable, whoever gave them."""
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

    def make_folder(self, folder: Path, *, mode: int = 0o777) -> None:
        """Make a folder and those above it, durable on return: a file is lost with their names.

        One that is there already is no error; it was made durable by what was put into it.
        """
        ...
