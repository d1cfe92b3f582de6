"""The embedded engine: `Engine` of the protocol, on Sail.

Heavy packages are imported when the first engine starts, beside the start of its server.
"""

from __future__ import annotations

import atexit
import inspect
import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millpond.definitions import Expectation, PythonQuery, Query, SqlQuery
from millpond.engine.active_session import active
from millpond.engine.embedded.server import (
    DEFAULT_CONFIGURATION,
    NO_RETRIES,
    Server,
    Sessions,
    check_time_zone,
)
from millpond.engine.protocol import (
    Binder,
    EmptyInput,
    Input,
    ParquetInput,
    QueryPlan,
    StagedBatch,
    StateDescription,
    TableRead,
)
from millpond.errors import MillpondError, SourceLocation
from millpond.errors.engine import (
    InvalidSequenceError,
    QueryAnalysisError,
    QueryFunctionError,
    QueryFunctionResultError,
)
from millpond.files.metadata import METADATA_COLUMN
from millpond.names import DEFAULT_CATALOG, DEFAULT_SCHEMA

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import StructType

    from millpond.engine.connect.plan import ConnectPlan
    from millpond.state import BatchState

_QUERY = SourceLocation("<query>", 1, 1)


class EmbeddedEngine:
    """Runs Spark queries on Sail, in this process.

    Args:
        configuration: Settings that every session gets, and `spark.conf.get` tells.
        catalog: Default catalog for names in queries that say none.
        schema: Default schema, likewise.

    Raises:
        EngineConfigurationError: The engine refuses a setting.
    """

    def __init__(
        self,
        *,
        configuration: Mapping[str, str] | None = None,
        catalog: str = DEFAULT_CATALOG,
        schema: str = DEFAULT_SCHEMA,
    ) -> None:
        settings = {**DEFAULT_CONFIGURATION, **(configuration or {})}
        check_time_zone(settings)
        self._catalog = catalog
        self._schema = schema
        self._closed = False
        self._server = _started_beside(_import_connect)
        from millpond.engine.connect import call_sites
        from millpond.engine.connect.functions import RegisteredFunctions
        from millpond.engine.connect.guard import DefinitionGuard
        from millpond.engine.connect.session import PipelineSession
        from millpond.engine.embedded.inputs import Inputs

        atexit.register(self.close)
        call_sites.watch()
        self._inputs = Inputs()
        self._functions = RegisteredFunctions()
        self._sessions = Sessions(self._server.url, settings, self._functions)
        self._guard = DefinitionGuard(
            self._inputs.relation, self._can_read, self._functions, self._without_state
        )
        self._session: Any = PipelineSession(
            self._server.url, guard=self._guard, functions=self._functions
        )
        self._session.client.set_retry_policies(NO_RETRIES)
        try:
            self._sessions.client()
            self._session.client.set_all(settings)
        except BaseException:
            self.close()
            raise

    @property
    def session(self) -> SparkSession:
        """The session that source files see as `spark`."""
        return self._session

    def defining(self, binder: Binder) -> AbstractContextManager[None]:
        """While open, user code may build queries and ask for schemas, but not run or write."""
        return self._guard.open(binder)

    def plan(self, query: Query) -> QueryPlan:
        """Evaluate a flow's query, calling the user's function where it is one.

        Raises:
            MillpondError: The text can't be read, the function fails or returns no DataFrame, or
                the query holds an operation that no flow supports.
        """
        from millpond.engine.connect.plan import plan_of_relation, plan_of_text

        if isinstance(query, SqlQuery):
            return plan_of_text(
                query,
                can_read=self._can_read,
                aggregates=self._functions.aggregates,
                has_watermark=self._guard.has_watermark,
            )
        frame = self._call(query)
        relation = frame._plan.to_proto(self._session.client).root  # noqa: SLF001 - the plan itself
        return plan_of_relation(
            relation,
            location=query.location,
            can_read=self._can_read,
            aggregates=self._functions.aggregates,
            has_watermark=self._guard.has_watermark,
            catalog=query.catalog,
            schema=query.schema,
        )

    def renamed(self, plan: QueryPlan, names: Sequence[str]) -> QueryPlan:
        """Return the same plan with other names for its columns, as many as it has."""
        return _own(plan).renamed(names)

    def schema(self, plan: QueryPlan, binder: Binder) -> StructType:
        """Analyse the plan over bound inputs and return its columns. Reads no data."""
        from millpond.engine.embedded.columns import check_not_reserved, check_unique
        from millpond.engine.embedded.planning import check_planned
        from millpond.engine.embedded.stateful.event_time import without_event_time

        own = _own(plan)
        columns: set[str] = set()
        root = own.bind(_noting(binder, columns), self._inputs.relation)
        root, _ = self._resolved(own, root)
        found = without_event_time(self._analyse(own, root, known=columns))
        check_planned(own, root, self._sessions.client())
        check_unique(found, where=own.location)
        check_not_reserved(found, where=own.location)
        return found

    def state(self, plan: QueryPlan, binder: Binder) -> StateDescription:
        """Say what the operators of a plan keep from batch to batch. Reads no data.

        Raises:
            MillpondError: An operator can't be computed batch by batch.
        """
        own = _own(plan)
        return self._resolved(own, own.bind(binder, self._inputs.relation))[1]

    def metadata_origin(self, plan: QueryPlan, column: str) -> str | None:
        """The field of `_metadata` that a column of a query is as it stands, in lower case."""
        from millpond.engine.connect.metadata_origin import metadata_origin

        own = _own(plan)
        return metadata_origin(own.relation, own.sources, column)

    def check_expectation(self, expectation: Expectation, schema: StructType) -> None:
        """Raise a `MillpondError` unless the constraint is one boolean expression on a row."""
        from millpond.engine.embedded.expectations import check_constraint

        check_constraint(
            expectation,
            schema,
            client=self._sessions.client(),
            python_functions=self._functions.names,
        )

    def parse_schema(self, text: str) -> StructType:
        """Read columns written as Spark DDL, such as `a INT, b STRING NOT NULL`.

        Raises:
            QueryAnalysisError: The text can't be read.
        """
        from pyspark.errors import PySparkException
        from pyspark.sql.types import StructType

        from millpond.engine.connect.failures import message_of

        subject = f"The schema {text!r}"
        try:
            found = self._sessions.client()._analyze("ddl_parse", ddl_string=text).parsed  # noqa: SLF001 - as createDataFrame does
        except PySparkException as error:
            raise QueryAnalysisError.of(
                message_of(error), subject=subject, where=None, detail=""
            ) from error
        if not isinstance(found, StructType):
            raise QueryAnalysisError.of(
                "it is a type, not a list of columns", subject=subject, where=None, detail=""
            )
        return found

    def sequence_type(self, sequence_by: str | Column, schema: StructType) -> object:
        """Return the Spark type of a sequence expression over a query's columns.

        Raises:
            InvalidSequenceError: It is not one value of a row with these columns.
        """
        from pyspark.errors import PySparkException
        from pyspark.sql.connect import proto

        from millpond.engine.connect.expressions import named
        from millpond.engine.connect.failures import message_of
        from millpond.engine.embedded.columns import sequence_expression
        from millpond.engine.embedded.inputs import empty_relation
        from millpond.engine.embedded.sequences import check_sequence

        client = self._sessions.client()
        relation = proto.Relation()
        relation.project.input.CopyFrom(empty_relation(schema))
        expression = sequence_expression(sequence_by, schema, client)
        check_sequence(expression)
        relation.project.expressions.append(named(expression, "sequence"))
        try:
            return client.schema(proto.Plan(root=relation)).fields[0].dataType
        except PySparkException as error:
            raise InvalidSequenceError.of(f"can't be analysed: {message_of(error)}") from error

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
        from millpond.engine.embedded.staging import stage

        own = _own(plan)
        if not expectations and sequence_by is None:
            there = _rows_handed_on(own, binder)
            if there is not None:
                return there
        client = self._sessions.client(spark_conf)
        root = own.bind(binder, self._inputs.relation)
        if state is not None:
            from millpond.engine.embedded.stateful.execution import Batch
            from millpond.engine.embedded.stateful.operations import resolved

            root, _ = resolved(
                own, root, client, batch=Batch(state, folder.with_name(f"{folder.name}-state"))
            )
        return stage(
            own,
            root,
            client=client,
            folder=folder,
            expectations=expectations,
            sequence_by=sequence_by,
        )

    def query(
        self, text: str, binder: Binder, *, catalog: str | None = None, schema: str | None = None
    ) -> pa.Table:
        """Run one SQL query for a user and return its rows.

        Raises:
            MillpondError: It is not one query, can't be analysed, or fails while it runs.
        """
        from pyspark.sql.connect import proto

        from millpond.engine.connect.failures import running

        query = SqlQuery(
            text,
            _QUERY,
            file_text=text,
            catalog=catalog or self._catalog,
            schema=schema or self._schema,
        )
        plan = _own(self.plan(query))
        root = plan.bind(binder, self._inputs.relation)
        self._analyse(plan, root)
        with running(plan):
            table, *_ = self._sessions.client().to_table(proto.Plan(root=root), {})
        return table

    def interrupt(self) -> None:
        """Cancel the queries that run now; each fails in the thread that waits for it."""
        self._sessions.interrupt()

    def close(self) -> None:
        """End all sessions and the server. Closing twice is as good as once."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        self._session.client.close()
        self._sessions.close()
        self._server.stop()
        self._inputs.close()

    def _call(self, query: PythonQuery) -> Any:
        from pyspark.sql.connect.dataframe import DataFrame

        name = getattr(inspect.unwrap(query.function), "__name__", "of this flow")
        with (
            self._guard.names_in(catalog=query.catalog, schema=query.schema),
            active(self._session),
        ):
            try:
                frame = query.function()
            except MillpondError:
                raise
            except (Exception, SystemExit) as error:
                raise _explained(error, name=name, query=query) from error
        if not isinstance(frame, DataFrame):
            raise QueryFunctionResultError.of(name, frame, where=query.location)
        return frame

    def _resolved(self, plan: ConnectPlan, root: Any) -> tuple[Any, StateDescription]:
        from millpond.engine.connect.cuts import cuts

        if not any(cuts(root)):
            return root, {}
        from millpond.engine.embedded.stateful.operations import resolved

        return resolved(plan, root, self._sessions.client())

    def _without_state(self, plan: ConnectPlan, root: Any) -> Any:
        return self._resolved(plan, root)[0]

    def _analyse(
        self, plan: ConnectPlan, root: Any, *, known: Collection[str] = frozenset()
    ) -> StructType:
        from pyspark.sql.connect import proto

        from millpond.engine.connect.failures import analysing

        with analysing(plan, known):
            return self._sessions.client().schema(proto.Plan(root=root))

    def _can_read(self, text: str) -> bool:
        """Whether Sail can parse a text; tables that it does not find are no matter."""
        from pyspark.errors import PySparkException
        from pyspark.sql.connect import proto

        from millpond.engine.connect.failures import is_syntax_error

        root = proto.Relation(sql=proto.SQL(query=text))
        try:
            self._sessions.client().schema(proto.Plan(root=root))
        except PySparkException as error:
            return not is_syntax_error(error)
        return True


def _own(plan: QueryPlan) -> ConnectPlan:
    from millpond.engine.connect.plan import ConnectPlan

    if not isinstance(plan, ConnectPlan):
        message = f"a plan of another engine: {type(plan).__name__}"
        raise TypeError(message)
    return plan


def _import_connect() -> None:
    import millpond.engine.connect.session
    import millpond.engine.embedded.inputs  # noqa: F401 - imported to be ready


def _started_beside(work: Callable[[], None]) -> Server:
    """Start a server in a thread while `work` is done here."""
    started: list[Server] = []
    failed: list[BaseException] = []

    def start() -> None:
        try:
            started.append(Server())
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed.append(error)

    thread = threading.Thread(target=start, name="millpond-sail-start")
    thread.start()
    try:
        work()
    finally:
        thread.join()
    if failed:
        raise failed[0]
    return started[0]


def _explained(error: Exception | SystemExit, *, name: str, query: PythonQuery) -> MillpondError:
    """The error for an exception that a query function raised."""
    from pyspark.errors import PySparkException

    from millpond.engine.connect.call_sites import user_line
    from millpond.engine.connect.failures import (
        Subject,
        analysis_error,
        message_of,
        names_missing,
    )

    where = _in_project(user_line(error.__traceback__) or query.location, query)
    if isinstance(error, PySparkException) and names_missing(message_of(error)):
        return analysis_error(message_of(error), Subject(f"The query function {name}", where))
    return QueryFunctionError.raised(name, error, where=where)


def _in_project(where: SourceLocation, query: PythonQuery) -> SourceLocation:
    """A place as the query's own is told: by the path from the project's folder."""
    code = getattr(inspect.unwrap(query.function), "__code__", None)
    if code is None or not code.co_filename.endswith(f"{os.sep}{query.location.file}"):
        return where
    root = code.co_filename.removesuffix(query.location.file)
    return replace(where, file=where.file.removeprefix(root))


def _rows_handed_on(plan: ConnectPlan, binder: Binder) -> StagedBatch | None:
    """The rows of a query that only hands on what was read into files for this batch."""
    read = plan.handed_on
    if read is None or read.format is None or read.metadata:
        return None
    found = binder(read)
    if not isinstance(found, ParquetInput) or METADATA_COLUMN in found.schema.names:
        return None
    return StagedBatch(tuple(map(Path, found.files)), found.schema, written=found.written)


def _noting(binder: Binder, columns: set[str]) -> Binder:
    """The binder, which also keeps the names of the columns that a query can read."""

    def bind(read: TableRead) -> Input:
        found = binder(read)
        if isinstance(found, EmptyInput | ParquetInput):
            columns.update(name for name in found.schema.names if name != METADATA_COLUMN)
        return found

    return bind
