"""Sessions of an engine's own on a Spark Connect server: one for each set of settings."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pyspark.errors import PySparkException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql.connect import proto
from pyspark.sql.connect.client import ChannelBuilder, SparkConnectClient

from millpond.engine.connect.answers import message_of
from millpond.engine.connect.clients import close_client
from millpond.engine.connect.functions import RegisteredFunctions
from millpond.errors.engine_start import EngineConfigurationError

TIME_ZONE = "spark.sql.session.timeZone"
DEFAULT_CONFIGURATION = {TIME_ZONE: "UTC"}
# Codes of gRPC for requests that reached no server, or that it does not take from this client.
_NOT_ASKED = frozenset(
    {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNAUTHENTICATED", "PERMISSION_DENIED"}
)


class Sessions:
    """The engine's own sessions: one for each set of settings that flows ask for.

    Settings belong to a session, so flows that run at the same time with different ones must not
    share it.

    Args:
        connection: Address of the server, or what makes channels to it.
        configuration: Settings of each of them.
        check: Raises for settings that the server would take, and not do.
        retries: PySpark's policies for a server that does not answer; `None` for its own.
    """

    def __init__(
        self,
        connection: str | ChannelBuilder,
        configuration: Mapping[str, str],
        functions: RegisteredFunctions,
        *,
        check: Callable[[Mapping[str, str]], None],
        retries: Sequence[Any] | None = None,
    ) -> None:
        self._connection = connection
        self._check = check
        self._configuration = configuration
        self._functions = functions
        self._retries = retries
        self._clients: dict[tuple[str, frozenset[tuple[str, str]]], tuple[Any, int]] = {}
        self._given_up: list[Any] = []
        self._lock = threading.Lock()

    def client(self, spark_conf: Mapping[str, str] | None = None, *, owner: str = "") -> Any:
        """A client of a session with the pipeline's configuration and `spark_conf`.

        Args:
            owner: Who has the session for itself, if anybody.

        Raises:
            EngineConfigurationError: The engine refuses a setting.
        PySparkException: It was not asked: nobody answers, or not to this client.
        """
        settings = frozenset((spark_conf or {}).items())
        wanted = (owner, settings)
        with self._lock:
            client, known = self._clients.get(wanted) or (self._open(settings), 0)
            # Kept before functions are taught, so that it is closed even if one can't be.
            self._clients[wanted] = (client, known)
            self._clients[wanted] = (client, self._functions.teach(client, known))
        return client

    def give_up(self, client: Any) -> None:
        """Let the next who asks for the session of a client get a new one.

        Others may be using the client, so it is closed with the rest.
        """
        with self._lock:
            found = [wanted for wanted, (known, _) in self._clients.items() if known is client]
            for wanted in found:
                del self._clients[wanted]
                self._given_up.append(client)

    def interrupt(self) -> None:
        """Cancel what runs in any of the sessions, where the server answers at once."""
        for client in self.clients():
            client.set_retry_policies([])
            # A session in which nothing runs, or which is gone, has nothing to cancel.
            with suppress(PySparkException):
                client.interrupt_all()

    def clients(self) -> list[Any]:
        """Those of all sessions that are open."""
        with self._lock:
            return [client for client, _ in self._clients.values()]

    def close(self) -> None:
        with self._lock:
            for client in [*self._given_up, *(client for client, _ in self._clients.values())]:
                close_client(client)
            self._given_up.clear()
            self._clients.clear()

    def _open(self, spark_conf: frozenset[tuple[str, str]]) -> Any:
        settings = {**self._configuration, **dict(spark_conf)}
        self._check(settings)
        client = SparkConnectClient(self._connection)
        if self._retries is not None:
            client.set_retry_policies(list(self._retries))
        for key, value in settings.items():
            pair = proto.KeyValue(key=key, value=value)
            setting = proto.ConfigRequest.Set(pairs=[pair])
            try:
                client.config(proto.ConfigRequest.Operation(set=setting))
            except PySparkException as error:
                close_client(client)
                if _is_about_connection(error):
                    raise
                raise EngineConfigurationError.of(key, value, message_of(error)) from error
        return client


def _is_about_connection(error: PySparkException) -> bool:
    """Whether a server did not get to look at a setting."""
    condition = error.getCondition()
    if condition:
        return condition == "RETRIES_EXCEEDED" or condition.startswith("INVALID_HANDLE.")
    code = error.getGrpcStatusCode() if isinstance(error, SparkConnectGrpcException) else None
    return code is not None and code.name in _NOT_ASKED
