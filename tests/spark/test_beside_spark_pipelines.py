"""A folder that Spark's own `spark-pipelines` runs gives the same tables with millpond.

What docs/spark.md says of what moves over, and of what does not, is seen here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from millpond.engine.spark import SparkEngine
from tests.spark.server import SparkServer

SPEC = """\
name: {name}
storage: file://{storage}
catalog: spark_catalog
database: {name}
configuration:
  spark.sql.sources.default: delta
libraries:
  - glob:
      include: {name}/**
"""
APPEND = {
    "orders.sql": """\
        CREATE STREAMING TABLE orders;
        CREATE FLOW north AS INSERT INTO orders BY NAME SELECT * FROM STREAM(beside.north);
        CREATE FLOW south AS INSERT INTO orders BY NAME SELECT * FROM STREAM(beside.south);
        CREATE TEMPORARY VIEW large AS SELECT * FROM orders WHERE amount > 10;
        CREATE MATERIALIZED VIEW days AS SELECT day, sum(amount) AS amount FROM large GROUP BY day;
    """,
    "copies.py": """\
        from pyspark import pipelines as dp
        from pyspark.sql import SparkSession
        from pyspark.sql import functions as F

        spark = SparkSession.active()

        @dp.table(comment="every order, and twice its amount")
        def doubled():
            return spark.readStream.table("orders").withColumn("twice", F.col("amount") * 2)

        dp.create_streaming_table("days_of_orders")

        @dp.append_flow(target="days_of_orders")
        def all_days():
            return spark.readStream.table("doubled").select("day")

        @dp.materialized_view
        def counted():
            return spark.read.table("days_of_orders").groupBy("day").count()
    """,
}
AUTO_CDC = {
    "current.py": """\
        from pyspark import pipelines as dp

        dp.create_streaming_table("current")
        dp.create_auto_cdc_flow(
            target="current", source="beside.north", keys=["id"], sequence_by="sent"
        )
    """,
}
INSTEAD = {
    "current.py": """\
        from pyspark import pipelines as dp
        from pyspark.sql import SparkSession

        @dp.table(replace_using=["id"], sequence_by="sent")
        def current():
            return SparkSession.active().readStream.table("beside.north")
    """,
}
TABLES = ("orders", "days", "doubled", "days_of_orders", "counted")
SPARK_PIPELINES = [sys.executable, "-m", "pyspark.pipelines.cli"]
MILLPOND = [str(Path(sys.executable).with_name("millpond"))]


@pytest.fixture
def engine(spark_server: SparkServer) -> Iterator[SparkEngine]:
    """A session with the server, and two tables of orders there."""
    with closing(
        SparkEngine(spark_server.url, configuration=None, catalog="spark_catalog", schema="default")
    ) as engine:
        engine.rows("CREATE SCHEMA beside")
        for name in ("north", "south"):
            engine.rows(
                f"CREATE TABLE beside.{name} (id INT, day DATE, amount INT, sent INT) USING delta"
            )
        send(engine, "north", "(1, DATE '2026-05-01', 5, 1), (2, DATE '2026-05-01', 20, 1)")
        send(engine, "south", "(3, DATE '2026-05-02', 30, 1)")
        yield engine
        for name in ("beside", "by_spark", "by_millpond"):
            engine.rows(f"DROP SCHEMA IF EXISTS {name} CASCADE")


def send(engine: SparkEngine, table: str, values: str) -> None:
    engine.rows(f"INSERT INTO beside.{table} VALUES {values}")


def values(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.values())


def run(
    command: list[str], folder: Path, name: str, server: SparkServer, files: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run an update of a pipeline of these files, with tables in a schema of its name."""
    (folder / name).mkdir(exist_ok=True)
    for file, text in files.items():
        (folder / name / file).write_text(dedent(text), encoding="utf-8")
    spec = folder / f"{name}.yml"
    spec.write_text(SPEC.format(name=name, storage=folder / f"storage-{name}"), encoding="utf-8")
    return subprocess.run(
        [*command, "run", "--spec", str(spec)],
        env={**os.environ, "SPARK_REMOTE": server.url},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


def test_append_flows_and_views_move_over(
    engine: SparkEngine, spark_server: SparkServer, tmp_path: Path
) -> None:
    engine.rows("CREATE SCHEMA by_spark")
    for command, name in ((SPARK_PIPELINES, "by_spark"), (MILLPOND, "by_millpond")):
        ended = run(command, tmp_path, name, spark_server, APPEND)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    for table in TABLES:
        theirs, ours = (
            sorted(map(values, engine.rows(f"SELECT * FROM {name}.{table}")))
            for name in ("by_spark", "by_millpond")
        )
        assert ours == theirs, table
        assert ours, table


def test_auto_cdc_flows_do_not_and_replace_using_keeps_the_newest_row_of_a_key(
    engine: SparkEngine, spark_server: SparkServer, tmp_path: Path
) -> None:
    engine.rows("CREATE SCHEMA by_spark")
    send(engine, "north", "(1, DATE '2026-05-03', 7, 3), (2, DATE '2026-05-01', 0, 0)")
    ended = run(MILLPOND, tmp_path, "by_millpond", spark_server, AUTO_CDC)
    assert ended.returncode != 0
    assert "dp.replace_flow" in ended.stdout + ended.stderr
    # Spark's own has these flows, but not into tables of Delta Lake.
    ended = run(SPARK_PIPELINES, tmp_path, "by_spark", spark_server, AUTO_CDC)
    assert ended.returncode != 0
    assert "AUTOCDC_TARGET_DOES_NOT_SUPPORT_MERGE" in ended.stdout + ended.stderr
    ended = run(MILLPOND, tmp_path, "by_millpond", spark_server, INSTEAD)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = engine.rows("SELECT id, amount, sent FROM by_millpond.current ORDER BY id")
    assert list(map(values, rows)) == [(1, 7, 3), (2, 20, 1)]
