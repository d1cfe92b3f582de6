"""Spark Connect servers with Delta Lake for tests: one that all share, and others of one's own.

Starting a server takes half a minute of a processor and 600 MB, so the processes of a run of tests,
and runs at the same time, share one (see `fixtures.py`). Its tables last until nobody uses it any
longer: a test works in a schema, or a folder, of its own.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millpond.engine.active_session import active

ROOT = Path(__file__).parents[2]
COMMAND = ROOT / "scripts" / "spark" / "server.py"
SHARED = ROOT / ".build" / "spark" / "tests"


@dataclass(frozen=True)
class SparkServer:
    """A server, running or not.

    Attributes:
        folder: Where all that it writes lies.
        port: Where it listens, also after it was started again.
        workers: Workers of its cluster; with 0 it does the work itself.
    """

    folder: Path
    port: int
    workers: int = 0

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    def start(self, *, short_lived: bool = True) -> None:
        """Return when it answers queries; at once if it runs already."""
        words = ["--port", str(self.port), "--workers", str(self.workers)]
        self._must("start", *words, *(["--short-lived"] if short_lived else []))

    def stop(self) -> None:
        self._must("stop")

    def kill(self) -> None:
        """End all its processes without asking, as a crash would."""
        self._must("stop", "--now")

    def restart(self) -> None:
        self.stop()
        self.start()

    def process_ids(self) -> list[int]:
        """Return those of its processes that run; each leads a group of processes."""
        lines = self.run("status").stdout.splitlines()
        return [int(line.split(": process ")[1]) for line in lines if ": process " in line]

    def run(self, action: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, COMMAND, action, "--folder", self.folder, *words],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def _must(self, action: str, *words: str) -> None:
        done = self.run(action, *words)
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def session_of(server: SparkServer) -> Iterator[Any]:
    """A new session with the server, which PySpark finds in this thread while it is open."""
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(server.url).create()
    try:
        with active(session):
            yield session
    finally:
        session.stop()


@contextmanager
def shared_server() -> Iterator[SparkServer]:
    """Give the server that all processes share: the first starts it, the last stops it."""
    SHARED.mkdir(parents=True, exist_ok=True)
    users = os.open(SHARED / "users.lock", os.O_RDWR | os.O_CREAT)
    try:
        with locked("change.lock"):
            server = _started(first=_nobody_else_holds(users))
            fcntl.flock(users, fcntl.LOCK_SH)
        yield server
        with locked("change.lock"):
            fcntl.flock(users, fcntl.LOCK_UN)
            if _nobody_else_holds(users):
                server.stop()
    finally:
        os.close(users)


@contextmanager
def locked(name: str, *, shared: bool = False) -> Iterator[None]:
    with (SHARED / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def _started(*, first: bool) -> SparkServer:
    folder = SHARED / "server"
    if first:
        # One may still run, and its tables be there, after tests that were killed.
        SparkServer(folder, 0).kill()
        shutil.rmtree(folder, ignore_errors=True)
        server = SparkServer(folder, free_port())
    else:
        settings = json.loads((folder / "settings.json").read_text())
        server = SparkServer(folder, settings["port"])
    server.start()
    return server


def _nobody_else_holds(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
