"""Errors of the state that operators keep between micro-batches."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from millpond.errors.base import MillpondError, SourceLocation

FULL_REFRESH = "a full refresh of the table that the flow feeds (--full-refresh TABLE)"


class StateMissingError(MillpondError, LookupError):
    """State that a flow's query needs to go on is no longer in its checkpoint."""

    error_class = "STATE_MISSING"

    @classmethod
    def from_version(cls, path: Path, *, batch: int) -> Self:
        return cls(
            f"The state of the flow after batch {batch} is missing: there is no file {path}.",
            hint=f"bring the checkpoint back from a copy, or run {FULL_REFRESH}; going on without "
            "would lose rows or repeat them",
        )

    @classmethod
    def from_file(cls, path: Path, *, version: Path) -> Self:
        return cls(
            f"State of the flow is missing: there is no file {path}, which {version} names.",
            hint=f"bring the file back from a copy, or run {FULL_REFRESH}; going on without "
            "would lose rows or repeat them",
        )


class StateUnreadableError(MillpondError, ValueError):
    """A file of a flow's state is torn, or is not what it should be."""

    error_class = "STATE_UNREADABLE"
    sqlstate = "22000"

    @classmethod
    def from_file(cls, path: Path, *, reason: str) -> Self:
        return cls(
            f"The state file {path} can't be read: {reason}.",
            hint=f"bring the file back from a copy, or run {FULL_REFRESH}",
        )

    @classmethod
    def from_operator(cls, operator: str, *, reason: str) -> Self:
        return cls(
            f"What {operator} keeps between batches can't be read: {reason.splitlines()[0]}.",
            hint=f"bring the files of the checkpoint back from a copy, or run {FULL_REFRESH}",
        )

    @classmethod
    def from_format(cls, path: Path, *, found: object, known: int) -> Self:
        return cls(
            f"The state file {path} is of format {found!r}; this millpond reads format {known}.",
            hint="a newer millpond wrote it: use that version or a newer one",
        )


class StateIncompatibleError(MillpondError, ValueError):
    """A flow's query changed so that the state it kept so far is of no use to it."""

    error_class = "STATE_INCOMPATIBLE"

    @classmethod
    def from_removed(cls, operators: Iterable[str], *, flow: str | None = None) -> Self:
        return cls._changed(f"it no longer has {', '.join(operators)}", flow=flow)

    @classmethod
    def from_added(
        cls,
        operators: Iterable[str],
        *,
        flow: str | None = None,
        where: SourceLocation | None = None,
    ) -> Self:
        change = f"{', '.join(operators)} came in, which saw none of the rows read so far"
        return cls._changed(change, flow=flow, where=where)

    @classmethod
    def from_operator(
        cls,
        what: str,
        *,
        before: str | None,
        now: str | None,
        flow: str | None = None,
        where: SourceLocation | None = None,
    ) -> Self:
        """What an operator does changed; `None` for what there are no words for."""
        change = f"{what} changed"
        if before is not None and now is not None:
            change += f" from {before or 'none'} to {now or 'none'}"
        return cls._changed(change, flow=flow, where=where)

    @classmethod
    def from_change(cls, operator: str, *, what: str, before: Any, now: Any) -> Self:
        return cls._changed(f"{what} of {operator} changed from {before!r} to {now!r}")

    @classmethod
    def _changed(
        cls, change: str, *, flow: str | None = None, where: SourceLocation | None = None
    ) -> Self:
        return cls(
            f"The query of the flow {flow or ''}".rstrip()
            + f" changed so that what it keeps between batches can't be used: {change}.",
            hint="undo the change (where a source has a new column, name the earlier ones in a "
            f"subquery), or run {FULL_REFRESH}",
            where=where,
        )
