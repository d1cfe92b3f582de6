"""New columns of files: taken as far as the queries can take them, before they are kept.

An update that meets them proposes them; the next one tries them here. What would end in a problem
is left out, so that a column of one file can't keep the others, nor other tables, from going on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from millpond.errors import MillpondError
from millpond.graph.external import LocalSources, Proposal
from millpond.graph.resolved import Graph


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
        _Trial(resolve, sources).run()
        found = resolve()
    if not found.problems:
        sources.keep_columns()
    return found


class _Trial:
    """Finds the new columns that bring no problem that was not there without them."""

    def __init__(self, resolve: Callable[[], Resolution], sources: LocalSources) -> None:
        self._resolve = resolve
        self._sources = sources
        self._taken: list[Proposal] = []
        self._refused: dict[Proposal, str] = {}

    def run(self) -> None:
        self._reasons = self._with([])
        self._try(self._sources.proposed())
        self._sources.take(self._taken, refused=self._refused)

    def _try(self, proposals: Sequence[Proposal]) -> None:
        """Take some together, or each half of them by itself."""
        reasons = self._with(proposals)
        added = [reason for problem, reason in reasons.items() if problem not in self._reasons]
        if not added:
            self._reasons = reasons
            self._taken.extend(proposals)
        elif len(proposals) == 1:
            self._refused[proposals[0]] = added[0]
        else:
            half = len(proposals) // 2
            self._try(proposals[:half])
            self._try(proposals[half:])

    def _with(self, proposals: Sequence[Proposal]) -> dict[str, str]:
        self._sources.take([*self._taken, *proposals], refused={})
        return self._resolve().reasons
