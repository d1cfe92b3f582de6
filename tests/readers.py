"""Readers of Delta tables that are not millpond, each giving rows as dicts."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

Rows = list[dict[str, Any]]


def read_with_delta_rs(path: Path) -> Rows:
    from deltalake import DeltaTable, QueryBuilder

    query = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t")
    return pa.table(query).to_pylist()


def read_with_polars(path: Path) -> Rows:
    import polars as pl

    return pl.read_delta(str(path)).to_dicts()


_starting = threading.Lock()


@functools.cache
def _started_sail() -> Any:
    import os

    os.environ.setdefault("RUST_LOG", "error")
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    return server


def _sail() -> Any:
    # Of two that were started at the same time, one would be forgotten, and end in use.
    with _starting:
        return _started_sail()


@contextmanager
def sail_session() -> Iterator[Any]:
    """A session of its own: Sail closes one that was not used for a quarter of an hour."""
    from pyspark.sql.connect.session import SparkSession

    host, port = _sail().listening_address
    session = SparkSession.builder.remote(f"sc://{host}:{port}").create()
    try:
        yield session
    finally:
        session.stop()


def read_with_sail(path: Path) -> Rows:
    with sail_session() as session:
        return session.read.format("delta").load(str(path)).toArrow().to_pylist()


READERS: dict[str, Callable[[Path], Rows]] = {
    "delta-rs": read_with_delta_rs,
    "polars": read_with_polars,
    "sail": read_with_sail,
}
