"""A process that runs on after the command that started it: start it, ask whether it lives, end it.

Its file of the process id stays locked for as long as the process lives, since the process inherits
the open file. So a stale file, or a number that another program has got since, misleads nobody.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A process of a server, by the folder of the server and its name there."""

    folder: Path
    name: str

    @property
    def id_file(self) -> Path:
        return self.folder / f"{self.name}.pid"

    @property
    def log(self) -> Path:
        return self.folder / "logs" / f"{self.name}.log"

    def start(self, command: Sequence[str], *, environment: dict[str, str]) -> subprocess.Popen:
        """Start it in a process group of its own, with `folder` as its working directory."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.id_file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with self.log.open("wb") as log:
                process = subprocess.Popen(
                    command,
                    cwd=self.folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[lock],
                    start_new_session=True,
                )
            os.ftruncate(lock, 0)
            os.write(lock, str(process.pid).encode())
        finally:
            os.close(lock)
        return process

    def is_running(self) -> bool:
        try:
            lock = os.open(self.id_file, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def process_id(self) -> int:
        return int(self.id_file.read_text())

    def stop(self, *, patience_s: float) -> None:
        """Ask it to end, and after `patience_s` end it; with what it started in its group."""
        if not self.is_running():
            return
        group = self.process_id()
        if patience_s > 0:
            _signal(group, signal.SIGTERM)
            _wait_until(lambda: not self.is_running(), seconds=patience_s)
        _signal(group, signal.SIGKILL)
        _wait_until(lambda: not _signal(group, 0), seconds=10)

    def last_lines(self, count: int) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])


def _signal(group: int, number: int) -> bool:
    """Send a signal to a group of processes, and say whether there is anyone to get it."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


def _wait_until(condition: Callable[[], bool], *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
