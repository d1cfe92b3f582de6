"""A server that does not let a client in."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import grpc
import pytest
from pyspark.errors import PySparkException

from millpond.engine.connect.functions import RegisteredFunctions
from millpond.engine.connect.sessions import Sessions
from millpond.engine.spark import SparkEngine
from millpond.errors.spark import SparkAccessDeniedError


class _Refusal(grpc.GenericRpcHandler):
    """Ends every call with one code."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self._code = code

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        del handler_call_details

        def refuse(_: bytes, context: grpc.ServicerContext) -> bytes:
            context.abort(self._code, "the token has expired")
            raise AssertionError

        return grpc.unary_unary_rpc_method_handler(refuse)


@contextmanager
def refusing(code: grpc.StatusCode) -> Iterator[str]:
    """The address of a server that lets nobody in."""
    server = grpc.server(ThreadPoolExecutor(1), handlers=[_Refusal(code)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.stop(None)


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED]
)
def test_a_server_that_lets_nobody_in_is_no_setting_that_it_refuses(code: grpc.StatusCode) -> None:
    with refusing(code) as url, pytest.raises(SparkAccessDeniedError, match="token has expired"):
        SparkEngine(url, configuration=None, catalog="spark_catalog", schema="default")


def test_sessions_tell_what_did_not_reach_the_server_as_it_is() -> None:
    with refusing(grpc.StatusCode.UNAUTHENTICATED) as url:
        sessions = Sessions(
            url, {"spark.x": "1"}, RegisteredFunctions(), check=lambda _: None, retries=[]
        )
        with closing(sessions), pytest.raises(PySparkException, match="token has expired"):
            sessions.client()
