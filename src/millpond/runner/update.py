"""One triggered update: load, check, set up tables, run flows, record all of it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from millpond.definitions import FlowKind
from millpond.delta import was_interrupted
from millpond.errors import MillpondError
from millpond.errors.events import EventLogWriteError
from millpond.errors.graph import TableNotFoundError
from millpond.errors.runner import StorageNotWritableError
from millpond.events import (
    Event,
    EventLog,
    ExpectationMetrics,
    FlowMetrics,
    FlowStatus,
    Recorder,
    UpdateState,
)
from millpond.graph import EVENT_LOG_NAME, Graph, ResolvedDataset, ResolvedFlow
from millpond.maintenance import Upkeep
from millpond.names import TableName
from millpond.profiling import OTHER, phase
from millpond.runner.lock import update_lock
from millpond.runner.maintenance import event_log_upkeep
from millpond.runner.project import Project, load
from millpond.runner.runtime import (
    BatchOutcome,
    ResolvedPipeline,
    RunningUpdate,
    Runtime,
    UncountedBatches,
)
from millpond.runner.schedule import Schedule, Task
from millpond.runner.selection import Selection, select

Key = tuple[str, ...]


@dataclass(frozen=True)
class FlowResult:
    """How a flow ended."""

    name: str
    status: FlowStatus
    error: BaseException | None = None


@dataclass(frozen=True)
class UpdateResult:
    """How an update ended.

    Attributes:
        problems: What is wrong with the source files, where no flow ran; or an event log that
            could not be written.
    """

    update_id: str
    state: UpdateState
    flows: tuple[FlowResult, ...] = ()
    problems: tuple[MillpondError, ...] = ()


def dry_run(project: Project) -> tuple[MillpondError, ...]:
    """Find everything that can be found without reading data. Writes nothing to the tables."""
    runtime = project.start_runtime()
    try:
        return load(project, runtime).problems
    finally:
        runtime.close()


def run_update(
    project: Project,
    *,
    refresh: Sequence[str] = (),
    full_refresh: Sequence[str] = (),
    full_refresh_all: bool = False,
    listeners: Sequence[Callable[[Event], None]] = (),
) -> UpdateResult:
    """Run one triggered update: everything that the sources hold at its start.

    Args:
        refresh: Tables to update; with `full_refresh` empty, too, all.
        full_refresh: Tables to clear, with their checkpoints, and to fill anew.
        full_refresh_all: Clear and fill all that allow it.
        listeners: Called with each event as it is recorded.

    Raises:
        UpdateInProgressError: Another update of this storage is running.
        MillpondError: The selection is wrong, or a file could not be read or written.
        KeyboardInterrupt: The update was stopped; its state is recorded as CANCELED.
    """
    update_id = str(uuid.uuid4())
    with update_lock(project.layout.lock):
        recorder = Recorder(
            pipeline_name=project.name,
            pipeline_id=project.pipeline_id,
            update_id=update_id,
            log=EventLog(project.layout.events, project.store),
            listeners=listeners,
            configuration=project.spec.configuration,
        )
        try:
            recorder.create_update(
                refresh_selection=refresh,
                full_refresh_selection=full_refresh,
                full_refresh=full_refresh_all,
            )
            recorder.user_action("START")
            with _explained():
                result = _Update(project, recorder, update_id).run(
                    refresh=refresh, full_refresh=full_refresh, full_refresh_all=full_refresh_all
                )
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) or was_interrupted(error):
                cause = "It was stopped by a signal."
                recorder.update_progress(UpdateState.CANCELED, cancellation_cause=cause)
            else:
                recorder.update_progress(UpdateState.FAILED, error=error)
            # What stopped the update matters more than a log that could not be written.
            with suppress(EventLogWriteError):
                recorder.close()
            raise
        try:
            recorder.close()
        except EventLogWriteError as error:
            return replace(result, problems=(*result.problems, error))
        return result


@contextmanager
def _explained() -> Iterator[None]:
    """Say what an error of the disk's means, where it came from no flow and no table's set-up."""
    try:
        yield
    except MillpondError:
        raise
    except OSError as error:
        raise StorageNotWritableError.from_update(error) from error


@dataclass
class _Update:
    """The steps of one update, and what they learn on the way."""

    project: Project
    recorder: Recorder
    update_id: str
    results: dict[str, FlowResult] = field(default_factory=dict)
    checkpoints: dict[Key, Mapping[str, str]] = field(default_factory=dict)
    failed_tables: set[Key] = field(default_factory=set)
    names: dict[Key, TableName] = field(default_factory=dict)

    def run(
        self, *, refresh: Sequence[str], full_refresh: Sequence[str], full_refresh_all: bool
    ) -> UpdateResult:
        layout, store = self.project.layout, self.project.store
        # Only the holder of the lock stages batches: what is there is from an update that died.
        store.remove_tree(layout.staging)
        self.recorder.update_progress(UpdateState.INITIALIZING)
        runtime = self.project.start_runtime()
        try:
            loaded = load(
                self.project,
                runtime,
                for_update=True,
                full_refresh=full_refresh,
                full_refresh_all=full_refresh_all,
            )
            selection = select(
                loaded,
                refresh=refresh,
                full_refresh=full_refresh,
                full_refresh_all=full_refresh_all,
            )
            if loaded.problems:
                count = len(loaded.problems)
                message = f"{count} problem{'s' if count > 1 else ''} in the source files"
                problems = ExceptionGroup(message, loaded.problems)
                self.recorder.update_progress(UpdateState.FAILED, error=problems)
                return UpdateResult(self.update_id, UpdateState.FAILED, problems=loaded.problems)
            graph = loaded.resolved.graph
            self._record_definitions(graph, runtime)
            self._set_up_tables(graph, selection, runtime)
            self._run_flows(loaded.resolved, runtime)
            self._clean_sources(graph, runtime)
            for key in self.checkpoints:
                runtime.clean_up(graph.datasets[key])
            self._look_after_tables(graph, runtime)
        finally:
            with phase("stop engine"):
                runtime.close()
            store.remove_tree(layout.staging)
        state = UpdateState.FAILED if self.failed_tables else UpdateState.COMPLETED
        first = next((result.error for result in self.results.values() if result.error), None)
        self.recorder.update_progress(state, error=first)
        return UpdateResult(self.update_id, state, flows=tuple(self.results.values()))

    def _record_definitions(self, graph: Graph, runtime: Runtime) -> None:
        for dataset in graph.datasets.values():
            self.recorder.dataset_definition(
                dataset.dataset,
                num_flows=len(dataset.flows),
                left_out=runtime.left_out(dataset.dataset),
            )
            for flow in dataset.flows:
                self.recorder.flow_definition(
                    flow.flow, kind=flow.kind, inputs=flow.inputs, schema_json=flow.schema.json()
                )

    @phase("set up tables")
    def _set_up_tables(self, graph: Graph, selection: Selection, runtime: Runtime) -> None:
        tables = list(graph.tables())
        for dataset in tables:
            if dataset.key not in selection.refresh:
                for flow in dataset.flows:
                    self._end(Task(flow, dataset), FlowStatus.EXCLUDED)
        if selection.reset:
            self.recorder.update_progress(UpdateState.RESETTING)
            # Readers before what they read: a stream whose source was cleared would be lost if the
            # update died before the stream's own table was cleared, too.
            for dataset in reversed(tables):
                if dataset.key in selection.reset:
                    self._reset(dataset, tables, runtime)
        self.recorder.update_progress(UpdateState.SETTING_UP_TABLES)
        for dataset in tables:
            if dataset.key in selection.refresh - selection.reset:
                self._set_up(dataset, runtime, reset=False)

    def _reset(
        self, dataset: ResolvedDataset, tables: Sequence[ResolvedDataset], runtime: Runtime
    ) -> None:
        """Clear a table, unless that of a reader could not be cleared: its stream would be lost."""
        uncleared = (table for table in tables if table.key in self.failed_tables)
        for reader in uncleared:
            if any(dataset.key in flow.upstream for flow in reader.flows):
                self.failed_tables.add(dataset.key)
                reason = f"{reader.name}, which reads it, could not be cleared"
                for flow in dataset.flows:
                    self._end(Task(flow, dataset), FlowStatus.SKIPPED, reason=reason)
                return
        self._set_up(dataset, runtime, reset=True)

    def _set_up(self, dataset: ResolvedDataset, runtime: Runtime, *, reset: bool) -> None:
        try:
            self.checkpoints[dataset.key] = runtime.set_up(dataset, reset=reset)
        except Exception as error:  # noqa: BLE001 - the table's own failure; others go on
            self.failed_tables.add(dataset.key)
            for flow in dataset.flows:
                self._end(Task(flow, dataset), FlowStatus.FAILED, error=error)

    def _run_flows(self, pipeline: ResolvedPipeline, runtime: Runtime) -> None:
        self.recorder.update_progress(UpdateState.RUNNING)
        self.names.update((table.key, table.name) for table in pipeline.graph.tables())
        tasks = [
            Task(flow, dataset)
            for dataset in pipeline.graph.tables()
            if dataset.key in self.checkpoints
            for flow in dataset.flows
        ]
        for task in tasks:
            self._progress(task, FlowStatus.QUEUED)
        update = RunningUpdate(
            id=self.update_id,
            pipeline=pipeline,
            stop=threading.Event(),
            warn_of_files=self._warn_of_files,
            warn_of_batches=self._warn_of_batches,
        )

        def run(task: Task) -> None:
            self._progress(task, FlowStatus.STARTING)
            try:
                check_upstream(task.flow, pipeline.graph)
                with phase(OTHER, flow=task.flow.name):
                    for outcome in runtime.batches(task, update):
                        self._batch(task, outcome)
            except MillpondError as error:
                error.where = error.where or task.flow.flow.location
                raise

        Schedule(
            tasks,
            run,
            self,
            failed=self.failed_tables,
            stop=update.stop,
            interrupt=runtime.engine.interrupt,
        ).run()

    @phase("clean sources")
    def _clean_sources(self, graph: Graph, runtime: Runtime) -> None:
        targets = {flow.name: table.name for table in graph.tables() for flow in table.flows}
        for flow, error in runtime.clean_sources(graph).items():
            status = self.results[flow].status
            self.recorder.files_not_cleaned(flow, targets[flow], status, error)

    @phase("upkeep")
    def _look_after_tables(self, graph: Graph, runtime: Runtime) -> None:
        for key in self.checkpoints:
            dataset = graph.datasets[key]
            self._note(dataset.name, runtime.look_after(dataset))
        events = event_log_upkeep(self.project)
        events.clean()
        self._note(EVENT_LOG_NAME, events)

    def _note(self, name: TableName | str, upkeep: Upkeep | None) -> None:
        if upkeep is not None and (upkeep.report or upkeep.problem is not None):
            counts = upkeep.report.counts()
            self.recorder.maintenance_progress(name, counts, error=upkeep.problem)

    def _warn_of_files(
        self, task: Task, passed_over: Mapping[str, str], empty: Sequence[str]
    ) -> None:
        flow, dataset = task.flow.name, task.dataset.name
        if passed_over:
            self.recorder.files_passed_over(flow, dataset, passed_over)
        if empty:
            self.recorder.files_without_values(flow, dataset, empty)

    def _warn_of_batches(self, task: Task, batches: UncountedBatches) -> None:
        self.recorder.batches_not_counted(
            task.flow.name,
            task.dataset.name,
            first=batches.first,
            last=batches.last,
            rows_are_counted=batches.rows_are_counted,
        )

    def completed(self, task: Task) -> None:
        self._end(task, FlowStatus.COMPLETED)

    def failed(self, task: Task, error: BaseException) -> None:
        self._end(task, FlowStatus.FAILED, error=error)

    def skipped(self, task: Task, upstream: Key) -> None:
        name = self.names[upstream]
        self._end(task, FlowStatus.SKIPPED, reason=f"{name}, which it reads, failed")

    def stopped(self, task: Task) -> None:
        self._end(task, FlowStatus.STOPPED)

    def _batch(self, task: Task, outcome: BatchOutcome) -> None:
        result = outcome.result
        replaces = task.flow.kind is FlowKind.REPLACE_USING
        appends = task.flow.kind is FlowKind.APPEND
        self._progress(
            task,
            FlowStatus.RUNNING,
            metrics=FlowMetrics(
                rows_read=result.rows_read,
                num_output_rows=None if replaces else result.rows_inserted,
                num_upserted_rows=result.rows_inserted if replaces else None,
                num_deleted_rows=None if appends else result.rows_deleted,
                num_late_rows=result.rows_late if replaces else None,
                num_dropped_rows=result.rows_dropped,
                num_output_bytes=result.bytes_written,
                files_read=outcome.files_read,
                backlog_files=outcome.backlog.files,
                backlog_bytes=outcome.backlog.size_bytes,
            ),
            expectations=[
                ExpectationMetrics(
                    name=count.name,
                    dataset=str(task.dataset.name),
                    passed_records=count.passed,
                    failed_records=count.failed,
                )
                for count in result.expectations
            ],
            dropped_records=result.rows_dropped if result.expectations else None,
            batch_id=outcome.number,
        )

    def _end(
        self,
        task: Task,
        status: FlowStatus,
        *,
        error: BaseException | None = None,
        reason: str | None = None,
    ) -> None:
        self.results[task.flow.name] = FlowResult(task.flow.name, status, error)
        self.recorder.flow_progress(
            task.flow.name,
            task.dataset.name,
            status,
            error=error,
            reason=reason,
            flow_id=self._flow_id(task),
        )

    def _progress(
        self,
        task: Task,
        status: FlowStatus,
        *,
        metrics: FlowMetrics | None = None,
        expectations: Sequence[ExpectationMetrics] = (),
        dropped_records: int | None = None,
        batch_id: int | None = None,
    ) -> None:
        self.recorder.flow_progress(
            task.flow.name,
            task.dataset.name,
            status,
            metrics=metrics,
            expectations=expectations,
            dropped_records=dropped_records,
            batch_id=batch_id,
            flow_id=self._flow_id(task),
        )

    def _flow_id(self, task: Task) -> str | None:
        """Stable while the flow is incremental, another after a full refresh."""
        checkpoints = self.checkpoints.get(task.dataset.key)
        return checkpoints[task.flow.name] if checkpoints else None


def check_upstream(flow: ResolvedFlow, graph: Graph) -> None:
    """Raise where the flow reads a table of the pipeline that no update has made yet."""
    for key in flow.upstream:
        dataset = graph.datasets[key]
        if dataset.table is not None and not dataset.table.exists():
            raise TableNotFoundError.from_unrefreshed(
                str(dataset.name), reader=flow.name, where=flow.flow.location
            )
