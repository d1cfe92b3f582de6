"""The real program as a process of a session of its own, and what is left of it when it is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MILLPOND = Path(sys.executable).with_name("millpond")
# Nothing that an update does here takes so long, on however busy a machine.
LONGEST_S = 240


@dataclass(frozen=True)
class Ended:
    """How a run ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def update(self) -> str | None:
        """The beginning of the id of its update."""
        words = self.out.split(maxsplit=2)
        return words[1] if words[:1] == ["Update"] else None


class Run:
    """`millpond run` of a pipeline folder, or another command.

    Args:
        root: The pipeline's folder.
        inside: A command that runs another in a place of its own.
        environment: Variables, over those of the tests.
    """

    def __init__(
        self,
        root: Path,
        *arguments: str,
        command: str = "run",
        inside: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [*inside, MILLPOND, command, "--spec", root / "spark-pipeline.yml", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_COLOR": "1", **(environment or {})},
            start_new_session=True,
        )

    def ended(self) -> Ended:
        """Wait for its end. Nothing of it may be left then."""
        try:
            out, err = self.process.communicate(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        assert not self.left(), f"left behind: {self.left()}"
        return Ended(self.process.returncode, out, err)

    def kill(self) -> None:
        """End it and all that it started at once."""
        for pid in [self.process.pid, *self.left()]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def left(self) -> list[int]:
        """The processes of its session that still run, itself apart."""
        return of_session(self.process.pid)


def of_session(leader: int) -> list[int]:
    """The processes of a session that still run, but for the one that began it."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != leader:
            with suppress(OSError):
                # The name in parentheses may hold anything.
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z" and int(fields[3]) == leader:
                    found.append(int(folder.name))
    return found
