"""Starts and stops Sail, and opens sessions on it."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from millpond.errors.engine import EngineConfigurationError

if TYPE_CHECKING:
    from millpond.engine.connect.functions import RegisteredFunctions

TIME_ZONE = "spark.sql.session.timeZone"
# The server lives in this process: once it does not answer, it is gone, and waiting is in vain.
NO_RETRIES: tuple[Any, ...] = ()
DEFAULT_CONFIGURATION = {TIME_ZONE: "UTC"}
# Parquet's statistics leave NaN out, and Sail trusts them: it skips rows with NaN, and where all
# other values of a column are equal, it gives that value in the place of NaN. Pages and
# Bloom filters have settings of their own.
_WITHOUT_STATISTICS = {
    "SAIL_EXECUTION__COLLECT_STATISTICS": "false",
    "SAIL_PARQUET__BLOOM_FILTER_ON_READ": "false",
    "SAIL_PARQUET__ENABLE_PAGE_INDEX": "false",
    "SAIL_PARQUET__PRUNING": "false",
}
# Sail walks a query by recursion, and a thread without stack left kills the process: the default
# does not last for some hundred UNION ALLs, ORs or additions. What is not used takes no memory.
STACK_SIZE = {"SAIL_RUNTIME__STACK_SIZE": str(64 * 1024 * 1024)}
# By default Sail's allocator keeps what it freed, and Sail all footers of Parquet files read:
# a process that runs batch after batch would grow.
_BOUNDED_MEMORY = {
    "MIMALLOC_PURGE_DELAY": "0",
    "SAIL_PARQUET__FILE_METADATA_CACHE__SIZE_LIMIT": str(32 * 1024 * 1024),
}
_OFFSET = re.compile(r"(?:UTC|GMT)?[+-]\d{1,2}(?::?\d{2})?\Z")


class Server:
    """A Sail server on a port of its own, that only this machine can reach."""

    def __init__(self) -> None:
        # Sail logs to standard error unless told otherwise; what matters comes back as errors.
        os.environ.setdefault("RUST_LOG", "off")
        for name, value in {**STACK_SIZE, **_BOUNDED_MEMORY}.items():
            os.environ.setdefault(name, value)
        os.environ.update(_WITHOUT_STATISTICS)
        from pysail.spark import SparkConnectServer

        self._server = SparkConnectServer("127.0.0.1", 0)
        self._server.start(background=True)

    @property
    def url(self) -> str:
        host, port = self._server.listening_address
        return f"sc://{host}:{port}"

    def stop(self) -> None:
        self._server.stop()


class Sessions:
    """The engine's own sessions: one for each set of settings that flows ask for.

    Settings belong to a session, so flows that run at the same time with different ones must not
    share it.
    """

    def __init__(
        self, url: str, configuration: Mapping[str, str], functions: RegisteredFunctions
    ) -> None:
        self._url = url
        self._configuration = configuration
        self._functions = functions
        self._clients: dict[frozenset[tuple[str, str]], tuple[Any, int]] = {}
        self._lock = threading.Lock()

    def client(self, spark_conf: Mapping[str, str] | None = None) -> Any:
        """A client of a session with the pipeline's configuration and `spark_conf`.

        Raises:
            EngineConfigurationError: The engine refuses a setting.
        """
        wanted = frozenset((spark_conf or {}).items())
        with self._lock:
            client, known = self._clients.get(wanted) or (self._open(wanted), 0)
            # Kept before functions are taught, so that it is closed even if one can't be.
            self._clients[wanted] = (client, known)
            self._clients[wanted] = (client, self._functions.teach(client, known))
        return client

    def interrupt(self) -> None:
        """Cancel what runs in any of the sessions."""
        from pyspark.errors import PySparkException

        with self._lock:
            clients = [client for client, _ in self._clients.values()]
        for client in clients:
            # A session in which nothing runs, or which is gone, has nothing to cancel.
            with suppress(PySparkException):
                client.interrupt_all()

    def close(self) -> None:
        with self._lock:
            for client, _ in self._clients.values():
                client.close()
            self._clients.clear()

    def _open(self, spark_conf: frozenset[tuple[str, str]]) -> Any:
        from pyspark.errors import PySparkException
        from pyspark.sql.connect import proto
        from pyspark.sql.connect.client import SparkConnectClient

        check_time_zone(dict(spark_conf))
        client = SparkConnectClient(self._url)
        client.set_retry_policies(NO_RETRIES)
        for key, value in {**self._configuration, **dict(spark_conf)}.items():
            pair = proto.KeyValue(key=key, value=value)
            setting = proto.ConfigRequest.Set(pairs=[pair])
            try:
                client.config(proto.ConfigRequest.Operation(set=setting))
            except PySparkException as error:
                client.close()
                raise EngineConfigurationError.of(key, value, str(error)) from error
        return client


def check_time_zone(settings: Mapping[str, str]) -> None:
    """Raise for a time zone that there is none of. Sail would take any text for UTC.

    Raises:
        EngineConfigurationError: The time zone is no region and no offset.
    """
    zone = settings.get(TIME_ZONE, "UTC")
    if _OFFSET.match(zone):
        return
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise EngineConfigurationError.of(
            TIME_ZONE, zone, "there is no such time zone; write one such as Europe/Berlin or UTC"
        ) from error
