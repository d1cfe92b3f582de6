"""Errors of flows that one engine ran, and another is to go on with."""

from __future__ import annotations

from typing import Self

from millpond.errors.base import MillpondError, SourceLocation


class CheckpointOfOtherEngineError(MillpondError, RuntimeError):
    """A flow's checkpoint was written by another engine, and can't be carried over."""

    error_class = "CHECKPOINT_OF_OTHER_ENGINE"
    sqlstate = "55019"

    @classmethod
    def from_flow(
        cls,
        flow: str,
        *,
        by_spark: bool,
        reason: str,
        is_cut_short: bool = False,
        where: SourceLocation | None,
    ) -> Self:
        """Make it for a flow.

        Args:
            is_cut_short: Whether it could go on there after one more update that ends.
        """
        before, now = (
            ("Spark", "the embedded engine") if by_spark else ("the embedded engine", "Spark")
        )
        hint = "run it where it was run last"
        if is_cut_short:
            hint = f"run it once more by {before}, to its end, and then by {now}"
        return cls(
            f"Flow {flow} was last run by {before}, and can't go on by {now}: {reason}.",
            where=where,
            hint=f"{hint}, or let it read all of its sources anew with --full-refresh",
        )
