"""Whatever dies, and whenever: each version of a table on Spark is right after some of the batches.

A short history is enough to find what is broken by mistake. For longer ones, which take minutes:
`MILLPOND_SPARK_HISTORIES=20 pytest tests/spark/test_histories.py`.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests import oracle
from tests.pipeline_folder import PipelineFolder
from tests.spark.server import SparkServer
from tests.spark.test_takeover import on_spark

HISTORIES = int(os.environ.get("MILLPOND_SPARK_HISTORIES", "0"))
ENDS = ["client", "client", "client", "server", "server", "restart"]
PIPELINE = """\
CREATE OR REFRESH STREAMING TABLE prices (CONSTRAINT sold EXPECT (v >= 0) ON VIOLATION DROP ROW)
FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT * FROM STREAM(lists);
CREATE OR REFRESH STREAMING TABLE copies AS SELECT * FROM STREAM(lists);
"""
COLUMNS = ("k", "v", "s")
MILLPOND = Path(sys.executable).with_name("millpond")

Rows = list[dict[str, Any]]


def copied(rows: Rows) -> list[Any]:
    return list(rows)


def replaced(rows: Rows) -> list[Any]:
    valid = [row for row in rows if row["v"] >= 0]
    return oracle.expected(valid, keys=("k",), sequence=lambda row: row["s"])


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(HISTORIES or 1))
def test_killed_clients_and_servers_lose_and_double_nothing(
    folder: PipelineFolder, lone_spark_server: SparkServer, seed: int
) -> None:
    draw = random.Random(seed)
    server = lone_spark_server
    folder.write("prices.sql", PIPELINE)
    folder.configure({**on_spark(server), "millpond.maxFilesPerTrigger": "1"})
    batches = [feed(folder, draw)]
    start = time.monotonic()
    assert ended(client(folder)) == 0
    whole_s = time.monotonic() - start
    for end in draw.sample(ENDS, len(ENDS)) if HISTORIES else ("client", "server"):
        batches += [feed(folder, draw) for _ in range(draw.randint(1, 3))]
        if end == "restart":
            server.restart()
        running = client(folder)
        if end != "restart":
            time.sleep(draw.uniform(0.1, 1.2) * whole_s)
        if end == "client":
            running.kill()
        elif end == "server":
            server.kill()
            server.start()
        code = ended(running)
        assert code == 0 or end != "restart"
        check(folder, "prices", batches, replaced)
        check(folder, "copies", batches, copied)
    assert ended(client(folder)) == 0
    assert check(folder, "prices", batches, replaced) == len(batches)
    assert check(folder, "copies", batches, copied) == len(batches)


def feed(folder: PipelineFolder, draw: random.Random) -> Rows:
    rows = [
        {"k": draw.choice([None, "", "a", "b", "c"]), "v": draw.randrange(-1, 9), "s": s}
        for s in draw.choices(range(5), k=draw.randint(1, 6))
    ]
    folder.feed("lists", rows, k=pa.string(), v=pa.int64(), s=pa.int64())
    return rows


def client(folder: PipelineFolder) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [MILLPOND, "run", "--spec", folder.root / "spark-pipeline.yml"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> int:
    """Wait for its end, which is in words whatever happened."""
    said, _ = process.communicate(timeout=300)
    assert "Traceback" not in said, said
    return process.returncode


def check(
    folder: PipelineFolder, name: str, batches: list[Rows], rule: Callable[[Rows], list[Any]]
) -> int:
    """Each version of the table is that of some number of batches, none of less than before.

    Returns:
        The number that the newest version has.
    """
    path, applied = folder.table(name), 0
    states = [
        oracle.multiset(rule(list(chain(*batches[:count]))), columns=COLUMNS)
        for count in range(len(batches) + 1)
    ]
    for version in range(DeltaTable(path).version() + 1):
        found = rows_of(path, version)
        counts = [count for count in range(applied, len(states)) if states[count] == found]
        assert counts, f"{name} at version {version} holds {found} after {applied} batches"
        applied = counts[0]
    last = states[applied]
    return max(count for count, state in enumerate(states) if state == last)


def rows_of(path: Path, version: int) -> Counter[Any]:
    table = DeltaTable(path, version=version)
    rows = QueryBuilder().register("t", table).execute("SELECT * FROM t")
    return oracle.multiset(pa.table(rows).to_pylist(), columns=COLUMNS)
