"""What every engine does that is spoken to through Spark Connect: understand queries.

Sessions, how an input is put into a plan, and running are each engine's own.
"""

from __future__ import annotations

import inspect
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millpond.definitions import Expectation, PythonQuery, Query, SqlQuery
from millpond.engine.active_session import active
from millpond.engine.protocol import (
    Binder,
    EmptyInput,
    Input,
    ParquetInput,
    QueryPlan,
    StateDescription,
    TableRead,
)
from millpond.errors import MillpondError, SourceLocation
from millpond.errors.delta import DECIMAL_HINT
from millpond.errors.engine import (
    InvalidSequenceError,
    QueryAnalysisError,
    QueryFunctionError,
    QueryFunctionResultError,
    QueryTooDeepError,
)
from millpond.files.metadata import METADATA_COLUMN

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.connect.client import ChannelBuilder
    from pyspark.sql.types import StructType

    from millpond.engine.connect.plan import ConnectPlan
    from millpond.engine.connect.sessions import Sessions

# A server that is frozen does not answer that it cancels its queries either.
INTERRUPT_S = 10.0
_QUERY = SourceLocation("<query>", 1, 1)


class ConnectEngine(ABC):
    """Reads and analyses queries as Spark Connect plans.

    Args:
        connection: Address of the server, `sc://host:port`, or what makes channels to it.
        configuration: Settings that every session gets, and `spark.conf.get` tells.
        catalog: Default catalog for names in queries that say none.
        schema: Default schema, likewise.
        computes_state: Whether operators with state over streams are computed here, each batch,
            and not by the server.
        retries: PySpark's policies for a server that does not answer; `None` for its own.

    Raises:
        EngineConfigurationError: The server refuses a setting.
    """

    # Sessions are opened last, and may fail to.
    _session: Any = None
    _sessions: Sessions | None = None

    def __init__(
        self,
        connection: str | ChannelBuilder,
        *,
        configuration: Mapping[str, str] | None,
        catalog: str,
        schema: str,
        computes_state: bool,
        retries: Sequence[Any] | None,
    ) -> None:
        from millpond.engine.connect import call_sites, client_logs
        from millpond.engine.connect.functions import RegisteredFunctions
        from millpond.engine.connect.guard import DefinitionGuard
        from millpond.engine.connect.session import PipelineSession
        from millpond.engine.connect.sessions import DEFAULT_CONFIGURATION, Sessions

        call_sites.watch()
        client_logs.keep_quiet()
        self._catalog = catalog
        self._schema = schema
        self._computes_state = computes_state
        self._functions = RegisteredFunctions()
        self._guard = DefinitionGuard(
            self.bound,
            self._can_read,
            self._functions,
            lambda plan, root: self.resolved(plan, root)[0],
            marks_state=computes_state,
        )
        settings = {**DEFAULT_CONFIGURATION, **(configuration or {})}
        self._sessions = Sessions(
            connection, settings, self._functions, check=self.check_settings, retries=retries
        )
        self._sessions.client()
        self._session = PipelineSession(
            connection, guard=self._guard, functions=self._functions, retries=retries
        )
        self._session.client.set_all(settings)

    @abstractmethod
    def check_settings(self, settings: Mapping[str, str]) -> None:
        """Raise for settings that the server would take, and not do."""

    @property
    def session(self) -> SparkSession:
        """The session that source files see as `spark`."""
        return self._session

    def client(self, spark_conf: Mapping[str, str] | None = None, *, owner: str = "") -> Any:
        """A client of a session of the engine's own, with these settings beside the pipeline's.

        Args:
            owner: Who has the session for itself, if anybody.
        """
        assert self._sessions is not None
        return self._sessions.client(spark_conf, owner=owner)

    def interrupt(self) -> None:
        """Cancel the queries that run now; each fails in the thread that waits for it."""
        if self._sessions is not None:
            # A second Ctrl-C raises in the main thread wherever that is. Inside of gRPC it would
            # keep the lock of a channel, and threads that wait for it would wait for ever.
            asking = threading.Thread(
                target=self._sessions.interrupt, name="millpond-interrupt", daemon=True
            )
            asking.start()
            asking.join(INTERRUPT_S)

    def close(self) -> None:
        """End all sessions."""
        from millpond.engine.connect.clients import close_client

        if self._session is not None:
            close_client(self._session.client)
        if self._sessions is not None:
            self._sessions.close()

    @abstractmethod
    def relation(self, source: Input) -> Any:
        """What stands in a plan for an input that is no plan."""

    def bound(self, plan: ConnectPlan, binder: Binder) -> Any:
        """A plan's relation over its inputs, as the server can read it."""
        return plan.bind(binder, self.relation)

    def resolved(self, plan: ConnectPlan, root: Any) -> tuple[Any, StateDescription]:
        """A bound plan as the server can analyse it, and what its operators keep."""
        del plan
        return root, {}

    def columns(
        self, plan: ConnectPlan, root: Any, *, known: Collection[str] = frozenset()
    ) -> StructType:
        """The columns of a bound plan that the server can analyse.

        Args:
            known: Columns that a name could have meant.
        """
        from pyspark.sql.connect import proto

        from millpond.engine.connect.failures import analysing

        with analysing(plan, known):
            return self.client().schema(proto.Plan(root=root))

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
            with _bounded(query.location):
                return plan_of_text(
                    query,
                    can_read=self._can_read,
                    aggregates=self._functions.aggregates,
                    has_watermark=self._guard.has_watermark,
                    marks_state=self._computes_state,
                )
        frame = self._call(query)
        with _bounded(query.location):
            relation = frame._plan.to_proto(self._session.client).root  # noqa: SLF001 - the plan itself
            return plan_of_relation(
                relation,
                location=query.location,
                can_read=self._can_read,
                aggregates=self._functions.aggregates,
                has_watermark=self._guard.has_watermark,
                marks_state=self._computes_state,
                catalog=query.catalog,
                schema=query.schema,
            )

    def renamed(self, plan: QueryPlan, names: Sequence[str]) -> QueryPlan:
        """Return the same plan with other names for its columns, as many as it has."""
        return own_plan(plan).renamed(names)

    def schema(self, plan: QueryPlan, binder: Binder) -> StructType:
        """Analyse the plan over bound inputs and return its columns. Reads no data."""
        from millpond.engine.connect.columns import check_not_reserved, check_unique

        own = own_plan(plan)
        columns: set[str] = set()
        with _bounded(own.location):
            root = self.bound(own, _noting(binder, columns))
            root, _ = self.resolved(own, root)
        found = self.columns(own, root, known=columns)
        check_unique(found, where=own.location)
        check_not_reserved(found, where=own.location)
        return found

    def state(self, plan: QueryPlan, binder: Binder) -> StateDescription:
        """Say what the operators of a plan keep from batch to batch. Reads no data.

        Raises:
            MillpondError: An operator can't be computed batch by batch.
        """
        own = own_plan(plan)
        with _bounded(own.location):
            return self.resolved(own, self.bound(own, binder))[1]

    def metadata_origin(self, plan: QueryPlan, column: str) -> str | None:
        """The field of `_metadata` that a column of a query is as it stands, in lower case."""
        from millpond.engine.connect.metadata_origin import metadata_origin

        own = own_plan(plan)
        return metadata_origin(own.relation, own.sources, column)

    def check_expectation(self, expectation: Expectation, schema: StructType) -> None:
        """Raise a `MillpondError` unless the constraint is one boolean expression on a row."""
        from millpond.engine.connect.expectations import check_constraint

        check_constraint(
            expectation,
            schema,
            client=self.client(),
            python_functions=self._functions.names,
        )

    def parse_schema(self, text: str) -> StructType:
        """Read columns written as Spark DDL, such as `a INT, b STRING NOT NULL`.

        Raises:
            QueryAnalysisError: The text can't be read.
        """
        from pyspark.errors import PySparkException
        from pyspark.sql.types import StructType

        from millpond.delta.schema import invalid_decimal
        from millpond.engine.connect.answers import message_of

        subject = f"The schema {text!r}"
        try:
            found = self.client()._analyze("ddl_parse", ddl_string=text).parsed  # noqa: SLF001 - as createDataFrame does
        except PySparkException as error:
            raise QueryAnalysisError.of(
                message_of(error), subject=subject, where=None, detail=""
            ) from error
        if not isinstance(found, StructType):
            raise QueryAnalysisError.of(
                "it is a type, not a list of columns", subject=subject, where=None, detail=""
            )
        decimal = invalid_decimal(found)
        if decimal is not None:
            raise QueryAnalysisError.of(
                f"{decimal.simpleString()} is no type; {DECIMAL_HINT}",
                subject=subject,
                where=None,
                detail="",
            )
        return found

    def sequence_type(self, sequence_by: str | Column, schema: StructType) -> object:
        """Return the Spark type of a sequence expression over a query's columns.

        Raises:
            InvalidSequenceError: It is not one value of a row with these columns.
        """
        from pyspark.errors import PySparkException
        from pyspark.sql.connect import proto

        from millpond.engine.connect.answers import dotted, message_of, missing_column
        from millpond.engine.connect.columns import sequence_expression
        from millpond.engine.connect.expressions import named
        from millpond.engine.connect.messages import empty_relation
        from millpond.engine.connect.sequences import check_sequence

        client = self.client()
        relation = proto.Relation()
        relation.project.input.CopyFrom(empty_relation(schema))
        expression = sequence_expression(sequence_by, schema, client)
        check_sequence(expression)
        relation.project.expressions.append(named(expression, "sequence"))
        try:
            return client.schema(proto.Plan(root=relation)).fields[0].dataType
        except PySparkException as error:
            missing = missing_column(error)
            if missing:
                raise InvalidSequenceError.missing_column(
                    dotted(missing), known=schema.names
                ) from error
            raise InvalidSequenceError.of(f"can't be analysed: {message_of(error)}") from error

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
        plan = own_plan(self.plan(query))
        root = self.bound(plan, binder)
        self.columns(plan, root)
        with running(plan):
            table, *_ = self.client().to_table(proto.Plan(root=root), {})
        return table

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

    def _can_read(self, text: str) -> bool:
        """Whether the server can parse a text; tables that it does not find are no matter."""
        from pyspark.errors import PySparkException
        from pyspark.sql.connect import proto

        from millpond.engine.connect.answers import unread_text

        root = proto.Relation(sql=proto.SQL(query=text))
        try:
            self.client().schema(proto.Plan(root=root))
        except PySparkException as error:
            return unread_text(error) is None
        return True


@contextmanager
def _bounded(where: SourceLocation | None) -> Iterator[None]:
    """Tell of a query in whose parts more calls are nested than Python allows."""
    try:
        yield
    except MillpondError:
        raise
    except RecursionError as error:
        raise QueryTooDeepError.of_steps(where=where) from error


def own_plan(plan: QueryPlan) -> ConnectPlan:
    from millpond.engine.connect.plan import ConnectPlan

    if not isinstance(plan, ConnectPlan):
        message = f"a plan of another engine: {type(plan).__name__}"
        raise TypeError(message)
    return plan


def _explained(error: Exception | SystemExit, *, name: str, query: PythonQuery) -> MillpondError:
    """The error for an exception that a query function raised."""
    from pyspark.errors import PySparkException

    from millpond.engine.connect.answers import names_missing
    from millpond.engine.connect.call_sites import user_line
    from millpond.engine.connect.failures import Subject, analysis_error

    where = _in_project(user_line(error.__traceback__) or query.location, query)
    if isinstance(error, PySparkException) and names_missing(error):
        return analysis_error(error, Subject(f"The query function {name}", where))
    return QueryFunctionError.raised(name, error, where=where)


def _in_project(where: SourceLocation, query: PythonQuery) -> SourceLocation:
    """A place as the query's own is told: by the path from the project's folder."""
    code = getattr(inspect.unwrap(query.function), "__code__", None)
    if code is None or not code.co_filename.endswith(f"{os.sep}{query.location.file}"):
        return where
    root = code.co_filename.removesuffix(query.location.file)
    return replace(where, file=where.file.removeprefix(root))


def _noting(binder: Binder, columns: set[str]) -> Binder:
    """The binder, which also keeps the names of the columns that a query can read."""

    def bind(read: TableRead) -> Input:
        found = binder(read)
        if isinstance(found, EmptyInput | ParquetInput):
            columns.update(name for name in found.schema.names if name != METADATA_COLUMN)
        return found

    return bind
