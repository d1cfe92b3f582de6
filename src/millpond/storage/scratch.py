"""What a process keeps on disk for itself: one folder, readable by its owner only, gone at its end.

A process that is killed leaves its folder behind, perhaps with much in it that did not fit into
memory. Each folder is locked as long as its process lives, so the next process knows which ones
nobody needs, and removes them.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import platform
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def _kernel() -> str:
    """What tells the kernels apart that may share a disk: a lock holds within one of them."""
    with suppress(OSError):
        return _BOOT.read_text()
    return platform.node()


PREFIX = f"millpond-scratch-{hashlib.sha256(_kernel().encode()).hexdigest()[:8]}-"
# What `mkdtemp` makes of it. Nothing else is ever removed.
_NAME = re.compile(f"{PREFIX}[a-z0-9_]{{8}}")
# The engine leaves the first slash out.
_PATH = re.compile(rf"[\w./-]*{PREFIX}[a-z0-9_]{{8}}/[^\s'\":,]+")
# Permissions, without the bits that a folder has from the one above it.
_PERMISSIONS = 0o777
_OWNER_ONLY = 0o700

_making = threading.Lock()
_own: _Folder | None = None


class _Folder:
    """A folder of this process, locked where the file system can do that.

    Raises:
        OSError: It can't be made.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self._lock: int | None = None
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
            try:
                # A child that is forked shares the lock; one that runs another program does not.
                self._lock = _lock(self.path)
            except (BlockingIOError, FileNotFoundError):
                # A process that tidies up has taken it for left behind.
                continue
            except OSError:
                # Then nobody can lock it, nor remove it for that.
                return
            if self.path.exists():
                return
            os.close(self._lock)

    def is_usable(self, place: Path) -> bool:
        """Whether it is this process's, and still there."""
        is_own = self.process == os.getpid()
        return is_own and self.path.parent == place and self.path.exists()

    def remove(self) -> None:
        # A child that was forked leaves it to its parent.
        if self.process == os.getpid():
            shutil.rmtree(self.path, ignore_errors=True)
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None


def new_scratch_folder(name: str) -> Path:
    """Make a folder that is there until the process ends, unless it is removed before.

    Args:
        name: What the folder's name begins with.

    Raises:
        OSError: It can't be made.
    """
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=_own_folder()))


@contextmanager
def scratch_folder(name: str) -> Iterator[Path]:
    """A folder that is removed at the end of a block."""
    folder = new_scratch_folder(name)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def without_scratch(text: str) -> str:
    """A message in which a path that leads through a scratch folder is the path that is meant."""
    return _PATH.sub(lambda found: os.path.realpath(f"/{found[0].lstrip('/')}"), text)


def _own_folder() -> Path:
    global _own  # noqa: PLW0603 - one folder a process is the point
    with _making:
        place = Path(tempfile.gettempdir())
        if _own is not None and _own.is_usable(place):
            return _own.path
        _own = _Folder()
        atexit.register(_own.remove)
        path = _own.path
    _remove_those_left_behind(place)
    return path


def _remove_those_left_behind(place: Path) -> None:
    """Remove the folders of processes that are no more. What can't be removed stays."""
    with suppress(OSError):
        for path in place.glob(f"{PREFIX}*"):
            if _NAME.fullmatch(path.name) is None:
                continue
            with suppress(OSError):
                lock = _lock(path)
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _lock(path: Path) -> int:
    """Lock a folder of this user's, and return the descriptor that holds the lock.

    Raises:
        BlockingIOError: Somebody else holds it.
        OSError: It is no such folder, or can't be locked.
    """
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(opened)
        if found.st_uid != os.geteuid() or found.st_mode & _PERMISSIONS != _OWNER_ONLY:
            message = f"{path} is no scratch folder of this user's"
            raise PermissionError(message)
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        raise
    return opened
