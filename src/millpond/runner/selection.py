"""Which tables an update refreshes, and which it clears first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millpond.definitions import DatasetKind
from millpond.errors.graph import UnknownDatasetError
from millpond.errors.runner import ConflictingSelectionError, ResetNotAllowedError
from millpond.graph import ResolvedDataset
from millpond.runner.project import LoadedProject

RESET_ALLOWED_PROPERTY = "pipelines.reset.allowed"

Key = tuple[str, ...]


@dataclass(frozen=True)
class Selection:
    """Keys of the tables to refresh; those in `reset` are cleared first, and are refreshed, too."""

    refresh: frozenset[Key]
    reset: frozenset[Key]


def select(
    loaded: LoadedProject,
    *,
    refresh: Sequence[str] = (),
    full_refresh: Sequence[str] = (),
    full_refresh_all: bool = False,
) -> Selection:
    """Check a user's choice of tables. None named means all.

    Raises:
        ConflictingSelectionError: The choices contradict each other.
        UnknownDatasetError: A name is not a table of the pipeline.
        ResetNotAllowedError: A table named for a full refresh forbids it.
    """
    if full_refresh_all:
        for option, given in (("--refresh", refresh), ("--full-refresh", full_refresh)):
            if given:
                raise ConflictingSelectionError.from_all(option)
    refreshed = _keys(loaded, refresh, option="--refresh")
    reset = _keys(loaded, full_refresh, option="--full-refresh")
    for key in refreshed & reset:
        raise ConflictingSelectionError.from_dataset(str(_definition_name(loaded, key)))
    tables = {table.key: table for table in loaded.resolved.graph.tables()}
    for key in reset:
        if key in tables and not is_reset_allowed(tables[key]):
            raise ResetNotAllowedError.from_dataset(str(tables[key].name))
    if full_refresh_all:
        # A table that forbids a reset takes part in the update, but keeps its rows.
        reset = frozenset(key for key, table in tables.items() if is_reset_allowed(table))
    everything = full_refresh_all or not (refreshed or reset)
    return Selection(refresh=frozenset(tables) if everything else refreshed | reset, reset=reset)


def is_reset_allowed(table: ResolvedDataset) -> bool:
    """Whether a full refresh may clear the table. A materialized view has nothing to lose."""
    if table.dataset.kind is DatasetKind.MATERIALIZED_VIEW:
        return True
    given = {key.lower(): value for key, value in table.dataset.table_properties.items()}
    return given.get(RESET_ALLOWED_PROPERTY, "true").strip().lower() != "false"


def _keys(loaded: LoadedProject, names: Sequence[str], *, option: str) -> frozenset[Key]:
    stored = {
        dataset.name.key: dataset for dataset in loaded.pipeline.datasets if dataset.kind.is_stored
    }
    keys: set[Key] = set()
    for text in names:
        key = loaded.resolved.catalog.name(text).key
        if key not in stored:
            raise UnknownDatasetError.from_selection(
                text, option=option, known=(str(dataset.name) for dataset in stored.values())
            )
        keys.add(key)
    return frozenset(keys)


def _definition_name(loaded: LoadedProject, key: Key) -> object:
    return next(dataset.name for dataset in loaded.pipeline.datasets if dataset.name.key == key)
