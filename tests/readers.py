"""Readers of Delta tables that are not millpond, each giving rows as dicts."""

from __future__ import annotations

import functools
from collections.abc import Callable
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


@functools.cache
def _sail() -> Any:
    import os

    os.environ.setdefault("RUST_LOG", "error")
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    return server


def read_with_sail(path: Path) -> Rows:
    from pyspark.sql.connect.session import SparkSession

    host, port = _sail().listening_address
    # A session of its own: Sail closes one that was not used for a quarter of an hour.
    session = SparkSession.builder.remote(f"sc://{host}:{port}").create()
    try:
        return session.read.format("delta").load(str(path)).toArrow().to_pylist()
    finally:
        session.stop()


READERS: dict[str, Callable[[Path], Rows]] = {
    "delta-rs": read_with_delta_rs,
    "polars": read_with_polars,
    "sail": read_with_sail,
}
