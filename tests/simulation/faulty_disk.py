"""A disk on which, by chance, calls fail, other writers come in between, and the process dies."""

from __future__ import annotations

import errno
import os
import random
import shutil
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millpond.delta.log import LOG_FOLDER
from millpond.storage import Disk
from tests.simulation.durability import Durability

# What each call can fail with on a real file system.
_READING = (errno.EIO, errno.EACCES, errno.EMFILE)
_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EACCES, errno.EROFS)
ERRORS: dict[str, tuple[int, ...]] = {
    "read": _READING,
    "names": _READING,
    "exists": (errno.EIO, errno.EACCES),
    "is_folder": (errno.EIO, errno.EACCES),
    "is_empty": _READING,
    "make_folder": _WRITING,
    "write_new": (*_WRITING, errno.EMFILE),
    "append": (*_WRITING, errno.EMFILE),
    "sync": (errno.EIO, errno.ENOSPC, errno.EMFILE),
    "link": (*_WRITING, errno.EMLINK, errno.EPERM),
    "rename": _WRITING,
    "remove": (errno.EIO, errno.EACCES, errno.EROFS, errno.EBUSY),
    "copy": (errno.ENOSPC,),
}

# To die at any other is to die before the next of these.
WRITES = frozenset(
    {
        "make_folder",
        "write_new",
        "append",
        "sync",
        "link",
        "rename",
        "remove",
        "remove_tree",
        "copy",
    }
)

# A commit that loses to others more often in a row may give up, which is no fault of it.
MAX_IN_A_ROW = 6


class Died(BaseException):
    """The process is gone: whatever it asks from here on does not happen."""


@dataclass
class Life:
    """One process from its start to its end, and what befalls it.

    Attributes:
        choices: Decides.
        dies_at: The process dies at its n-th call that writes; `None` for never.
        dies_at_name: It dies once its n-th file has its name, before the name is durable.
        error_rate: How many calls fail.
        intrusions: How often another writer commits to a table at the moment that is worst.
        intrude: Lets it commit; given the table's folder.
        in_a_row: How often it did of late, each time.
        injected: What was done to the process, by kind.
        story: The same in words, in order.
    """

    choices: random.Random
    dies_at: int | None = None
    dies_at_name: int | None = None
    error_rate: float = 0.0
    intrusions: float = 0.0
    intrude: Callable[[Path], None] | None = None
    injected: Counter[str] = field(default_factory=Counter)
    story: list[str] = field(default_factory=list)
    writes: int = 0
    names: int = 0
    is_dead: bool = False
    is_intruded: bool = False
    in_a_row: int = 0

    @property
    def is_hurt(self) -> bool:
        """Whether anything went wrong that may keep an update from its end."""
        return any(not kind.startswith("intruded") for kind in self.injected)

    def note(self, kind: str, call: str) -> None:
        self.injected[kind] += 1
        self.story.append(f"write {self.writes}, {call}: {kind}")

    def die(self, call: str, moment: str) -> None:
        self.is_dead = True
        self.note(f"killed {moment}", call)
        raise Died


class FaultyDisk(Disk):
    """A disk of one process, for a root that `durability` follows.

    Args:
        life: The process; `None` for one whose calls all go well.
    """

    def __init__(self, durability: Durability, life: Life | None = None) -> None:
        self._durability = durability
        self._life = life

    def read(self, path: Path) -> bytes:
        return self._call("read", path, lambda: Disk.read(self, path))

    def exists(self, path: Path) -> bool:
        return self._call("exists", path, lambda: Disk.exists(self, path))

    def names(self, folder: Path) -> list[str]:
        return self._call("names", folder, lambda: self._names(folder))

    def is_folder(self, path: Path) -> bool:
        return self._call("is_folder", path, lambda: Disk.is_folder(self, path))

    def is_empty(self, folder: Path) -> bool:
        return self._call("is_empty", folder, lambda: Disk.is_empty(self, folder))

    def make_folder(self, folder: Path, mode: int) -> None:
        self._call("make_folder", folder, lambda: Disk.make_folder(self, folder, mode))

    def write_new(self, path: Path, data: bytes) -> None:
        self._call(
            "write_new",
            path,
            lambda: Disk.write_new(self, path, data),
            partly=lambda: Disk.write_new(self, path, self._part(data)),
        )

    def append(self, path: Path, data: bytes) -> None:
        self._call(
            "append",
            path,
            lambda: Disk.append(self, path, data),
            partly=lambda: Disk.append(self, path, self._part(data)),
        )

    def sync(self, path: Path) -> None:
        self._call(
            "sync",
            path,
            lambda: self._durability.synced(path),
            partly=lambda: self._cut_short(path),
        )

    def link(self, source: Path, target: Path) -> None:
        self._intrude_before(target)
        self._call("link", target, lambda: Disk.link(self, source, target))

    def rename(self, source: Path, target: Path) -> None:
        self._intrude_before(target)
        self._call("rename", target, lambda: Disk.rename(self, source, target))

    def remove(self, path: Path) -> None:
        self._call("remove", path, lambda: Disk.remove(self, path))

    def remove_tree(self, folder: Path) -> None:
        self._call(
            "remove_tree",
            folder,
            lambda: Disk.remove_tree(self, folder),
            partly=lambda: self._remove_some(folder),
        )

    def copy(
        self, folder: Path, work: Callable[[], Any], failure: Callable[[str], Exception]
    ) -> Any:
        """A file that DuckDB writes into a folder; what it leaves of one that fails is there."""
        if self._life is not None and self._life.is_intruded:
            return work()  # another process has DuckDB write it
        return self._call("copy", folder, work, partly=lambda: self._torn(folder), failure=failure)

    def _call(
        self,
        name: str,
        path: Path,
        work: Callable[[], Any],
        *,
        partly: Callable[[], Any] | None = None,
        failure: Callable[[str], Exception] | None = None,
    ) -> Any:
        life = self._life
        if life is None:
            return work()
        if life.is_dead:
            raise Died
        call = f"{name} {path.relative_to(self._durability.root)}"
        if name in WRITES:
            life.writes += 1
            if life.writes == life.dies_at:
                self._die(life, call, work, partly)
        if name in {"link", "rename"}:
            life.names += 1
            if life.names == life.dies_at_name:
                work()
                life.die(call, f"after {name}")
        if name in ERRORS and life.error_rate and life.choices.random() < life.error_rate:
            number = life.choices.choice(ERRORS[name])
            text = os.strerror(number)
            if name == "sync" and life.choices.random() < 0.5:
                work()  # it failed for another file that went with it
            elif partly is not None and name != "sync" and life.choices.random() < 0.5:
                with suppress(FileExistsError):
                    partly()
            life.note(f"{name} failed with {errno.errorcode[number]}", call)
            raise OSError(number, text, str(path)) if failure is None else failure(text)
        return work()

    def _die(
        self, life: Life, call: str, work: Callable[[], Any], partly: Callable[[], Any] | None
    ) -> None:
        moments = ["before", "after"] if partly is None else ["before", "after", "amid"]
        moment = life.choices.choice(moments)
        with suppress(OSError):
            if moment == "after":
                work()
            elif moment == "amid" and partly is not None:
                partly()
        life.die(call, f"{moment} {call.split(maxsplit=1)[0]}")

    def _names(self, folder: Path) -> list[str]:
        """A listing may or may not have the names that come up while it is made."""
        names = Disk.names(self, folder)
        if folder.name != LOG_FOLDER or not self._intrude(folder, "amid a listing"):
            return names
        assert self._life is not None
        new = sorted(set(Disk.names(self, folder)) - set(names))
        return names + [name for name in new if self._life.choices.random() < 0.5]

    def _intrude_before(self, entry: Path) -> None:
        if entry.parent.name == LOG_FOLDER and entry.suffix == ".json":
            self._intrude(entry.parent, "before a commit")

    def _intrude(self, log: Path, moment: str) -> bool:
        life = self._life
        if life is None or life.is_dead or life.intrude is None:
            return False
        life.in_a_row += 1
        if life.choices.random() >= life.intrusions or life.in_a_row > MAX_IN_A_ROW:
            life.in_a_row = 0
            return False
        life.note(f"intruded {moment}", str(log.relative_to(self._durability.root)))
        life.is_intruded = True
        try:
            life.intrude(log.parent)
        finally:
            life.is_intruded = False
        return True

    def _part(self, data: bytes) -> bytes:
        assert self._life is not None
        return data[: round(self._life.choices.random() * len(data))]

    def _cut_short(self, path: Path) -> None:
        """Kill the process while DuckDB still writes what would be synced next."""
        assert self._life is not None
        if path.is_file() and path.suffix == ".parquet" and not self._durability.is_synced(path):
            os.truncate(path, round(self._life.choices.random() * path.stat().st_size))

    def _torn(self, folder: Path) -> None:
        assert self._life is not None
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"part-{uuid.uuid4()}.parquet").write_bytes(b"PAR1")

    def _remove_some(self, folder: Path) -> None:
        assert self._life is not None
        if folder.is_dir():
            for entry in sorted(os.scandir(folder), key=lambda entry: entry.inode()):
                if self._life.choices.random() < 0.5:
                    if entry.is_dir():
                        shutil.rmtree(entry.path)
                    else:
                        os.remove(entry.path)  # noqa: PTH107 - it is a text already
