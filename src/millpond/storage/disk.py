"""The calls to the operating system under `LocalStore`, one method each.

In which order they are made is the store's concern. They are apart from it so that a test can fail,
interrupt or lose any one of them.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Let an error say which file it is about, which those of open files do not."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


class Disk:
    """A file system that is asked for real. Nothing is durable before it was synced."""

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def exists(self, path: Path) -> bool:
        return path.exists()

    def names(self, folder: Path) -> list[str]:
        return os.listdir(folder)  # noqa: PTH208 - pathlib's paths are of no use here

    def is_folder(self, path: Path) -> bool:
        return path.is_dir()

    def is_empty(self, folder: Path) -> bool:
        with os.scandir(folder) as entries:
            return next(entries, None) is None

    def make_folder(self, folder: Path, mode: int) -> None:
        """Make a folder; one that is there is no error."""
        folder.mkdir(exist_ok=True, mode=mode)

    def write_new(self, path: Path, data: bytes) -> None:
        """Write a file. Raises `FileExistsError`."""
        with _named(path), path.open("xb") as file:
            file.write(data)

    def append(self, path: Path, data: bytes) -> None:
        """Add to the end of a file, making it first if need be."""
        with _named(path), path.open("ab", buffering=0) as file:
            written = file.write(data)
        if written != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def sync(self, path: Path) -> None:
        """Make a file's content durable, or the names in a folder."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            with _named(path):
                os.fsync(descriptor)
        except OSError as error:
            # Some network file systems have nothing to sync of a folder, and say so.
            if error.errno not in _NO_FOLDER_SYNC or not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise
        finally:
            os.close(descriptor)

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second name. Raises `FileExistsError`."""
        os.link(source, target)

    def rename(self, source: Path, target: Path) -> None:
        """Move a file, over the one that is there."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file; one that is not there is no error."""
        path.unlink(missing_ok=True)

    def remove_tree(self, folder: Path) -> None:
        """Remove a folder and as much as can be of what is in it."""
        shutil.rmtree(folder, ignore_errors=True)
