"""Runs that `warm_program.py` forks, to which something may happen at a moment."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.faults.program import LONGEST_S, Ended, of_session

PROGRAM = Path(__file__).with_name("warm_program.py")
QUIET = {**os.environ, "NO_COLOR": "1"}


def kill(pid: int) -> None:
    """End a process and all that it started at once."""
    for each in [pid, *of_session(pid)]:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


class WarmProgram:
    """The program that forks. Used in a `with`."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=QUIET,
            bufsize=0,
        )
        return self

    def __exit__(self, *_error: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        with self._process:
            self._process.wait(LONGEST_S)

    def run(self, root: Path) -> Ended:
        """Run the pipeline in a folder to its end."""
        return self.disturbed(root, after_s=LONGEST_S, disturb=kill)

    def disturbed(
        self,
        root: Path,
        *,
        after_s: float,
        disturb: Callable[[int], None],
        once_said: str = "",
    ) -> Ended:
        """A run to which something happens after a time, unless it has ended by then.

        Args:
            disturb: Given the id of the process.
            once_said: The time begins when the run has said this.
        """
        (root / "out").unlink(missing_ok=True)
        assert self._process.stdin is not None
        self._process.stdin.write(f"{root}\n".encode())
        pid = self._number(LONGEST_S)
        assert pid is not None
        code = self._wait_for(once_said, root / "out") if once_said else None
        if code is None:
            code = self._number(after_s)
        if code is None:
            disturb(pid)
            code = self._number(LONGEST_S)
        if code is None:
            kill(pid)
        assert code is not None, f"it did not end:\n{(root / 'out').read_text()}"
        assert not of_session(pid), f"left behind: {of_session(pid)}"
        return Ended(code, (root / "out").read_text(), (root / "err").read_text())

    def _wait_for(self, text: str, said: Path) -> int | None:
        """Until a run says something; its code if it ends before."""
        deadline_s = time.monotonic() + LONGEST_S
        while not said.exists() or text not in said.read_text():
            code = self._number(0.005)
            if code is not None or time.monotonic() > deadline_s:
                return code
        return None

    def _number(self, within_s: float) -> int | None:
        """A line of what it says, if one comes in time."""
        output = self._process.stdout
        assert output is not None
        if not select.select([output], [], [], within_s)[0]:
            return None
        return int(output.readline())
