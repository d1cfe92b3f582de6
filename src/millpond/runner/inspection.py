"""What can be asked of a pipeline between updates: its tables, its rows, its events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.definitions import DatasetKind
from millpond.errors import MillpondError
from millpond.events import Event, EventLog
from millpond.events.selection import select_update
from millpond.graph import ResolvedDataset
from millpond.runner.project import Project, load
from millpond.runner.runtime import Runtime, TableState

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class TableInfo:
    """A dataset as `millpond tables` shows it.

    Attributes:
        name: Full name, three parts.
        flow: Kinds of the flows that feed it, such as `REPLACE_USING`.
        rows: Rows of its table, or `None` for a view and before the first update.
        version: Version of its Delta table, likewise.
        location: Where its table is, or `None` for a view.
    """

    name: str
    kind: DatasetKind
    flow: str
    rows: int | None
    version: int | None
    location: str | None


def list_tables(project: Project) -> tuple[list[TableInfo], tuple[MillpondError, ...]]:
    """Every dataset of the pipeline that can be resolved, and the problems of the others."""
    runtime = project.start_runtime()
    try:
        loaded = load(project, runtime)
        found = [_info(dataset, runtime) for dataset in loaded.resolved.graph.datasets.values()]
    finally:
        runtime.close()
    return found, loaded.problems


def run_query(project: Project, sql: str) -> pa.Table:
    """Run one Spark SQL query over the pipeline's tables, views and sources.

    Raises:
        MillpondError: The text is no query, or names what does not exist.
    """
    runtime = project.start_runtime()
    try:
        return runtime.query(sql, load(project, runtime).resolved)
    finally:
        runtime.close()


def read_events(project: Project, update: str | None = None) -> list[Event]:
    """The events of one update (`latest`, an id or its beginning), or of all, oldest first."""
    return select_update(EventLog(project.layout.events, project.store).read(), update)


def _info(found: ResolvedDataset, runtime: Runtime) -> TableInfo:
    is_stored = found.dataset.kind.is_stored
    state = runtime.state(found) if is_stored else TableState(None, None, None)
    return TableInfo(
        name=str(found.name),
        kind=found.dataset.kind,
        flow=", ".join(sorted({str(flow.kind) for flow in found.flows})),
        rows=state.rows,
        version=state.version,
        location=state.location,
    )
