"""Fixtures that give tests a Spark Connect server with Delta Lake: see `server.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.spark.server import SparkServer, locked, shared_server


@pytest.fixture(scope="session")
def shared_spark() -> Iterator[SparkServer]:
    with shared_server() as server:
        yield server


@pytest.fixture
def spark_server(shared_spark: SparkServer) -> Iterator[SparkServer]:
    """The server, which others use at the same time. Open a session of one's own: it may be new."""
    with locked("turn.lock", shared=True):
        yield shared_spark


@pytest.fixture
def lone_spark_server(shared_spark: SparkServer) -> Iterator[SparkServer]:
    """The server, which nobody else uses meanwhile: to restart it, or to kill it."""
    with locked("turn.lock"):
        yield shared_spark
        shared_spark.start()
