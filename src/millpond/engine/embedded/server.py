"""Starts and stops Sail, so that nobody but this process can use it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from millpond.engine.embedded.channel import open_channel
from millpond.engine.embedded.door import close_door, show_out_strangers
from millpond.engine.embedded.open_files import make_room
from millpond.errors.engine_start import EngineStartError
from millpond.storage import new_scratch_folder

if TYPE_CHECKING:
    from pyspark.sql.connect.client import ChannelBuilder

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
# does not last for some hundred UNION ALLs, ORs or additions. This lasts for more than twice as
# many as `millpond.sql.depth` lets through. What is not used takes no memory.
STACK_SIZE = {"SAIL_RUNTIME__STACK_SIZE": str(128 * 1024 * 1024)}
# By default Sail's allocator keeps what it freed, and Sail all footers of Parquet files read:
# a process that runs batch after batch would grow.
_BOUNDED_MEMORY = {
    "MIMALLOC_PURGE_DELAY": "0",
    "SAIL_PARQUET__FILE_METADATA_CACHE__SIZE_LIMIT": str(32 * 1024 * 1024),
}
# By default Sail closes a session that rests for a quarter of an hour, as that of a flow may while
# a batch is written.
_LASTING_SESSIONS = {"SAIL_SPARK__SESSION_TIMEOUT_SECS": str(10 * 365 * 24 * 3600)}
# Any other mode opens more ports.
_ONE_PORT = {"SAIL_MODE": "local"}
# Where Sail keeps temporary files; no session can be opened while they can't be.
_FILES = "SAIL_RUNTIME__TEMPORARY_FILES__PATHS"
# What it says then.
_NO_FOLDER = "(os error 2)"
# A question that opens no session: whether the server is well.
_HEALTH = "/grpc.health.v1.Health/Check"
# One that does: of which version of Spark it is.
_ANALYZE = "/spark.connect.SparkConnectService/AnalyzePlan"
_SPARK_VERSION = b"\x52\x00"
_ANSWER_S = 30.0
# How long requests may be on their way inside of Sail after their connection is gone.
_SETTLE_S = 0.2
_starting = threading.Lock()


class Server:
    """A Sail server that has one connection, from this process, and can't be given another.

    Sail opens the port on which it listens itself, and whoever looks for it can connect before it
    is closed. So until then, Sail is given a folder for temporary files that can't be made, and
    opens no session: there is nothing that one who connects could do. Connections of others are
    ended before the folder is there.

    Raises:
        EngineStartError: It can't be started, the port can't be closed, or sessions can be opened
            before it is.
    """

    def __init__(self) -> None:
        make_room()
        # Sail logs to standard error unless told otherwise; what matters comes back as errors.
        os.environ.setdefault("RUST_LOG", "off")
        for name, value in {**STACK_SIZE, **_BOUNDED_MEMORY}.items():
            os.environ.setdefault(name, value)
        os.environ.update({**_WITHOUT_STATISTICS, **_LASTING_SESSIONS, **_ONE_PORT})
        self._folder = new_scratch_folder("sail")
        # Its name can't be known before it is there, so nobody else can make it.
        gate = self._folder / secrets.token_hex(16)
        try:
            with _starting, _environment({_FILES: json.dumps([str(gate / "files")])}):
                self._sail = _started()
        except BaseException:
            self._remove_folder()
            raise
        self._address: tuple[str, int] = self._sail.listening_address
        self._channel = open_channel(self._address)
        self._holder: socket.socket | None = None
        try:
            self._close_door()
            gate.mkdir(mode=0o700)
        except BaseException:
            self.stop()
            raise

    def connection(self) -> ChannelBuilder:
        """What a client of PySpark's connects with."""
        from millpond.engine.embedded.channel_builder import EmbeddedChannelBuilder

        return EmbeddedChannelBuilder(self._address)

    def stop(self) -> None:
        self._channel.close()
        try:
            self._sail.stop()
        finally:
            if self._holder is not None:
                self._holder.close()
            self._remove_folder()

    def _close_door(self) -> None:
        self._connect()
        try:
            self._holder = close_door(self._address)
            had_strangers = show_out_strangers(self._address)
        except OSError as error:
            raise EngineStartError.from_open_port(str(error)) from error
        settled = time.monotonic() + (_SETTLE_S if had_strangers else 0)
        # What others asked for before has been refused once this is.
        self._check_no_session()
        while time.monotonic() < settled:
            self._check_no_session()

    def _connect(self) -> None:
        import grpc

        try:
            self._channel.unary_unary(_HEALTH)(b"", timeout=_ANSWER_S, wait_for_ready=True)
        except grpc.RpcError as error:
            raise EngineStartError.from_answer(_problem(error)) from error

    def _check_no_session(self) -> None:
        """Ask for a session, and raise unless it is refused."""
        import grpc

        session = str(uuid.uuid4()).encode()
        message = b"".join((b"\x0a", bytes([len(session)]), session, _SPARK_VERSION))
        ask = self._channel.unary_unary(_ANALYZE)
        try:
            ask(message, timeout=_ANSWER_S)
        except grpc.RpcError as error:
            if _NO_FOLDER not in error.details():
                raise EngineStartError.from_answer(_problem(error)) from error
        else:
            raise EngineStartError.from_early_session()

    def _remove_folder(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _problem(error: Any) -> str:
    return f"{error.code().name}: {error.details()}"


def _started() -> Any:
    # Else a thread of Sail's imports it, and one that a stop caught amid that kept the lock of the
    # import, for which others then waited.
    import importlib.metadata  # noqa: F401 - so that there is nothing left to import

    from pysail.spark import SparkConnectServer

    try:
        sail = SparkConnectServer("127.0.0.1", 0)
        sail.start(background=True)
    except RuntimeError as error:
        raise EngineStartError.from_failure(str(error)) from error
    return sail


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Variables that are set for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
