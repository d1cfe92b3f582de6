"""What a loss of power leaves of a folder: what was synced, and of the rest whatever chance wills.

A file's content and its name are synced apart from each other, as POSIX has it: content by syncing
the file, names by syncing the folder. Whoever wrote a file, DuckDB and delta-rs among them, it is
at risk until then. Removed folders stay removed, which is the one thing that is simpler than real.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

Survives = Callable[[], bool]


class Durability:
    """Follows what is durable below a folder.

    Args:
        root: The folder. Its own name is durable.
        vault: An empty folder on the same file system, for links to files that may come back.
    """

    def __init__(self, root: Path, vault: Path) -> None:
        self.root = root
        self._vault = vault
        self._names: dict[tuple[Path, int], dict[str, int]] = {}
        self._sizes: dict[int, int] = {}
        self._linked: set[int] = set()
        self.settle(root)

    def synced(self, path: Path) -> None:
        """A file or folder was synced."""
        status = path.stat()
        if path.is_dir():
            self._names[path, status.st_ino] = self._entries(path)
        else:
            self._keep(path, status.st_ino)
            self._sizes[status.st_ino] = status.st_size

    def settle(self, folder: Path) -> None:
        """All that is below a folder is durable, with the folder itself."""
        self.synced(folder)
        for entry in list(os.scandir(folder)):
            if entry.is_dir():
                self.settle(Path(entry.path))
            else:
                self.synced(Path(entry.path))

    def is_synced(self, path: Path) -> bool:
        """Whether a file's content is durable."""
        status = path.stat()
        return self._sizes.get(status.st_ino, -1) >= status.st_size

    def is_durable(self, path: Path) -> bool:
        """Whether a file is, by content and name."""
        folder = path.parent
        names = self._names.get((folder, folder.stat().st_ino), {})
        return path.name in names and self.is_synced(path)

    def lose_power(self, choices: random.Random) -> None:
        """Do to the folder what a loss of power may do to it."""
        survives: Survives = choices.choice(
            [lambda: False, lambda: True, lambda: choices.random() < 0.5]
        )
        self._lose(self.root, survives, choices)
        self.settle(self.root)

    def _entries(self, folder: Path) -> dict[str, int]:
        found: dict[str, int] = {}
        for entry in os.scandir(folder):
            found[entry.name] = entry.inode()
            if not entry.is_dir():
                self._keep(Path(entry.path), entry.inode())
        return found

    def _keep(self, path: Path, inode: int) -> None:
        """Link a file, so that it can come back and no other file gets its number."""
        if inode not in self._linked:
            os.link(path, self._vault / str(inode))
            self._linked.add(inode)

    def _lose(self, folder: Path, survives: Survives, choices: random.Random) -> None:
        durable = self._names.get((folder, folder.stat().st_ino), {})
        now = {entry.name: entry.inode() for entry in os.scandir(folder)}
        # Numbers rise with time, so the order is the same in a replay, in which names differ.
        for name, inode in sorted({**durable, **now}.items(), key=lambda item: item[1]):
            if now.get(name) == durable.get(name) or survives():
                continue
            if name in now:
                _remove(folder / name)
            before = durable.get(name)
            if before in self._linked:
                os.link(self._vault / str(before), folder / name)
            del inode
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.inode()):
            if entry.is_dir():
                self._lose(Path(entry.path), survives, choices)
            else:
                self._tear(Path(entry.path), choices)

    def _tear(self, path: Path, choices: random.Random) -> None:
        """Lose what was written to a file since it was synced, or a part of that."""
        status = path.stat()
        size, durable = status.st_size, self._sizes.get(status.st_ino, 0)
        if size <= durable:
            return
        part = durable + round(choices.random() * (size - durable))
        kept = choices.choice([durable, part, size])
        os.truncate(path, kept)
        if choices.random() < 0.3:
            os.truncate(path, size)  # zeros in the place of what was there
        self._sizes[status.st_ino] = path.stat().st_size


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
