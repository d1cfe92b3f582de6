"""A process that is measured from outside, with all that it starts."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SAMPLE_S = 0.02


@dataclass(frozen=True)
class Finished:
    """How a process ended.

    Attributes:
        started: When it was started, in seconds since 1970.
        peak_bytes: Of the memory of it and all that it had started, at the worst moment that was
            seen; looked at fifty times a second.
        is_late: It was ended because it took too long.
    """

    started: float
    code: int
    errors: str
    peak_bytes: int
    is_late: bool = False


def run(
    command: list[str], *, environment: dict[str, str], timeout_s: float, log: Path
) -> Finished:
    """Run a command to its end. What it prints goes to a file, so that no pipe holds it up."""
    peak = [0]
    with log.open("wb") as output:
        started = time.time()
        process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(SAMPLE_S):
                peak[0] = max(peak[0], memory_bytes(process.pid))

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        is_late = False
        try:
            code = process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            is_late = True
            _end(process)
            code = process.wait()
        except BaseException:
            _end(process)
            raise
        finally:
            ended.set()
            watcher.join()
    return Finished(started, code, log.read_text(errors="replace"), peak[0], is_late)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it and all that it has started, which are a group of their own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def written_bytes(root: int) -> int | None:
    """What a process and all below it sent to disks, those that it waited for among them."""
    if not Path("/proc/self/io").exists():
        return None
    total = 0
    for process in tree(root):
        with suppress(OSError):
            lines = Path(f"/proc/{process}/io").read_text().splitlines()
            total += sum(int(li.split()[1]) for li in lines if li.startswith("write_bytes:"))
    return total


def memory_bytes(root: int) -> int:
    """The memory in use of a process and all below it; 0 where `/proc` does not say."""
    total = 0
    for process in tree(root):
        with suppress(OSError, IndexError):
            pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
            total += pages * resource.getpagesize()
    return total


def tree(root: int) -> list[int]:
    """A process and all below it, as far as `/proc` says."""
    found, waiting = [], [root]
    while waiting:
        process = waiting.pop()
        found.append(process)
        try:
            threads = list(Path(f"/proc/{process}/task").iterdir())
            for thread in threads:
                children = (thread / "children").read_text()
                waiting.extend(map(int, children.split()))
        except OSError:
            continue  # It ended while it was looked at, or this is no Linux.
    return found
