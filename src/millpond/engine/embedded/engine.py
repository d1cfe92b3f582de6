"""The embedded engine: `Engine` of the protocol, on Sail.

Heavy packages are imported when the first engine starts, beside the start of its server.
"""

from __future__ import annotations

import atexit
import signal
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millpond.definitions import Expectation
from millpond.engine.connect.engine import ConnectEngine, own_plan
from millpond.engine.connect.first_import import import_client
from millpond.engine.embedded.server import Server
from millpond.engine.protocol import (
    Binder,
    Input,
    ParquetInput,
    QueryPlan,
    StagedBatch,
    StateDescription,
)
from millpond.errors.engine_start import EngineConfigurationError
from millpond.files.metadata import METADATA_COLUMN
from millpond.names import DEFAULT_CATALOG, DEFAULT_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

    from millpond.engine.connect.plan import ConnectPlan
    from millpond.state import BatchState

_UTC = frozenset({"UTC", "Etc/UTC", "GMT"})


class EmbeddedEngine(ConnectEngine):
    """Runs Spark queries on Sail, in this process.

    Args:
        configuration: Settings that every session gets, and `spark.conf.get` tells.
        catalog: Default catalog for names in queries that say none.
        schema: Default schema, likewise.

    Raises:
        EngineStartError: Others could use the engine.
        EngineConfigurationError: The engine refuses a setting.
    """

    def __init__(
        self,
        *,
        configuration: Mapping[str, str] | None = None,
        catalog: str = DEFAULT_CATALOG,
        schema: str = DEFAULT_SCHEMA,
    ) -> None:
        self._closed = False
        try:
            self._server = _started_beside(_import_connect)
        finally:
            _take_back_ctrl_c()
        atexit.register(self.close)
        from millpond.engine.embedded.inputs import Inputs
        from millpond.engine.embedded.prepared import PreparedQueries

        self._inputs = Inputs()
        self._prepared = PreparedQueries()
        try:
            super().__init__(
                self._server.connection(),
                configuration=configuration,
                catalog=catalog,
                schema=schema,
                computes_state=True,
                # The server lives in this process: once it does not answer, it is gone.
                retries=[],
            )
        except BaseException:
            self.close()
            raise

    def check_settings(self, settings: Mapping[str, str]) -> None:
        from millpond.engine.connect.sessions import TIME_ZONE

        zone = settings.get(TIME_ZONE, "UTC")
        if zone not in _UTC:
            # Sail shows times that it made of text in the zone, and those of tables in UTC.
            raise EngineConfigurationError.from_time_zone(TIME_ZONE, zone)

    def relation(self, source: Input) -> Any:
        """What stands in a plan for an input that is no plan."""
        return self._inputs.relation(source)

    def bound(self, plan: ConnectPlan, binder: Binder) -> Any:
        """A plan's relation over its inputs, its texts as Sail can read them."""
        from millpond.engine.embedded.bound_texts import change_texts

        root = super().bound(plan, binder)
        change_texts(root, plan, self.client())
        return root

    def columns(
        self, plan: ConnectPlan, root: Any, *, known: Collection[str] = frozenset()
    ) -> StructType:
        """The columns of a bound plan, which Sail can analyse and run."""
        from millpond.engine.embedded.planning import check_planned
        from millpond.engine.embedded.stateful.event_time import without_event_time

        found = super().columns(plan, root, known=known)
        check_planned(plan, root, self.client())
        return without_event_time(found)

    def resolved(self, plan: ConnectPlan, root: Any) -> tuple[Any, StateDescription]:
        """A bound plan without the operators that Sail does not have, and what they keep."""
        from millpond.engine.connect.cuts import cuts

        if not any(cuts(root)):
            return root, {}
        from millpond.engine.embedded.stateful.operations import resolved

        return resolved(plan, root, self.client())

    def stage(
        self,
        plan: QueryPlan,
        binder: Binder,
        *,
        folder: Path,
        expectations: Sequence[Expectation] = (),
        sequence_by: str | Column | None = None,
        spark_conf: Mapping[str, str] | None = None,
        state: BatchState | None = None,
    ) -> StagedBatch:
        """Run the bound plan once and write its rows as Parquet below `folder`.

        Args:
            state: What the operators of the plan kept from earlier batches, and keep of this one.

        Raises:
            MillpondError: The plan can't be analysed, or fails while it runs.
        """
        from millpond.engine.embedded.staging import stage, staging

        own = own_plan(plan)
        if not expectations and sequence_by is None:
            there = _rows_handed_on(own, binder)
            if there is not None:
                return there
        client = self.client(spark_conf)

        analyse = partial(
            staging, own, client=client, expectations=expectations, sequence_by=sequence_by
        )
        if state is not None:
            from millpond.engine.embedded.stateful.execution import Batch
            from millpond.engine.embedded.stateful.operations import resolved

            files = folder.with_name(f"{folder.name}-state")
            root, _ = resolved(own, self.bound(own, binder), client, batch=Batch(state, files))
            return stage(own, analyse(root), client=client, folder=folder)
        with self._prepared.staging(
            (own, client, sequence_by, *expectations),
            binder,
            bind=partial(self.bound, own),
            analyse=analyse,
            client=client,
        ) as found:
            return stage(own, found, client=client, folder=folder)

    def close(self) -> None:
        """End all sessions and the server. Closing twice is as good as once."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        super().close()
        self._server.stop()
        self._inputs.close()
        self._prepared.close()


def _import_connect() -> None:
    import_client()
    import millpond.engine.connect.session
    import millpond.engine.embedded.channel_builder
    import millpond.engine.embedded.inputs  # noqa: F401 - imported to be ready


def _started_beside(work: Callable[[], None]) -> Server:
    """Start a server in a thread while `work` is done here.

    What ends the work does not wait for the server: Ctrl-C stops a Sail that is being started, too,
    which may then never answer who starts it.
    """
    starting: Future[Server] = Future()

    def start() -> None:
        try:
            server = Server()
        except BaseException as error:  # noqa: BLE001 - raised again below
            if starting.set_running_or_notify_cancel():
                starting.set_exception(error)
            return
        if starting.set_running_or_notify_cancel():
            starting.set_result(server)
        else:
            server.stop()

    threading.Thread(target=start, name="millpond-sail-start", daemon=True).start()
    try:
        work()
        return starting.result()
    except BaseException:
        if not starting.cancel() and starting.exception() is None:
            starting.result().stop()
        raise


def _take_back_ctrl_c() -> None:
    """Let SIGINT be handled as before: Sail stops at it, even where the process ignores it.

    Sail takes it over once, when the first server of a process runs. Only the main thread can take
    it back.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is threading.main_thread() and handler is not None:
        signal.signal(signal.SIGINT, handler)


def _rows_handed_on(plan: ConnectPlan, binder: Binder) -> StagedBatch | None:
    """The rows of a query that only hands on what was read into files for this batch."""
    read = plan.handed_on
    if read is None or read.format is None or read.metadata:
        return None
    found = binder(read)
    if not isinstance(found, ParquetInput) or METADATA_COLUMN in found.schema.names:
        return None
    return StagedBatch(tuple(map(Path, found.files)), found.schema, written=found.written)
