"""Looks after the tables of a pipeline when a person asks, and after its event log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from millpond.delta import Table
from millpond.errors import MillpondError
from millpond.errors.graph import UnknownDatasetError
from millpond.errors.maintenance import MaintenanceElsewhereError
from millpond.errors.runner import StorageNotWritableError
from millpond.graph import EVENT_LOG_NAME, delta_table
from millpond.maintenance import Report, RowOrder, Upkeep
from millpond.options import EMBEDDED
from millpond.runner.project import LoadedProject, Project, load
from millpond.runner.table_properties import checkpoints_of
from millpond.runner.upkeep import MARKER, upkeep_of


@dataclass(frozen=True)
class MaintainedTable:
    """What was done for one table, or would be.

    Attributes:
        name: Full name, three parts, or that of the event log.
        files_before: Data files of the newest version; deletion vectors are not counted.
        files_after: Likewise, afterwards.
        bytes_before: The size of those files.
        bytes_after: Likewise, afterwards.
        problem: What kept it from being done.
    """

    name: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    report: Report
    problem: MillpondError | None = None


def maintain(
    project: Project, *, tables: Sequence[str] = (), dry_run: bool = False
) -> tuple[list[MaintainedTable], tuple[MillpondError, ...]]:
    """Look after tables, whether or not an update is running.

    Args:
        project: Whose tables.
        tables: Their names; all of them, and the event log, where none is named.
        dry_run: Only find out what there is to do.

    Returns:
        What was done for each table, and the problems of datasets that could not be resolved.

    Raises:
        MaintenanceElsewhereError: The pipeline runs on a Spark server.
        UnknownDatasetError: A name is not a table of the pipeline.
    """
    if project.engine != EMBEDDED:
        raise MaintenanceElsewhereError.on_spark()
    runtime = project.start_runtime()
    try:
        loaded = load(project, runtime)
    finally:
        runtime.close()
    chosen = list(_chosen(project, loaded, tables))
    return [_maintained(name, upkeep, dry_run=dry_run) for name, upkeep in chosen], loaded.problems


def event_log_upkeep(project: Project) -> Upkeep:
    """The upkeep of the event log, which puts its files together by itself."""
    layout = project.layout
    return Upkeep(
        Table(layout.events, project.store), RowOrder(), marker=layout.events / f"_{MARKER}"
    )


def _chosen(
    project: Project, loaded: LoadedProject, tables: Sequence[str]
) -> Iterator[tuple[str, Upkeep]]:
    wanted = {loaded.resolved.catalog.name(text).key: text for text in tables}
    datasets = list(loaded.resolved.graph.tables())
    events = event_log_upkeep(project)
    for dataset in datasets:
        if tables and wanted.pop(dataset.key, None) is None:
            continue
        table = delta_table(dataset.table)
        if table.exists():
            checkpoints = checkpoints_of(dataset, table.snapshot().metadata.configuration)
            upkeep = upkeep_of(dataset, table, layout=project.layout, checkpoints=checkpoints)
            yield str(dataset.name), upkeep
    others = [text for text in wanted.values() if text.lower() != EVENT_LOG_NAME]
    if others:
        known = (str(dataset.name) for dataset in datasets)
        raise UnknownDatasetError.from_selection(others[0], option="--tables", known=known)
    if (wanted or not tables) and events.table.exists():
        yield EVENT_LOG_NAME, events


def _maintained(name: str, upkeep: Upkeep, *, dry_run: bool) -> MaintainedTable:
    import duckdb

    before = upkeep.table.snapshot().files.values()
    report, problem = Report(), None
    try:
        report = upkeep.preview() if dry_run else upkeep.by_hand()
    except MillpondError as error:
        problem = error
    except (OSError, duckdb.IOException, duckdb.OutOfMemoryException) as error:
        # The latter is what a full folder for temporary files gives.
        problem = StorageNotWritableError.from_upkeep(name, error)
    files, size_bytes = len(before), sum(file.size_bytes for file in before)
    after = upkeep.table.snapshot().files.values()
    if dry_run:
        files_after = files - report.files_compacted + report.files_written
        bytes_after = size_bytes - report.bytes_compacted + report.bytes_written
    else:
        files_after, bytes_after = len(after), sum(file.size_bytes for file in after)
    return MaintainedTable(name, files, files_after, size_bytes, bytes_after, report, problem)
