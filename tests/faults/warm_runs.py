"""Runs that `warm_program.py` forks, to be killed at a moment."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.faults.program import LONGEST_S, Ended, of_session

PROGRAM = Path(__file__).with_name("warm_program.py")
QUIET = {**os.environ, "NO_COLOR": "1"}


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

    def run(self, root: Path, *, kill_after_s: float | None = None) -> Ended:
        """Run the pipeline in a folder to its end, or to that which it is given.

        Args:
            kill_after_s: When it is killed with all that it started, unless it has ended by then.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(f"{root}\n".encode())
        pid = self._number(LONGEST_S)
        assert pid is not None
        code = self._number(LONGEST_S if kill_after_s is None else kill_after_s)
        if code is None:
            for each in [pid, *of_session(pid)]:
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            code = self._number(LONGEST_S)
        assert code is not None
        assert not of_session(pid), f"left behind: {of_session(pid)}"
        return Ended(code, (root / "out").read_text(), (root / "err").read_text())

    def _number(self, within_s: float) -> int | None:
        """A line of what it says, if one comes in time."""
        output = self._process.stdout
        assert output is not None
        if not select.select([output], [], [], within_s)[0]:
            return None
        return int(output.readline())
