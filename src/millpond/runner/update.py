"""One triggered update: load, check, set up tables, run flows, record all of it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from millpond.definitions import DatasetKind, FlowKind
from millpond.engine.protocol import Engine
from millpond.errors import MillpondError
from millpond.errors.events import EventLogWriteError
from millpond.events import (
    Event,
    EventLog,
    ExpectationMetrics,
    FlowMetrics,
    FlowStatus,
    Recorder,
    UpdateState,
)
from millpond.graph import ResolvedDataset, properties
from millpond.runner.flow_run import BatchOutcome, FlowRun
from millpond.runner.inputs import check_upstream
from millpond.runner.lock import update_lock
from millpond.runner.project import LoadedProject, Project, load
from millpond.runner.schedule import Schedule, Task
from millpond.runner.selection import Selection, select
from millpond.runner.tables import ReadyTable, set_up

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
    engine = project.start_engine()
    try:
        return load(project, engine).problems
    finally:
        engine.close()


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
        MillpondError: The selection is wrong.
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
            result = _Update(project, recorder, update_id).run(
                refresh=refresh, full_refresh=full_refresh, full_refresh_all=full_refresh_all
            )
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
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


@dataclass
class _Update:
    """The steps of one update, and what they learn on the way."""

    project: Project
    recorder: Recorder
    update_id: str
    results: dict[str, FlowResult] = field(default_factory=dict)
    ready: dict[Key, ReadyTable] = field(default_factory=dict)
    failed_tables: set[Key] = field(default_factory=set)

    def run(
        self, *, refresh: Sequence[str], full_refresh: Sequence[str], full_refresh_all: bool
    ) -> UpdateResult:
        layout, store = self.project.layout, self.project.store
        # Only the holder of the lock stages batches: what is there is from an update that died.
        store.remove_tree(layout.staging)
        self.recorder.update_progress(UpdateState.INITIALIZING)
        engine = self.project.start_engine()
        try:
            loaded = load(
                self.project,
                engine,
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
            self._record_definitions(loaded)
            self._set_up_tables(loaded, selection)
            self._run_flows(loaded, engine)
        finally:
            engine.close()
            store.remove_tree(layout.staging)
        self._remove_old_checkpoints(loaded)
        state = UpdateState.FAILED if self.failed_tables else UpdateState.COMPLETED
        first = next((result.error for result in self.results.values() if result.error), None)
        self.recorder.update_progress(state, error=first)
        return UpdateResult(self.update_id, state, flows=tuple(self.results.values()))

    def _record_definitions(self, loaded: LoadedProject) -> None:
        for dataset in loaded.graph.datasets.values():
            self.recorder.dataset_definition(
                dataset.dataset,
                num_flows=len(dataset.flows),
                left_out=properties.left_out(dataset.dataset),
            )
            for flow in dataset.flows:
                self.recorder.flow_definition(
                    flow.flow, kind=flow.kind, inputs=flow.inputs, schema_json=flow.schema.json()
                )

    def _set_up_tables(self, loaded: LoadedProject, selection: Selection) -> None:
        tables = list(loaded.graph.tables())
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
                    self._set_up(dataset, reset=True)
        self.recorder.update_progress(UpdateState.SETTING_UP_TABLES)
        for dataset in tables:
            if dataset.key in selection.refresh - selection.reset:
                self._set_up(dataset, reset=False)

    def _set_up(self, dataset: ResolvedDataset, *, reset: bool) -> None:
        try:
            self.ready[dataset.key] = set_up(
                dataset, self.project.store, layout=self.project.layout, reset=reset
            )
        except Exception as error:  # noqa: BLE001 - the table's own failure; others go on
            self.failed_tables.add(dataset.key)
            for flow in dataset.flows:
                self._end(Task(flow, dataset), FlowStatus.FAILED, error=error)

    def _run_flows(self, loaded: LoadedProject, engine: Engine) -> None:
        self.recorder.update_progress(UpdateState.RUNNING)
        tasks = [
            Task(flow, dataset)
            for dataset in loaded.graph.tables()
            if dataset.key in self.ready
            for flow in dataset.flows
        ]
        for task in tasks:
            self._progress(task, FlowStatus.QUEUED)
        stop = threading.Event()
        shared = FlowRun(
            engine=engine,
            graph=loaded.graph,
            catalog=loaded.catalog,
            external=loaded.external,
            layout=self.project.layout,
            store=self.project.store,
            configuration=self.project.spec.configuration,
            staging=self.project.layout.staging / self.update_id,
            stop=stop,
            warn_of_files=lambda task, reasons: self.recorder.files_passed_over(
                task.flow.name, task.dataset.name, reasons
            ),
        )

        def run(task: Task) -> None:
            self._progress(task, FlowStatus.STARTING)
            try:
                check_upstream(task.flow, loaded.graph)
                for outcome in shared.batches(task, self.ready[task.dataset.key]):
                    self._batch(task, outcome)
            except MillpondError as error:
                error.where = error.where or task.flow.flow.location
                raise

        Schedule(
            tasks,
            run,
            self,
            failed=self.failed_tables,
            stop=stop,
            interrupt=engine.interrupt,
        ).run()

    def completed(self, task: Task) -> None:
        self._end(task, FlowStatus.COMPLETED)

    def failed(self, task: Task, error: BaseException) -> None:
        self._end(task, FlowStatus.FAILED, error=error)

    def skipped(self, task: Task, upstream: ResolvedDataset) -> None:
        self._end(task, FlowStatus.SKIPPED, reason=f"{upstream.name}, which it reads, failed")

    def stopped(self, task: Task) -> None:
        self._end(task, FlowStatus.STOPPED)

    def _batch(self, task: Task, outcome: BatchOutcome) -> None:
        result = outcome.result
        replaces = task.flow.kind is FlowKind.REPLACE_USING
        self._progress(
            task,
            FlowStatus.RUNNING,
            metrics=FlowMetrics(
                rows_read=result.rows_read,
                num_output_rows=None if replaces else result.rows_inserted,
                num_upserted_rows=result.rows_inserted if replaces else None,
                num_deleted_rows=result.rows_deleted if replaces else None,
                num_late_rows=result.rows_late if replaces else None,
                num_dropped_rows=result.rows_dropped,
                num_output_bytes=result.bytes_written,
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
        ready = self.ready.get(task.dataset.key)
        return ready.checkpoints[task.flow.name] if ready else None

    def _remove_old_checkpoints(self, loaded: LoadedProject) -> None:
        """Remove checkpoints that no table names any more; a full refresh leaves them behind."""
        store, layout = self.project.store, self.project.layout
        for key, ready in self.ready.items():
            dataset = loaded.graph.datasets[key]
            if dataset.dataset.kind is not DatasetKind.STREAMING_TABLE:
                continue
            for flow, checkpoint_id in ready.checkpoints.items():
                folder = layout.checkpoint(flow, checkpoint_id).parent
                for name in store.list(folder):
                    if name != checkpoint_id:
                        store.remove_tree(folder / name)
