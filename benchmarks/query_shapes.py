"""What a micro-batch costs as an operator's state grows: DISTINCT, and a join of two streams.

Run it with `--help`; `README.md` beside it says what is measured.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable, write_deltalake

from millpond.events import Event
from millpond.names import TableName
from millpond.runner import Project, run_update
from millpond.storage import Layout

BATCHES = 50
ROWS = 5_000_000
SPEC = """\
name: query-shapes
storage: storage
catalog: main
schema: bench
libraries:
  - glob:
      include: transformations/**
"""


@dataclass(frozen=True)
class Shape:
    """A query over streams whose state grows with every batch.

    Attributes:
        tables: For each source table, a SELECT of one batch's rows, given its number and the
            number of rows.
        expected: A SELECT that tells what the target holds in the end, over views of the sources.
    """

    query: str
    tables: dict[str, Callable[[int, int], str]]
    expected: str


def _events(batch: int, rows: int) -> str:
    """Half of the rows were there before, anywhere in the stream so far."""
    return (
        f"SELECT CASE WHEN i % 2 = 0 THEN {batch * rows} + i "
        f"ELSE CAST(hash({batch * rows} + i) % {(batch + 1) * rows} AS BIGINT) END AS id, "
        f"'event ' || (id % 1000) AS name FROM range({rows}) AS r(i)"
    )


def _orders(batch: int, rows: int) -> str:
    return (
        f"SELECT {batch * rows} + i AS id, i % 97 AS amount, 'customer ' || (i % 1000) AS customer "
        f"FROM range({rows}) AS r(i)"
    )


def _payments(batch: int, rows: int) -> str:
    """Each is of some order of any batch; the numbers are mixed by a multiplication."""
    total = rows * BATCHES
    return (
        f"SELECT (({batch * rows} + i) * 7919) % {total} AS order_id, i % 89 AS paid "
        f"FROM range({rows}) AS r(i)"
    )


SHAPES = {
    "distinct": Shape(
        query="SELECT DISTINCT id, name FROM STREAM(events) WITH (maxFilesPerTrigger = 1)",
        tables={"events": _events},
        expected="SELECT count(*), sum(id) FROM (SELECT DISTINCT id, name FROM events)",
    ),
    "join": Shape(
        query="SELECT o.id, o.amount, o.customer, p.paid "
        "FROM STREAM(orders) AS o WITH (maxFilesPerTrigger = 1) "
        "JOIN STREAM(payments) AS p WITH (maxFilesPerTrigger = 1) ON o.id = p.order_id",
        tables={"orders": _orders, "payments": _payments},
        expected="SELECT count(*), sum(o.id) FROM orders o JOIN payments p ON o.id = p.order_id",
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", action="append", choices=SHAPES, help="default: all")
    parser.add_argument(
        "--rows", type=int, default=ROWS, help=f"rows of all sources together (default {ROWS})"
    )
    parser.add_argument("--folder", type=Path, help="where tables are made; removed afterwards")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(run(arguments.worker)))
        return 0
    print("| shape | rows | batch 10 | batch 50 | ratio | median | worst | peak memory |")
    print("|---|---|---|---|---|---|---|---|")
    for name in arguments.shape or SHAPES:
        with tempfile.TemporaryDirectory(prefix="millpond-bench-", dir=arguments.folder) as folder:
            report(name, Path(folder), rows=arguments.rows)
    return 0


def report(name: str, folder: Path, *, rows: int) -> None:
    """Run one shape in a process of its own, check its result, and print its figures."""
    shape = SHAPES[name]
    make_project(shape, folder, rows=rows)
    process = subprocess.run(
        [sys.executable, __file__, "--worker", str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(process.stdout)
    check(shape, folder)
    seconds = found["seconds"]
    tenth, last = seconds[9], seconds[-1]
    print(
        f"| {name} | {rows:,} | {tenth:.2f} s | {last:.2f} s | {last / tenth:.2f} "
        f"| {statistics.median(seconds):.2f} s | {max(seconds):.2f} s | {found['peak_mb']} MB |",
        flush=True,
    )


def make_project(shape: Shape, folder: Path, *, rows: int) -> None:
    """A pipeline folder whose source tables hold one file for each batch."""
    (folder / "transformations").mkdir(parents=True)
    (folder / "spark-pipeline.yml").write_text(SPEC, encoding="utf-8")
    statement = f"CREATE STREAMING TABLE out AS {shape.query};"
    (folder / "transformations" / "out.sql").write_text(statement, encoding="utf-8")
    each = rows // len(shape.tables) // BATCHES
    for table, select in shape.tables.items():
        path = _table(folder, table)
        path.mkdir(parents=True)
        with duckdb.connect() as connection:
            for batch in range(BATCHES):
                data = connection.execute(select(batch, each)).to_arrow_table()
                write_deltalake(path, data, mode="append")


def run(folder: Path) -> dict[str, Any]:
    """One update, with the seconds from each batch's commit to the next one's."""
    ends: list[float] = []

    def listen(event: Event) -> None:
        if event.origin.batch_id is not None:
            ends.append(time.perf_counter())

    start = time.perf_counter()
    result = run_update(Project.open(folder / "spark-pipeline.yml"), listeners=[listen])
    if result.problems or any(flow.error for flow in result.flows):
        message = f"the update failed: {result}"
        raise RuntimeError(message)
    seconds = [end - begin for begin, end in zip([start, *ends], ends, strict=False)]
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "peak_mb": peak_kb // 1024}


def check(shape: Shape, folder: Path) -> None:
    """Compare the target with the batch query over everything that was read."""
    with duckdb.connect() as connection:
        for table in (*shape.tables, "out"):
            files = DeltaTable(_table(folder, table)).file_uris()
            connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet({files})")
        expected = connection.execute(shape.expected).fetchone()
        found = connection.execute("SELECT count(*), sum(id) FROM out").fetchone()
    if found != expected:
        message = f"the target holds {found}, not {expected}"
        raise RuntimeError(message)


def _table(folder: Path, name: str) -> Path:
    return Layout(folder / "storage").table(TableName("main", "bench", name))


if __name__ == "__main__":
    sys.exit(main())
