"""One update at a time on one storage: a lock that goes away with its process."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from millpond.errors.runner import StorageNotWritableError, UpdateInProgressError
from millpond.storage import ROOT_MODE, LocalStore


@contextmanager
def update_lock(path: Path) -> Iterator[None]:
    """Hold the update lock of a storage folder, creating the folder for its owner only.

    Raises:
        UpdateInProgressError: Another process holds it.
        StorageNotWritableError: The folder can't be made or written.
    """
    try:
        LocalStore().make_folder(path.parent, mode=ROOT_MODE)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageNotWritableError.from_error(str(path.parent), error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(descriptor, 100).decode(errors="replace").strip()
            shown = f" (process {holder})" if holder else ""
            raise UpdateInProgressError.from_lock(str(path), shown) from error
        # The file stays: removing it would let two processes lock two files of one name.
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise StorageNotWritableError.from_error(str(path.parent), error) from error
        yield
    finally:
        os.close(descriptor)
