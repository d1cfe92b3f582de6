"""The address of a Spark Connect server, and whether what answers there will do."""

from __future__ import annotations

import os
import re
import socket
from typing import TYPE_CHECKING, Any

from millpond.errors.spark import (
    DeltaNotOnServerError,
    SparkServerUnreachableError,
    SparkVersionNotSupportedError,
)
from millpond.options import SPARK_URL
from millpond.redaction import without_credentials

if TYPE_CHECKING:
    from pyspark.sql.connect.client import ChannelBuilder

OLDEST_VERSION = (4, 1)
ANSWER_S = 15.0
# A call that waits for a server that is frozen, or that no packet reaches, would wait for ever. So
# the connection asks for a sign of life after a while of silence. Servers end connections that ask
# more often than each five minutes; where queries run, they say something by themselves before.
SILENCE_MS = 330_000
SIGN_OF_LIFE_MS = 120_000
# With these a channel goes by way of another machine.
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
_HOST = re.compile(r"sc://(\[[^\]]*\]|[^:/;]+)")
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
_PROBE = "DESCRIBE DETAIL delta.`/millpond-asks-whether-delta-is-here`"


def is_url(text: str) -> bool:
    """Whether a text is the address of a Spark Connect server.

    >>> is_url("sc://localhost:15002"), is_url("embedded")
    (True, False)
    """
    return SPARK_URL.match(text) is not None


def is_on_this_machine(url: str) -> bool:
    """Whether the address is of this machine, whose folders the server then sees."""
    match = _HOST.match(url)
    return match is not None and match[1].lower() in _LOCAL_HOSTS


def shown(url: str) -> str:
    """The address without its parameters, among which a token may be."""
    return url.partition(";")[0].rstrip("/")


def channel_builder(url: str) -> ChannelBuilder:
    """Makes channels to the server that end when it answers no more.

    Raises:
        PySparkException: It is no such address.
    """
    from pyspark.sql.connect.client import DefaultChannelBuilder

    options = [
        ("grpc.keepalive_time_ms", SILENCE_MS),
        ("grpc.keepalive_timeout_ms", SIGN_OF_LIFE_MS),
        # It asks for other reasons, too.
        ("grpc.http2.ping_timeout_ms", SIGN_OF_LIFE_MS),
    ]
    return DefaultChannelBuilder(url, channelOptions=options)


def check_answers(url: str) -> None:
    """Raise where nobody answers at an address, which PySpark would ask for many minutes.

    Raises:
        SparkServerUnreachableError: Nobody does.
    """
    import grpc
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import DefaultChannelBuilder

    try:
        builder = DefaultChannelBuilder(url)
        host, _, port = builder.endpoint.rpartition(":")
        if not any(map(os.environ.get, _PROXIES)):
            # Says at once what a channel would wait for.
            socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_S).close()
        channel = builder.toChannel()
    except (PySparkException, OSError, OverflowError) as error:
        reason = without_credentials(str(error))
        raise SparkServerUnreachableError.from_url(shown(url), reason) from error
    try:
        grpc.channel_ready_future(channel).result(timeout=ANSWER_S)
    except grpc.FutureTimeoutError as error:
        reason = f"no connection within {ANSWER_S:.0f} seconds"
        raise SparkServerUnreachableError.from_url(shown(url), reason) from error
    finally:
        channel.close()


def check_fits(client: Any, url: str) -> None:
    """Raise where the server is too old, or has no Delta Lake.

    Raises:
        SparkVersionNotSupportedError: Of the server's Spark.
        DeltaNotOnServerError: There is no Delta Lake, or it is not set up.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.connect import proto

    from millpond.engine.connect.answers import message_of

    version = client._analyze("spark_version").spark_version  # noqa: SLF001 - as SparkSession.version does
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST_VERSION:
        oldest = ".".join(map(str, OLDEST_VERSION))
        raise SparkVersionNotSupportedError.from_version(shown(url), version, oldest=oldest)
    command = proto.Command()
    command.sql_command.input.sql.query = _PROBE
    try:
        client.execute_command(command)
    except PySparkException as error:
        # Delta's own answer is that there is no such table.
        if not (error.getCondition() or "").startswith("DELTA_"):
            reason = message_of(error).splitlines()[0]
            raise DeltaNotOnServerError.from_url(shown(url), reason) from error
