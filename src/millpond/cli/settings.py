"""What holds for a whole call of the command: exit codes, and the options of the group."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from millpond.cli.interrupts import StopSignals
from millpond.redaction import Redactor


class ExitCode(IntEnum):
    SUCCESS = 0
    FAILURE = 1
    WRONG_CALL = 2
    BROKEN_PIPE = 141

    @staticmethod
    def of_signal(number: int) -> int:
        """The code by which shells know that a signal ended a command."""
        return 128 + number


def _debug_from_environment() -> bool:
    return os.environ.get("MILLPOND_DEBUG", "") not in {"", "0"}


@dataclass
class Settings:
    """Options given before the command's name, and what the command shares with its caller.

    Attributes:
        redactor: Knows the secrets that must not be printed, once the pipeline's spec is read.
    """

    debug: bool = field(default_factory=_debug_from_environment)
    signals: StopSignals = field(default_factory=StopSignals)
    redactor: Redactor = field(default_factory=Redactor)


class ReportedError(Exception):
    """Ends a command with an exit code, after the problems given have been printed."""

    def __init__(
        self, problems: Sequence[BaseException] = (), *, code: int = ExitCode.FAILURE
    ) -> None:
        super().__init__()
        self.problems = tuple(problems)
        self.code = code
