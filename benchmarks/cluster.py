"""REPLACE USING on one machine without Spark, and on a standalone Spark cluster, on equal sources.

Run it with `--help`; `README.md` beside it says what is measured. It needs `make spark-ready`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable, QueryBuilder, write_deltalake

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.workload import ROWS_A_KEY, rows_sql

from millpond.events import Event
from millpond.names import TableName
from millpond.runner import Project, run_update
from millpond.storage import Layout
from tests.spark.server import SparkServer, free_port

BASE_FILES = 20
BATCH_ROWS = 100_000
SPEC = """\
name: cluster
storage: storage
catalog: main
schema: bench
libraries:
  - glob:
      include: transformations/**
"""
STATEMENT = """\
CREATE STREAMING TABLE target FLOW REPLACE USING (k) SEQUENCE BY seq BY NAME
SELECT * FROM STREAM(source);
"""
# Of each row all columns, so that two tables with equal sums hold equal rows.
FINGERPRINT = (
    'SELECT count(*), sum(CAST(hash(k, line, seq, status, amount, "at", token, kind) AS HUGEINT)) '
    "FROM {}"
)


@dataclass
class Side:
    """An engine, its pipeline folder, and what its updates took.

    Attributes:
        conf: Settings of the pipeline.
        loaded: Seconds of the update that loads the target.
        replaced: Seconds of the update that applies the batches.
        batches: Of these, seconds from the end of one batch to that of the next.
        idle: Seconds of an update that finds nothing new.
    """

    name: str
    folder: Path
    conf: dict[str, str] = field(default_factory=dict)
    loaded: float = 0.0
    replaced: float = 0.0
    batches: list[float] = field(default_factory=list)
    idle: float = 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000, help="of the target at first")
    parser.add_argument("--batches", type=int, default=20, help="of 100,000 rows (default 20)")
    parser.add_argument("--workers", type=int, default=2, help="of the cluster (default 2)")
    parser.add_argument("--folder", type=Path, help="where tables are made; removed afterwards")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="millpond-bench-", dir=arguments.folder) as name,
        cluster(Path(name) / "spark", workers=arguments.workers) as server,
    ):
        folder = Path(name)
        on_spark = {"millpond.engine": server.url, "millpond.spark.tables": "storage"}
        sides = [
            Side("embedded", folder / "embedded"),
            Side(f"Spark, {arguments.workers} workers", folder / "cluster", on_spark),
        ]
        compare(sides, folder, keys=arguments.rows // ROWS_A_KEY, batches=arguments.batches)
    return 0


@contextmanager
def cluster(folder: Path, *, workers: int) -> Iterator[SparkServer]:
    """A master, workers and a Spark Connect server: processes of their own."""
    server = SparkServer(folder, free_port(), workers=workers)
    server.start(short_lived=False)
    try:
        yield server
    finally:
        server.stop()


def compare(sides: list[Side], folder: Path, *, keys: int, batches: int) -> None:
    source = folder / "source"
    base = [
        rows_sql(f"SELECT range AS k FROM range({first}, {end})", sequence=1)
        for first, end in ranges(keys, BASE_FILES)
    ]
    append(source, base)
    for side in sides:
        make_project(side, source)
        side.loaded, _ = update(side, maximum=4)
    news = [batch_sql(number, keys=keys) for number in range(batches)]
    for side in sides:
        append(table(side, "source"), news)
    for side in sides:
        side.replaced, side.batches = update(side, maximum=1)
        side.idle, _ = update(side, maximum=1)
        if len(side.batches) != batches:
            sys.exit(f"{side.name} made {len(side.batches)} batches of {batches}")
    expected = closed_form([*base, *news])
    for side in sides:
        found = fingerprint(table(side, "target"))
        if found != expected:
            sys.exit(f"{side.name} gives {found}, expected {expected}: no figures are shown")
    report(sides, keys=keys)


def ranges(count: int, parts: int) -> Iterator[tuple[int, int]]:
    for part in range(parts):
        yield count * part // parts, count * (part + 1) // parts


def batch_sql(number: int, *, keys: int) -> str:
    """100,000 rows of random keys: a fifth is late, a twentieth ties with the batch before.

    Of the others, each hundredth key is null.
    """
    count = BATCH_ROWS // ROWS_A_KEY
    drawn = f"SELECT range AS k FROM range({keys}) ORDER BY hash(range, {{}}) LIMIT {{}}"
    ties = drawn.format(max(number - 1, 0), count // 20)
    new = drawn.format(number, count - count // 20)
    late = f"SELECT k FROM ({new}) WHERE hash(k, 1) % 5 = 0"
    newer = f"SELECT IF(hash(k, 2) % 100 = 0, NULL, k) AS k FROM ({new}) WHERE hash(k, 1) % 5 <> 0"
    return " UNION ALL ".join(
        f"({rows_sql(part, sequence=sequence)})"
        for part, sequence in ((newer, number + 2), (ties, number + 1), (late, 0))
    )


def append(path: Path, queries: list[str]) -> None:
    """Each query makes a version of a table, with one file."""
    path.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        for query in queries:
            write_deltalake(path, connection.sql(query).to_arrow_table(), mode="append")


def make_project(side: Side, source: Path) -> None:
    """A pipeline folder with a source of its own, whose files are those of all."""
    (side.folder / "transformations").mkdir(parents=True)
    (side.folder / "spark-pipeline.yml").write_text(SPEC, encoding="utf-8")
    (side.folder / "transformations" / "target.sql").write_text(STATEMENT, encoding="utf-8")
    shutil.copytree(source, table(side, "source"), copy_function=os.link)


def table(side: Side, name: str) -> Path:
    return Layout(side.folder / "storage").table(TableName("main", "bench", name))


def update(side: Side, *, maximum: int) -> tuple[float, list[float]]:
    """Run an update; its seconds, and those of each of its batches."""
    ends: list[float] = []

    def listen(event: Event) -> None:
        if event.origin.batch_id is not None:
            ends.append(event.timestamp.timestamp())

    conf = {**side.conf, "millpond.maxFilesPerTrigger": str(maximum)}
    start, began = time.perf_counter(), time.time()
    project = Project.open(side.folder / "spark-pipeline.yml", conf=conf)
    result = run_update(project, listeners=[listen])
    seconds = time.perf_counter() - start
    if result.problems or any(flow.error for flow in result.flows):
        sys.exit(f"{side.name} failed: {result}")
    return seconds, [end - before for before, end in zip([began, *ends], ends, strict=False)]


def closed_form(queries: list[str]) -> Any:
    """The fingerprint of each key's rows at its highest sequence, of all that was ever read."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE read AS {' UNION ALL '.join(f'({q})' for q in queries)}")
        newest = (
            "SELECT r.* FROM read AS r JOIN (SELECT k, max(seq) AS seq FROM read GROUP BY k) AS m "
            "ON r.k IS NOT DISTINCT FROM m.k AND r.seq = m.seq"
        )
        return connection.execute(FINGERPRINT.format(f"({newest})")).fetchall()


def fingerprint(path: Path) -> Any:
    """As delta-rs reads the table, deletion vectors included."""
    rows = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t")
    with duckdb.connect() as connection:
        connection.register("found", rows)
        return connection.execute(FINGERPRINT.format("found")).fetchall()


def report(sides: list[Side], *, keys: int) -> None:
    count = len(sides[0].batches)
    print(f"\n{count} batches of {BATCH_ROWS:,} rows into {keys * ROWS_A_KEY:,} rows; equal rows\n")
    print(
        "| engine | load | update with the batches | s a batch, median (min to max) "
        "| update with nothing new |"
    )
    print("|---|---|---|---|---|")
    for side in sides:
        print(
            f"| {side.name} | {side.loaded:.1f} s | {side.replaced:.1f} s "
            f"| {statistics.median(side.batches):.2f} "
            f"({min(side.batches):.2f} to {max(side.batches):.2f}) | {side.idle:.1f} s |"
        )


if __name__ == "__main__":
    sys.exit(main())
