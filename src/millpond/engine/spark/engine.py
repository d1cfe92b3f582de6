"""The engine on a Spark server: `Engine` of the protocol, by Spark Connect."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from millpond.definitions import Query
from millpond.engine.connect.engine import ConnectEngine, own_plan
from millpond.engine.connect.first_import import import_client
from millpond.engine.protocol import Input, QueryPlan, ServerInput
from millpond.engine.spark.connection import connected, is_session_gone
from millpond.engine.spark.server import channel_builder, check_answers, check_fits
from millpond.errors import SourceLocation
from millpond.errors.engine import QueryAnalysisError
from millpond.errors.engine_start import EngineConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

    from millpond.engine.spark.session import ClientSession

CASE_SENSITIVE = "spark.sql.caseSensitive"
ESCAPED_LITERALS = "spark.sql.parser.escapedStringLiterals"
# What Spark may not be set to, and why.
_STAY_FALSE = {
    CASE_SENSITIVE: "names of tables and columns are the same in upper and lower case",
    # Spark 4.2 then puts a quote before the text of R'..', so that bounds of keys miss rows.
    ESCAPED_LITERALS: "texts that millpond writes into statements would mean something else",
}
DEFAULTS = {
    # Spark 4.2.0 waits for ever where a Python function reads straight from a table's files.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    # It would put settings and its environment in the place of ${..}, in literals and comments too.
    "spark.sql.variable.substitute": "false",
    **dict.fromkeys(_STAY_FALSE, "false"),
}

# How long a server may take to give up what it keeps for sessions.
RELEASE_S = 15.0

Answer = TypeVar("Answer")


class SparkEngine(ConnectEngine):
    """Analyses queries on a Spark server, which streams and runs them itself.

    Args:
        url: `sc://host:port`, with parameters as Spark Connect has them.
        configuration: Settings that every session gets, and `spark.conf.get` tells.
        catalog: Default catalog for names in queries that say none.
        schema: Default schema, likewise.

    Raises:
        SparkServerUnreachableError: Nobody answers.
        SparkAccessDeniedError: Somebody does, and does not let this client in.
        SparkVersionNotSupportedError: The server's Spark is too old.
        DeltaNotOnServerError: The server has no Delta Lake.
        EngineConfigurationError: The server refuses a setting.
    """

    def __init__(
        self, url: str, *, configuration: Mapping[str, str] | None, catalog: str, schema: str
    ) -> None:
        import_client()
        from pyspark.sql.connect.client.retries import DefaultPolicy

        check_answers(url)
        self.url = url
        try:
            with connected(url):
                super().__init__(
                    channel_builder(url),
                    configuration={**DEFAULTS, **(configuration or {})},
                    catalog=catalog,
                    schema=schema,
                    computes_state=False,
                    # About a minute, where PySpark would try for ten.
                    retries=[DefaultPolicy(max_retries=8, max_backoff=15_000)],
                )
            check_fits(self.client(), url)
        except BaseException:
            self.close()
            raise

    def plan(self, query: Query) -> QueryPlan:
        """Evaluate a flow's query, calling the user's function where it is one.

        Raises:
            MillpondError: As for every engine.
            NotOnSparkError: Spark would stream the query wrongly.
        """
        from millpond.engine.spark.left_laterals import check_no_left_lateral

        plan = super().plan(query)
        check_no_left_lateral(own_plan(plan))
        return plan

    def sequence_type(self, sequence_by: str | Column, schema: StructType) -> object:
        """Return the Spark type of a sequence expression over a query's columns.

        Raises:
            InvalidSequenceError: It is not one value of a row with these columns.
            NotOnSparkError: It is made of functions in Python.
        """
        from millpond.engine.spark.sequences import sequence_sql

        found = super().sequence_type(sequence_by, schema)
        sequence_sql(sequence_by)
        return found

    def close(self) -> None:
        """End all sessions, on the server as well, which would keep them for an hour."""
        clients = [] if self._sessions is None else self._sessions.clients()
        if self._session is not None:
            clients.append(self._session.client)
        releasing = threading.Thread(
            target=_release, args=(clients,), name="millpond-release", daemon=True
        )
        releasing.start()
        releasing.join(RELEASE_S)
        super().close()

    def check_settings(self, settings: Mapping[str, str]) -> None:
        for key, reason in _STAY_FALSE.items():
            value = settings.get(key, "false")
            if value.strip().lower() != "false":
                raise EngineConfigurationError.of(key, value, reason)

    def relation(self, source: Input) -> Any:
        """What stands in a plan for an input that is no plan."""
        from millpond.engine.spark.inputs import input_relation

        return input_relation(source)

    def columns_of(self, source: ServerInput, *, where: SourceLocation | None) -> StructType:
        """The columns of what the server reads, which may look at files.

        Raises:
            QueryAnalysisError: It can't be read so.
        """
        from pyspark.errors import PySparkException
        from pyspark.sql.connect import proto

        from millpond.engine.connect.answers import message_of

        relation = self.relation(source)
        try:
            return self.asked(lambda session: session.client.schema(proto.Plan(root=relation)))
        except PySparkException as error:
            first_line, _, rest = message_of(error).partition("\n")
            subject = f"The read of {' '.join(source.paths) or source.format}"
            raise QueryAnalysisError.of(
                first_line, subject=subject, where=where, detail=rest
            ) from error

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """Run a statement of the engine's own, and return the rows that it gives."""
        with connected(self.url):
            found = self.asked(lambda session: session.sql(statement).collect())
        return [row.asDict() for row in found]

    def asked(self, ask: Callable[[ClientSession], Answer]) -> Answer:
        """What a request gives in the engine's own session, if need be in a new one.

        A server gives a session up an hour after it was last used, which one batch of a flow may
        take. This one holds nothing but settings and functions.
        """
        from pyspark.errors import PySparkException

        assert self._sessions is not None
        session = self.session_of()
        try:
            return ask(session)
        except PySparkException as error:
            if not is_session_gone(error):
                raise
        self._sessions.give_up(session.client)
        return ask(self.session_of())

    def session_of(
        self, owner: str = "", spark_conf: Mapping[str, str] | None = None
    ) -> ClientSession:
        """A session in which queries may run: the engine's own, or somebody's.

        Raises:
            EngineConfigurationError: The server refuses a setting, or this engine does.
        """
        from millpond.engine.spark.session import ClientSession

        return ClientSession(self.client(spark_conf, owner=owner))


def _release(clients: Sequence[Any]) -> None:
    """Let the server give up the sessions of clients."""
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import SparkConnectClient

    for client in clients:
        # A server that is gone has none. A channel may be closed for one that is frozen.
        with suppress(PySparkException, ValueError):
            client.set_retry_policies([])
            SparkConnectClient.release_session(client)
