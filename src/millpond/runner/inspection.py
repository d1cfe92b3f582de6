"""What can be asked of a pipeline between updates: its tables, its rows, its events."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from millpond.definitions import DatasetKind
from millpond.delta import Table
from millpond.engine.protocol import Input, TableRead
from millpond.errors import MillpondError
from millpond.events import Event, EventLog
from millpond.events.selection import select_update
from millpond.graph import PipelineSource
from millpond.runner.inputs import table_input
from millpond.runner.project import LoadedProject, Project, load
from millpond.storage import Store

if TYPE_CHECKING:
    import pyarrow as pa


_READER = "The query"


@dataclass(frozen=True)
class TableInfo:
    """A dataset as `millpond tables` shows it.

    Attributes:
        name: Full name, three parts.
        flow: Kinds of the flows that feed it, such as `REPLACE_USING`.
        rows: Rows of its table, or `None` for a view and before the first update.
        version: Version of its Delta table, likewise.
        location: Folder of its table, or `None` for a view.
    """

    name: str
    kind: DatasetKind
    flow: str
    rows: int | None
    version: int | None
    location: str | None


def list_tables(project: Project) -> tuple[list[TableInfo], tuple[MillpondError, ...]]:
    """Every dataset of the pipeline that can be resolved, and the problems of the others."""
    engine = project.start_engine()
    try:
        loaded = load(project, engine)
    finally:
        engine.close()
    return [
        _table_info(
            str(found.name),
            found.dataset.kind,
            ", ".join(sorted({str(flow.kind) for flow in found.flows})),
            found.path,
        )
        for found in loaded.graph.datasets.values()
    ], loaded.problems


def run_query(project: Project, sql: str) -> pa.Table:
    """Run one Spark SQL query over the pipeline's tables, views and sources.

    Raises:
        MillpondError: The text is no query, or names what does not exist.
    """
    engine = project.start_engine()
    try:
        loaded = load(project, engine)

        with TemporaryDirectory(prefix="millpond-query-") as folder:

            def bind(read: TableRead) -> Input:
                return _bind(loaded, read, folder=Path(folder), store=project.store)

            return engine.query(sql, bind, catalog=project.spec.catalog, schema=project.spec.schema)
    finally:
        engine.close()


def read_events(project: Project, update: str | None = None) -> list[Event]:
    """The events of one update (`latest`, an id or its beginning), or of all, oldest first."""
    return select_update(EventLog(project.layout.events, project.store).read(), update)


def _bind(loaded: LoadedProject, read: TableRead, *, folder: Path, store: Store) -> Input:
    if read.format is not None:
        own = folder / uuid.uuid4().hex
        external = loaded.external.find(read, reader=_READER)
        return external.rows(folder=own, has_metadata=read.metadata)
    source = loaded.catalog.find(read, reader=_READER)
    if not isinstance(source, PipelineSource):
        return table_input(source.path, read, folder=folder, store=store)
    found = loaded.graph.datasets.get(source.dataset.name.key)
    if found is not None and not found.dataset.kind.is_stored:
        return found.as_input()
    path = loaded.catalog.stored_path(source, read, reader=_READER)
    return table_input(path, read, folder=folder, store=store)


def _table_info(name: str, kind: DatasetKind, flow: str, path: Path | None) -> TableInfo:
    rows = version = None
    if path is not None and Table(path).exists():
        snapshot = Table(path).snapshot()
        rows, version = snapshot.row_count, snapshot.version
    return TableInfo(
        name=name,
        kind=kind,
        flow=flow,
        rows=rows,
        version=version,
        location=None if path is None else str(path),
    )
