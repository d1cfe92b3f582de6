"""Tells a lost connection and a server that was started anew from what is wrong with a query."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from millpond.engine.spark.server import shown
from millpond.errors import MillpondError, SourceLocation
from millpond.errors.spark import (
    SparkAccessDeniedError,
    SparkConnectionLostError,
    SparkServerRestartedError,
)

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

# Where PySpark has put the text of gRPC's own error, of many lines, into one of its own.
_DETAILS = re.compile(r'^\s*details = "(.+)"$', re.MULTILINE)
_REFUSED = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED"})
_LOST = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNKNOWN"})


@contextmanager
def connected(url: str, *, where: SourceLocation | None = None) -> Iterator[None]:
    """Say of an exception that the connection is lost, or the server another, where that is it.

    Raises:
        SparkAccessDeniedError: The server does not let this client in.
        SparkConnectionLostError: The server does not answer any more.
        SparkServerRestartedError: It does, and knows nothing of this session.
    """
    try:
        yield
    except Exception as error:
        found = connection_error(error, url, where=where)
        if found is not None:
            raise found from error
        raise


def is_session_gone(error: PySparkException) -> bool:
    """Whether the server knows a session no longer."""
    condition = error.getCondition() or ""
    return condition.startswith("INVALID_HANDLE.SESSION_") or condition == "NO_ACTIVE_SESSION"


def connection_error(
    error: BaseException, url: str, *, where: SourceLocation | None
) -> MillpondError | None:
    """The error for an exception, or for what caused it, if it is about the connection."""
    seen: BaseException | None = error
    while seen is not None:
        found = _of(seen, url, where)
        if found is not None:
            return found
        seen = seen.__cause__
    return None


def _of(error: BaseException, url: str, where: SourceLocation | None) -> MillpondError | None:
    import grpc
    from pyspark.errors import PySparkException
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    if isinstance(error, PySparkException):
        condition = error.getCondition() or ""
        if condition.startswith("INVALID_HANDLE.") or condition == "NO_ACTIVE_SESSION":
            return SparkServerRestartedError.from_url(shown(url), where=where)
        if condition == "RETRIES_EXCEEDED":
            return SparkConnectionLostError.from_error(shown(url), _words(error), where=where)
    code: object = None
    if isinstance(error, SparkConnectGrpcException) and not error.getCondition():
        code = error.getGrpcStatusCode()
    elif isinstance(error, grpc.RpcError) and isinstance(error, grpc.Call):
        code = error.code()
    if isinstance(code, grpc.StatusCode) and code.name in _REFUSED:
        return SparkAccessDeniedError.from_url(shown(url), _words(error), where=where)
    if isinstance(code, grpc.StatusCode) and code.name in _LOST:
        return SparkConnectionLostError.from_error(shown(url), _words(error), where=where)
    return None


def _words(error: BaseException) -> str:
    """What the connection failed for, in one line."""
    details = getattr(error, "details", None)
    text = str(details() if callable(details) else error).strip()
    within = _DETAILS.search(text)
    if within is not None:
        text = within[1]
    return text.splitlines()[0].rstrip(".") if text else type(error).__name__
