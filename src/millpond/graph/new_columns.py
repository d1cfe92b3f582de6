"""New columns of files: taken as far as the queries can take them, before they are kept.

An update that meets them proposes them; the next one tries them here. What would end in a problem
is left out, so that a column of one file can't keep the others, nor other tables, from going on.
`new_columns_ahead` tells the update that meets them what will come of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from millpond.errors import MillpondError
from millpond.graph.external import LocalSources, Proposal
from millpond.graph.resolved import Graph

T = TypeVar("T")


@dataclass(frozen=True)
class Resolution:
    """What resolving a pipeline gave.

    Attributes:
        problems: What has to be mended before anything runs.
        clashes: What keeps single tables from being brought to their columns.
    """

    graph: Graph
    problems: tuple[MillpondError, ...]
    clashes: tuple[MillpondError, ...]

    @property
    def reasons(self) -> dict[str, str]:
        """Why it is not whole, by what tells one problem from another."""
        return {str(error): error.what for error in (*self.problems, *self.clashes)}


def resolve_with_new_columns(
    resolve: Callable[[], Resolution], sources: LocalSources
) -> Resolution:
    """Resolve a pipeline with the new columns that its queries can take, and keep these.

    Args:
        resolve: Resolves it with the columns that the sources give.
    """
    found = resolve()
    if found.reasons and sources.proposed():

        def reasons(proposals: Sequence[Proposal]) -> Mapping[str, str]:
            sources.take(proposals, refused={})
            return resolve().reasons

        trial = Trial(reasons)
        trial.run(sources.proposed())
        sources.take(trial.taken, refused=trial.refused)
        found = resolve()
    if not found.problems:
        sources.keep_columns()
    return found


class Trial(Generic[T]):
    """Finds those of several things that bring no problem which is not there without them.

    Args:
        reasons: What the problems are with some of them, by what tells one from another.
    """

    def __init__(self, reasons: Callable[[Sequence[T]], Mapping[str, str]]) -> None:
        self._reasons_with = reasons
        self.taken: list[T] = []
        self.refused: dict[T, str] = {}

    def run(self, things: Sequence[T]) -> None:
        """Put each of them into `taken`, or into `refused` with why."""
        self._reasons = self._reasons_with([])
        self._try(things)

    def _try(self, things: Sequence[T]) -> None:
        """Take some together, or each half of them by itself."""
        reasons = self._reasons_with([*self.taken, *things])
        added = [reason for problem, reason in reasons.items() if problem not in self._reasons]
        if not added:
            self._reasons = reasons
            self.taken.extend(things)
        elif len(things) == 1:
            self.refused[things[0]] = added[0]
        else:
            half = len(things) // 2
            self._try(things[:half])
            self._try(things[half:])
