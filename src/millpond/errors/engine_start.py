"""Errors about an engine itself: what it is set to, and that it can't be started."""

from __future__ import annotations

from typing import Self

from millpond.errors.base import MillpondError
from millpond.redaction import shown_value


class EngineConfigurationError(MillpondError, ValueError):
    """The engine refuses a setting."""

    error_class = "INVALID_ENGINE_CONFIGURATION"
    sqlstate = "22023"

    @classmethod
    def of(cls, key: str, value: str, problem: str) -> Self:
        shown = shown_value(key, value)
        if shown != value:
            problem = problem.replace(value, shown)
        return cls(
            f"The engine refuses the setting {key} = {shown!r}: {problem}",
            hint="mend it under `configuration` in the spec, or in the flow's spark_conf",
        )

    @classmethod
    def from_time_zone(cls, key: str, zone: str) -> Self:
        return cls(
            f"The embedded engine shows all times in UTC, and can't take {key} = {zone!r}.",
            hint="leave it out, and ask for the time of a zone where it is needed, such as "
            "from_utc_timestamp(time, 'Europe/Berlin'); a Spark server (--engine) knows all zones",
        )


class EngineStartError(MillpondError, RuntimeError):
    """The embedded engine can't be started, or not so that nobody but its process can use it."""

    error_class = "ENGINE_START_FAILED"
    sqlstate = "08001"

    @classmethod
    def from_open_port(cls, reason: str) -> Self:
        return cls(
            f"The port of the embedded engine can't be closed to others: {reason}.",
            hint="see that /dev/fd lists the files that a process has open, and that there is a "
            "folder for temporary files (TMPDIR); nothing was run",
        )

    @classmethod
    def from_open_files(cls, limit: int, *, needed: int) -> Self:
        return cls(
            f"The embedded engine can't open the files that it needs, {needed} or more: this "
            f"process may have {limit} open at once, or the system has too many.",
            hint="raise the limit (ulimit -n 1024); nothing was run",
        )

    @classmethod
    def from_failure(cls, reason: str) -> Self:
        return cls(
            f"The embedded engine can't be started: {reason}.",
            hint="see that there is memory, and that the process may start threads and open files "
            "(ulimit -a); nothing was run",
        )

    @classmethod
    def from_early_session(cls) -> Self:
        return cls(
            "The embedded engine opens sessions before its port is closed to others.",
            hint="leave out variables that begin with SAIL_, and install the version of pysail "
            "that millpond asks for; nothing was run",
        )

    @classmethod
    def from_answer(cls, problem: str) -> Self:
        return cls(
            f"The embedded engine does not answer as it should: {problem}.",
            hint="leave out variables that begin with SAIL_, and install the version of pysail "
            "that millpond asks for; nothing was run",
        )
