"""Notes what a store said to be durable, to be held against what is there after a loss of power."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from millpond.storage import Disk, LocalStore

# For each file, what may be there; `None` for no file.
Promises = dict[Path, set[bytes | None]]


class PromisingStore(LocalStore):
    """A store that notes what was promised: one outcome once a call is over, two until then.

    Args:
        look: Shown each new file before it is written.
    """

    def __init__(
        self,
        disk: Disk,
        promises: Promises,
        look: Callable[[Path, bytes], None] = lambda _path, _data: None,
    ) -> None:
        super().__init__(disk)
        self._promises = promises
        self._look = look

    def put(self, path: Path, data: bytes) -> None:
        self._promise(path, data, lambda: LocalStore.put(self, path, data))

    def put_if_absent(self, path: Path, data: bytes) -> None:
        self._look(path, data)
        try:
            self._promise(path, data, lambda: LocalStore.put_if_absent(self, path, data))
        except FileExistsError:
            # Another writer's file is there, perhaps since a moment ago.
            self._promises[path].discard(data)
            raise

    def remove(self, path: Path) -> None:
        self._forget(path)
        super().remove(path)

    def remove_tree(self, folder: Path) -> None:
        for path in self._promises:
            if folder in path.parents:
                self._forget(path)
        super().remove_tree(folder)

    def _promise(self, path: Path, data: bytes, write: Callable[[], None]) -> None:
        self._promises.setdefault(path, {None}).add(data)
        write()
        self._promises[path] = {data}

    def _forget(self, path: Path) -> None:
        """A removal is never durable, so both outcomes may be found."""
        if path in self._promises:
            self._promises[path].add(None)


def broken(promises: Promises) -> list[Path]:
    """The files that are not there as was promised. What is there is a promise from here on."""
    found: list[Path] = []
    for path, outcomes in promises.items():
        there = path.read_bytes() if path.is_file() else None
        if there not in outcomes:
            found.append(path)
        promises[path] = {there}
    return found
