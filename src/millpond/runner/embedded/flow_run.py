"""Runs one flow of an update to its end: batch by batch for streams, once for a batch query."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from millpond import flows
from millpond.definitions import FlowKind, SqlQuery
from millpond.delta import DEFAULT_MEMORY_LIMIT
from millpond.engine.embedded import EmbeddedEngine
from millpond.engine.protocol import Input, ParquetInput, TableRead
from millpond.errors import MillpondError
from millpond.errors.runner import FlowOutOfMemoryError, StorageNotWritableError
from millpond.files import ListedFile
from millpond.flows import NO_SNAPSHOTS, BatchContext, Snapshots
from millpond.graph import Follower, LocalSource, ResolvedFlow, StreamRead, delta_table
from millpond.graph.new_columns_ahead import NewColumnsAhead
from millpond.names import path_segment
from millpond.options import PREFIX, stream_limits
from millpond.profiling import phase
from millpond.runner.embedded.file_sources import FileSources
from millpond.runner.embedded.inputs import FlowInputs
from millpond.runner.embedded.tables import ReadyTable
from millpond.runner.runtime import BatchOutcome, RunningUpdate
from millpond.runner.schedule import FlowStoppedError, Task
from millpond.state import BatchState, FlowState
from millpond.storage import Layout, Store
from millpond.streaming import (
    Checkpoint,
    DeltaSource,
    MicroBatch,
    StreamSource,
    names_in_checkpoint,
    run_batches,
    run_once,
)
from millpond.streaming.file_source import FileSource

# What DuckDB says where rows outgrow its memory, and then the folder for what does not fit.
_NO_ROOM_TO_OFFLOAD = ("failed to offload", "max_temp_directory_size")


@dataclass(frozen=True)
class FlowRun:
    """What it takes to run the flows of one update."""

    update: RunningUpdate
    engine: EmbeddedEngine
    layout: Layout
    store: Store
    configuration: Mapping[str, str]
    file_sources: FileSources

    def batches(self, task: Task, ready: ReadyTable) -> Iterator[BatchOutcome]:
        """Run a flow's batches, yielding what each did once it is committed.

        Raises:
            MillpondError: The flow failed; batches before are committed, nothing of this one is.
            FlowStoppedError: The update is being stopped.
        """
        with _explained(task.flow):
            yield from self._batches(task, ready)

    def _batches(self, task: Task, ready: ReadyTable) -> Iterator[BatchOutcome]:
        flow = task.flow
        if flow.kind is FlowKind.MATERIALIZED_VIEW:
            # Computed whole each time, so there is nothing to count.
            yield self._apply(task, ready, MicroBatch(0), {})
            return
        folder = self.layout.checkpoint(flow.name, ready.checkpoints[flow.name])
        checkpoint = Checkpoint(folder, self.store)

        def committed() -> int | None:
            return ready.table.snapshot().app_versions.get(ready.app_id(flow.name))

        def apply(batch: MicroBatch) -> BatchOutcome:
            if self.update.stop.is_set():
                raise FlowStoppedError(flow.name)
            if not flow.state:
                return self._apply(task, ready, batch, names)
            return self._apply_with_state(task, ready, batch, names, kept)

        names = _names(flow, checkpoint)

        if flow.flow.once:
            yield from run_once(checkpoint=checkpoint, committed=committed, apply=apply)
            return
        kept = FlowState(self.layout.state(flow.name, ready.checkpoints[flow.name]), self.store)
        waits_for_time = any(operator.get("event_time") for operator in flow.state.values())
        sources = {
            names[stream.source]: self._source(
                stream, flow, folder=checkpoint.source_folder(names[stream.source])
            )
            for stream in flow.streams
        }
        self.file_sources.add(flow.name, sources.values())
        yield from run_batches(
            checkpoint=checkpoint,
            sources=sources,
            committed=committed,
            apply=apply,
            unfinished=lambda number: waits_for_time and kept.watermark_moves_after(number),
        )
        with ExitStack() as finishing:
            for source in sources.values():
                if isinstance(source, FileSource):
                    self.update.warn_of_files(task, source.passed_over, source.empty)
                finishing.callback(source.finish)

    def _source(self, stream: StreamRead, flow: ResolvedFlow, *, folder: Path) -> StreamSource:
        if stream.external is not None:
            follower = Follower(
                flow=flow.name,
                source=stream.source,
                folder=folder,
                store=self.store,
                refused=self._new_columns(stream, flow).refused,
                views=stream.views,
                has_metadata=stream.has_metadata,
                follows_removals=flow.file_key is not None and flow.file_key.follows_removals,
                names_are_keys=flow.file_key is not None and flow.file_key.field == "file_name",
                empties_keys=flow.file_key is not None,
            )
            assert isinstance(stream.external, LocalSource)
            return stream.external.stream(follower)
        return DeltaSource(
            delta_table(stream.table),
            {**stream_limits(self.configuration), **stream.options},
            name=stream.source,
            flow=flow.name,
        )

    def _new_columns(self, stream: StreamRead, flow: ResolvedFlow) -> NewColumnsAhead:
        """What tells which new columns of files the next update will refuse."""
        pipeline = self.update.pipeline
        return NewColumnsAhead(
            pipeline.graph, pipeline.catalog, pipeline.external, self.engine, flow, stream
        )

    def _apply_with_state(
        self,
        task: Task,
        ready: ReadyTable,
        batch: MicroBatch,
        names: Mapping[str, str],
        kept: FlowState,
    ) -> BatchOutcome:
        """Apply a batch whose state is durable before its rows are in the table."""
        state = kept.begin(batch.number)
        outcome = self._apply(task, ready, batch, names, state)
        kept.prune(committed=batch.number)
        return outcome

    def _apply(
        self,
        task: Task,
        ready: ReadyTable,
        batch: MicroBatch,
        names: Mapping[str, str],
        state: BatchState | None = None,
    ) -> BatchOutcome:
        """Apply a batch, in which the flow's streams have these names."""
        flow = task.flow
        staging = self.layout.staging / self.update.id
        folder = staging / f"{path_segment(ready.checkpoints[flow.name])}-{batch.number}"
        context = BatchContext(
            table=ready.table,
            table_id=ready.table_id,
            store=self.store,
            flow=flow.name,
            target=task.dataset.name,
            app_id=ready.app_id(flow.name),
            batch_id=batch.number,
            recompute_sequence=lambda file: self._recompute_sequence(task, file),
        )
        expression = flow.kind is FlowKind.REPLACE_USING and flow.sequence_column is None
        try:
            with phase("read sources"):
                streams: dict[str, Input] = {
                    stream.source: batch.input(names[stream.source], folder=folder)
                    for stream in flow.streams
                }
            with phase("run query"):
                staged = self.engine.stage(
                    flow.plan,
                    FlowInputs(
                        flow,
                        self.update.pipeline,
                        streams,
                        folder=folder / "tables",
                    ),
                    folder=folder / "rows",
                    expectations=task.dataset.dataset.expectations,
                    sequence_by=flow.flow.sequence_by if expression else None,
                    spark_conf=_engine_settings(flow.flow.spark_conf),
                    state=state,
                )
            if state is not None:
                with phase("write state"):
                    state.commit(flow.state)
            match flow.kind:
                case FlowKind.APPEND:
                    result = flows.append(staged, context)
                case FlowKind.REPLACE_USING:
                    result = flows.replace_using(
                        staged,
                        context,
                        keys=flow.keys,
                        sequence=flow.sequence_column,
                        sequence_text=flow.sequence_text,
                        snapshots=_snapshots(flow, batch, names),
                    )
                case FlowKind.MATERIALIZED_VIEW:
                    result = flows.overwrite(
                        staged, context, schema=task.dataset.schema, anew=ready.anew
                    )
                case FlowKind.VIEW:
                    message = f"view {flow.name} has nothing to run"
                    raise AssertionError(message)
                case other:
                    assert_never(other)
        finally:
            self.store.remove_tree(folder)
        return BatchOutcome(batch.number, result, batch.backlog_size, batch.files_read)

    def _recompute_sequence(self, task: Task, file: Path) -> Path:
        """Evaluate the flow's sequence over stored rows that lost theirs."""
        from pyspark.sql.types import LongType, StructField, StructType

        flow = task.flow
        fields = [*task.dataset.schema.fields, StructField(flows.POSITION_COLUMN, LongType())]
        rows = ParquetInput((str(file),), StructType(fields))
        plan = self.engine.plan(SqlQuery("SELECT * FROM stored_rows", flow.flow.location))

        def bind(_read: TableRead) -> Input:
            return rows

        staged = self.engine.stage(
            plan, bind, folder=file.parent / "sequence", sequence_by=flow.flow.sequence_by
        )
        return staged.files[0].parent


def _engine_settings(spark_conf: Mapping[str, str]) -> dict[str, str]:
    """What a flow sets of the engine's, without what it sets of millpond's."""
    return {k: v for k, v in spark_conf.items() if not k.lower().startswith(PREFIX)}


def _names(flow: ResolvedFlow, checkpoint: Checkpoint) -> Mapping[str, str]:
    """What a flow's checkpoint calls its streams, by what its query calls them."""
    if not flow.streams or flow.flow.once:
        return {}
    streams = {stream.source: stream.traits for stream in flow.streams}
    known = checkpoint.streams()
    names = names_in_checkpoint(streams, known)
    noted = {names[name]: traits for name, traits in streams.items()}
    checkpoint.note_streams(noted, known=known)
    return names


def _snapshots(flow: ResolvedFlow, batch: MicroBatch, names: Mapping[str, str]) -> Snapshots:
    """The versions of its keys that a batch of files has, those without rows among them."""
    if flow.file_key is None:
        return NO_SNAPSHOTS
    versions = batch.file_versions(names[flow.streams[0].source])
    by_path = flow.file_key.field == "file_path"
    return Snapshots(
        _newest_us(versions.read.values(), by_path=by_path),
        _newest_us(versions.before.values(), by_path=by_path),
        # Several files can have one name.
        later_wins=by_path,
        anew=versions.anew,
    )


def _newest_us(files: Iterable[ListedFile], *, by_path: bool) -> dict[str, int]:
    """The latest time of each key, in microseconds, as sequences have it."""
    newest: dict[str, int] = {}
    for file in files:
        key = file.uri if by_path else file.name
        time_us = file.modified_ns // 1000
        newest[key] = max(newest.get(key, time_us), time_us)
    return newest


@contextmanager
def _explained(flow: ResolvedFlow) -> Iterator[None]:
    """Say which flow could not read or write its files, as when the disk is full."""
    import duckdb

    try:
        yield
    except MillpondError:
        raise
    except duckdb.OutOfMemoryException as error:
        folder, where = tempfile.gettempdir(), flow.flow.location
        if any(words in str(error) for words in _NO_ROOM_TO_OFFLOAD):
            raise StorageNotWritableError.from_spill(
                flow.name, error, folder=folder, where=where
            ) from error
        raise FlowOutOfMemoryError.from_flow(
            flow.name, error, limit=DEFAULT_MEMORY_LIMIT, folder=folder, where=where
        ) from error
    except (OSError, duckdb.IOException) as error:
        raise StorageNotWritableError.from_flow(
            flow.name, error, where=flow.flow.location
        ) from error
