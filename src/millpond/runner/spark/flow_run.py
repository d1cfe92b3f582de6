"""Runs one flow on a Spark server: a streaming query of its own, or one batch."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from millpond.definitions import FlowKind
from millpond.engine.connect.engine import own_plan
from millpond.engine.spark import SparkEngine
from millpond.engine.spark.sequences import sequence_sql
from millpond.errors import MillpondError
from millpond.errors.spark import (
    SparkCheckpointMissingError,
    SparkQueryStoppedError,
    TableLeftEmptyError,
)
from millpond.graph import ResolvedFlow
from millpond.options import PREFIX
from millpond.profiling import phase
from millpond.runner.begun_reset import BEING_RESET
from millpond.runner.runtime import BatchOutcome, RunningUpdate
from millpond.runner.schedule import FlowStoppedError, Task
from millpond.runner.spark.appended_batches import AppendedBatches
from millpond.runner.spark.batch_program import names_conflict
from millpond.runner.spark.clustering import cluster
from millpond.runner.spark.conflicts import retried
from millpond.runner.spark.failures import WORKER_LATE, explained
from millpond.runner.spark.history import BatchHistory, CommittedBatch
from millpond.runner.spark.inputs import ServerInputs
from millpond.runner.spark.interrupted import as_far_as_known, despite_interrupts
from millpond.runner.spark.places import Places
from millpond.runner.spark.progress import TELLING, QueryProgress
from millpond.runner.spark.relations import counted_and_kept, with_checks
from millpond.runner.spark.sql import quoted
from millpond.runner.spark.table_setup import ReadyTable, comment_columns, has_other_columns
from millpond.runner.table_properties import partition_columns
from millpond.streaming import DataSize

if TYPE_CHECKING:
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.streaming.query import StreamingQuery
    from pyspark.sql.connect.streaming.readwriter import DataStreamWriter

    from millpond.engine.spark.session import ClientSession
    from millpond.runner.spark.batch_program import BatchPlan

# Holds the checkpoint under which a flow's only batch was committed.
DONE_PROPERTY = "millpond.once.{flow}"
# Holds the checkpoint of a flow whose query has been there.
STARTED_PROPERTY = "millpond.started.{flow}"
# As long as the history of a table tells all, it needs no such property: that of one that is
# younger, as Delta keeps thirty days unless the table says otherwise.
HISTORY_LASTS_S = 3600.0
_RETENTION = "delta.logRetentionDuration"
POLL_S = 0.3
START_ATTEMPTS = 10
CONFLICT_ATTEMPTS = 10
# The server waits ten seconds for a query's Python worker: two at a time may be too slow.
STARTING = threading.Lock()
_KINDS = {
    FlowKind.APPEND: "append",
    FlowKind.REPLACE_USING: "replace",
    FlowKind.MATERIALIZED_VIEW: "overwrite",
}


class FlowRun:
    """One flow in one update.

    Args:
        configuration: The pipeline's settings, of which limits of a micro-batch matter here.
    """

    def __init__(
        self,
        task: Task,
        ready: ReadyTable,
        update: RunningUpdate,
        *,
        engine: SparkEngine,
        places: Places,
        configuration: Mapping[str, str],
    ) -> None:
        self._task = task
        self._flow = task.flow
        self._ready = ready
        self._update = update
        self._engine = engine
        self._places = places
        self._configuration = configuration
        self._history = BatchHistory(ready.table, engine, app_id=self._app_id)

    @property
    def _app_id(self) -> str:
        app_id = self._ready.app_id(self._flow.name)
        # A materialized view is computed whole in each update.
        return f"{app_id}/{self._update.id}" if self._is_view else app_id

    @property
    def _is_view(self) -> bool:
        return self._flow.kind is FlowKind.MATERIALIZED_VIEW

    def batches(self) -> Iterator[BatchOutcome]:
        """Run the flow to its end, yielding what each batch did.

        Raises:
            MillpondError: The flow failed; batches before are committed, nothing of this one is.
            FlowStoppedError: The update is being stopped.
        """
        with explained(self._task, self._engine):
            settings = {**_engine_settings(self._flow.flow.spark_conf), **TELLING}
            session = self._engine.session_of(self._flow.name, settings)
            checked = self._checked()
            if self._is_view:
                yield from self._overwrite(session.frame(checked), session)
            elif self._flow.flow.once:
                self._run_once(session.frame(checked), session)
                yield from self._outcomes_of_history()
            else:
                self._check_checkpoint()
                if self._flow.kind is FlowKind.REPLACE_USING:
                    yield from self._replace(session.frame(checked))
                else:
                    self._sign(session)
                    yield from self._append(session.frame(self._kept(checked)))

    def _check_checkpoint(self) -> None:
        """Raise where the table holds batches of a checkpoint that is gone.

        Its history tells so as long as that lasts; before it ends, the table is given a property.
        """
        name, checkpoint = self._flow.name, self._ready.checkpoints[self._flow.name]
        mark, detail = STARTED_PROPERTY.format(flow=name), self._ready.detail
        is_marked = detail.properties.get(mark) == checkpoint
        if self._places.query_of(name, checkpoint, self._engine) is not None:
            may_forget = detail.lived_s > HISTORY_LASTS_S or _RETENTION in detail.properties
            if may_forget and not is_marked:
                self._ready.table.set_properties({mark: checkpoint})
        elif is_marked or self._history.has_any():
            raise SparkCheckpointMissingError.from_flow(
                name,
                target=str(self._task.dataset.name),
                location=self._places.checkpoint(name, checkpoint),
                where=self._flow.flow.location,
            )

    def _sign(self, session: ClientSession) -> None:
        """Let the commits of Spark's own sink say whose they are."""
        from millpond.runner.spark.batch_program import METADATA_CONF

        session.conf.set(METADATA_CONF, json.dumps(dict(self._plan().metadata)))

    def _checked(self) -> Any:
        inputs = ServerInputs(self._flow.name, self._update.pipeline, self._configuration)
        bound = own_plan(self._flow.plan).bind(inputs, self._engine.relation)
        dataset = self._task.dataset
        expectations = dataset.dataset.expectations
        return with_checks(
            bound, self._flow.schema, dataset.schema, expectations, as_table=self._is_view
        )

    def _kept(self, checked: Any) -> Any:
        expectations = self._task.dataset.dataset.expectations
        return counted_and_kept(checked, self._flow.schema, expectations)

    def _overwrite(self, frame: DataFrame, session: ClientSession) -> Iterator[BatchOutcome]:
        """Compute a materialized view. Of the rows that it held, Delta tells no number."""
        table, schema = self._ready.table, self._task.dataset.schema
        self._history.begin()
        before = table.row_count()
        # Only then: it makes Delta forget comments, and which columns must not be null.
        is_made_anew = self._ready.replace_statement is not None
        overwrites_schema = not is_made_anew and has_other_columns(table.columns(), schema)
        self._run_batch(
            frame,
            session,
            overwrites_schema=overwrites_schema,
            writing=self._made_anew if is_made_anew else nullcontext,
        )
        if overwrites_schema:
            comment_columns(table, table.columns(), schema)
            detail = table.detail()
            if detail is not None:
                cluster(self._task.dataset, table, detail, self._places)
        for outcome in self._outcomes_of_history():
            yield replace(outcome, result=replace(outcome.result, rows_deleted=before))

    @contextmanager
    def _made_anew(self) -> Iterator[None]:
        """Make the table anew to write to; it gets its rows and columns back where that fails.

        Delta has no statement that does both and keeps `NOT NULL`.
        """
        from pyspark.errors import PySparkException

        table, statement = self._ready.table, self._ready.replace_statement or ""
        # The next update begins anew as well if this one fails. And to an older version than of
        # just now, Delta may refuse to go back.
        table.set_properties(BEING_RESET)
        before = table.newest_version()
        try:
            retried(lambda: self._engine.rows(statement))
            yield
        except BaseException as error:
            try:
                despite_interrupts(lambda: table.restore(before))
            except (PySparkException, MillpondError) as failed:
                raise TableLeftEmptyError.from_view(
                    str(self._task.dataset.name),
                    version=before,
                    reason=str(error),
                    restoring=str(failed),
                    where=self._flow.flow.location,
                ) from error
            raise

    def _run_once(self, frame: DataFrame, session: ClientSession) -> None:
        """Run the only batch of a flow, unless it ran in an earlier update."""
        self._history.begin()
        done = DONE_PROPERTY.format(flow=self._flow.name)
        checkpoint = self._ready.checkpoints[self._flow.name]
        if self._ready.table.properties().get(done) == checkpoint:
            return
        self._run_batch(frame, session)
        # A stop before this runs the query again, whose rows Delta then knows by their number.
        self._ready.table.set_properties({done: checkpoint})

    def _run_batch(
        self,
        frame: DataFrame,
        session: ClientSession,
        *,
        overwrites_schema: bool = False,
        writing: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Run a batch from here: a flow without streams has no streaming query."""
        from millpond.runner.spark.batch_program import apply_batch

        with session.active(), phase("run query, commit"):
            apply_batch(frame, 0, self._plan(overwrites_schema=overwrites_schema), writing)

    def _append(self, frame: DataFrame) -> Iterator[BatchOutcome]:
        """Append by Spark's own sink, which knows the batches that the table holds."""
        table = self._ready.table
        self._history.begin()
        expectations = self._task.dataset.dataset.expectations
        warn = functools.partial(self._update.warn_of_batches, self._task)
        batches = AppendedBatches(self._history, expectations, warn)

        def start() -> _Started:
            writer = self._writer(frame).format("delta")
            place = table.location
            query = writer.start(place) if place is not None else writer.toTable(table.sql)
            progress = QueryProgress(query, expectations)
            return _Started(
                query,
                progress,
                new_batches=lambda: batches.new(progress),
                last_batches=lambda: batches.last(progress),
            )

        yield from self._streamed(start)

    def _replace(self, frame: DataFrame) -> Iterator[BatchOutcome]:
        """Replace with a program of our own for each batch."""
        from millpond.runner.spark.batch_program import apply_batch

        program = functools.partial(apply_batch, plan=self._plan())
        self._history.begin()

        def start() -> _Started:
            query = self._started(self._writer(frame).foreachBatch(program))
            progress = QueryProgress(query, ())
            return _Started(
                query,
                progress,
                new_batches=self._history.new_batches,
                last_batches=self._history.new_batches,
            )

        yield from self._streamed(start)

    def _streamed(self, start: Callable[[], _Started]) -> Iterator[BatchOutcome]:
        """Run a streaming query to its end.

        Where others change the table's properties while it writes a batch, Delta fails the query,
        which is started again: it goes on from its checkpoint.
        """
        from pyspark.errors import StreamingQueryException

        for attempts_left in reversed(range(CONFLICT_ATTEMPTS)):
            try:
                with phase("start query"):
                    started = start()
                yield from self._followed(started)
            except StreamingQueryException as error:
                if not attempts_left or not names_conflict(str(error)):
                    raise
            else:
                return

    def _followed(self, started: _Started) -> Iterator[BatchOutcome]:
        """Wait for a query to end, yielding what its batches did."""
        from pyspark.errors import PySparkException, StreamingQueryException

        query, ended = started.query, False
        try:
            while not ended:
                ended = bool(query.awaitTermination(POLL_S))
                if started.progress.has_moved():
                    yield from _outcomes(started.new_batches())
                self._check_goes_on()
            yield from _outcomes(started.new_batches())
            started.progress.profile()
            if not started.progress.has_read_all():
                raise SparkQueryStoppedError.from_flow(
                    self._flow.name, where=self._flow.flow.location
                )
        except StreamingQueryException:
            ended = True
            yield from _outcomes(as_far_as_known(started.last_batches))
            raise
        except (PySparkException, FlowStoppedError):
            # A stop interrupts what waits for the server.
            ended = True
            if self._stop(query):
                yield from _outcomes(as_far_as_known(started.last_batches))
            raise
        finally:
            if not ended:
                self._stop(query)

    def _stop(self, query: StreamingQuery) -> bool:
        """Stop a query whose session does nothing else any more, and say whether that was done.

        Where the server does not answer, the next update finds the query and stops it.
        """
        from pyspark.errors import PySparkException

        query._session.client.set_retry_policies([])  # noqa: SLF001 - there is no public way
        with suppress(PySparkException):
            despite_interrupts(query.stop)
            return True
        return False

    def _check_goes_on(self) -> None:
        if self._update.stop.is_set():
            raise FlowStoppedError(self._flow.name)

    def _writer(self, frame: DataFrame) -> DataStreamWriter:
        checkpoint = self._ready.checkpoints[self._flow.name]
        return (
            frame.writeStream.option(
                "checkpointLocation", self._places.checkpoint(self._flow.name, checkpoint)
            )
            .trigger(availableNow=True)
            .outputMode("append")
            .queryName(self._flow.name)
        )

    def _started(self, writer: DataStreamWriter) -> StreamingQuery:
        """Start a query whose Python worker a busy server may be slow to start."""
        from pyspark.errors import PySparkException

        for attempts_left in reversed(range(START_ATTEMPTS)):
            try:
                with turn_to_start(self._check_goes_on):
                    return writer.start()
            except PySparkException as error:
                if not attempts_left or WORKER_LATE not in str(error):
                    raise
            self._check_goes_on()
        raise AssertionError

    def _outcomes_of_history(self) -> Iterator[BatchOutcome]:
        return _outcomes(self._history.new_batches())

    def _plan(self, *, overwrites_schema: bool = False) -> BatchPlan:
        from millpond.runner.spark.batch_program import BatchExpectation, BatchPlan

        flow, dataset = self._flow, self._task.dataset
        return BatchPlan(
            kind=_KINDS[flow.kind],
            target=self._ready.table.sql,
            # It may give its table other columns.
            columns=tuple((dataset.schema if self._is_view else flow.schema).names),
            app_id=self._app_id,
            expectations=tuple(
                BatchExpectation(expectation.name, str(expectation.action))
                for expectation in dataset.dataset.expectations
            ),
            keys=flow.keys,
            sequence=_sequence(flow) if flow.kind is FlowKind.REPLACE_USING else None,
            partition_columns=partition_columns(dataset),
            keeps_clustering=bool(dataset.dataset.cluster_by),
            overwrite_schema=overwrites_schema,
            metadata=(("appId", self._app_id), ("flow", flow.name)),
        )


@contextmanager
def turn_to_start(check_goes_on: Callable[[], None]) -> Iterator[None]:
    """Wait until no other query is being started, or until `check_goes_on` raises."""
    while not STARTING.acquire(timeout=POLL_S):
        check_goes_on()
    try:
        yield
    finally:
        STARTING.release()


@dataclass(frozen=True)
class _Started:
    """A streaming query that was started.

    Attributes:
        new_batches: Tells those that ended since it was last asked.
        last_batches: Likewise, of a query that failed or was stopped.
    """

    query: StreamingQuery
    progress: QueryProgress
    new_batches: Callable[[], Iterable[CommittedBatch]]
    last_batches: Callable[[], Iterable[CommittedBatch]]


def _outcomes(batches: Iterable[CommittedBatch]) -> Iterator[BatchOutcome]:
    for batch in batches:
        yield BatchOutcome(batch.number, batch.result, DataSize())


def _sequence(flow: ResolvedFlow) -> str:
    """The sequence as SQL over the query's columns, which a stored row has as well."""
    if flow.sequence_column is not None:
        return quoted(flow.sequence_column)
    assert flow.flow.sequence_by is not None
    return sequence_sql(flow.flow.sequence_by)


def _engine_settings(spark_conf: Mapping[str, str]) -> dict[str, str]:
    """What a flow sets of the engine's, without what it sets of millpond's."""
    return {k: v for k, v in spark_conf.items() if not k.lower().startswith(PREFIX)}
