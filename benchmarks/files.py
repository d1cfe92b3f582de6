"""Files as a stream: 5 million CSV rows in 50 files, and 100,000 files of which 10 are new.

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
from collections.abc import Sequence
from pathlib import Path

import duckdb
from deltalake import DeltaTable

from millpond.names import TableName
from millpond.runner import Project, run_update
from millpond.storage import Layout

FILES = 50
ROWS = 5_000_000
MANY_FILES = 100_000
NEW_FILES = 10
SPEC = """\
name: files
storage: storage
catalog: main
schema: bench
libraries:
  - glob:
      include: transformations/**
"""
COLUMNS = "id BIGINT, customer STRING, amount DOUBLE, paid BOOLEAN, ordered TIMESTAMP, day DATE"
SELECT = (
    "SELECT i AS id, 'customer ' || (i % 1000) AS customer, (i % 9973) / 100.0 AS amount, "
    "i % 3 = 0 AS paid, TIMESTAMP '2026-01-01' + to_seconds(i) AS ordered, "
    "DATE '2026-01-01' + CAST(i % 365 AS INTEGER) AS day FROM range({first}, {end}) AS r(i)"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["load", "discovery"])
    parser.add_argument("--rows", type=int, default=ROWS, help=f"of load (default {ROWS})")
    parser.add_argument("--files", type=int, default=MANY_FILES, help="of discovery")
    parser.add_argument("--runs", type=int, default=5, help="of each side, in turn (default 5)")
    parser.add_argument("--infer", action="store_true", help="load: let millpond find the columns")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(work(*arguments.worker)))
        return 0
    with tempfile.TemporaryDirectory(prefix="millpond-bench-") as name:
        if arguments.what == "load":
            load(Path(name), rows=arguments.rows, runs=arguments.runs, infers=arguments.infer)
        else:
            discovery(Path(name), files=arguments.files, runs=arguments.runs)
    return 0


def load(folder: Path, *, rows: int, runs: int, infers: bool) -> None:
    """Load the same files into a table and, with DuckDB alone, into Parquet, in turn."""
    given = "" if infers else f", schema => '{COLUMNS}'"
    source = folder / "source"
    source.mkdir()
    each = rows // FILES
    with duckdb.connect() as connection:
        for number in range(FILES):
            select = SELECT.format(first=number * each, end=(number + 1) * each)
            connection.execute(f"COPY ({select}) TO '{source}/{number:02}.csv' (HEADER)")
    found: dict[str, list[dict[str, float]]] = {"millpond": [], "DuckDB": []}
    for run in range(runs):
        project = make_project(
            folder / f"run-{run}",
            f"CREATE STREAMING TABLE out AS SELECT * FROM STREAM read_files('{source}', "
            f"format => 'csv', header => true{given});",
        )
        found["millpond"].append(in_process("update", project))
        check(project, rows=each * FILES)
        found["DuckDB"].append(in_process("duckdb", source))
    print(f"| {each * FILES:,} rows of CSV | median | minimum | maximum | peak memory |")
    print("|---|---|---|---|---|")
    for name, results in found.items():
        seconds = [result["seconds"] for result in results]
        peak = max(result["peak_mb"] for result in results)
        print(
            f"| {name} | {statistics.median(seconds):.2f} s | {min(seconds):.2f} s "
            f"| {max(seconds):.2f} s | {peak:.0f} MB |"
        )
    ratios = [
        mine["seconds"] / theirs["seconds"]
        for mine, theirs in zip(found["millpond"], found["DuckDB"], strict=True)
    ]
    print(f"\nmillpond takes {statistics.median(ratios):.2f} times DuckDB's time.")


def discovery(folder: Path, *, files: int, runs: int) -> None:
    """Look for new files in a folder in which nearly all were seen before."""
    source = folder / "source"
    source.mkdir()
    for number in range(files):
        (source / f"{number:06}.csv").write_text("1\n")
    project = make_project(
        folder / "project",
        f"CREATE STREAMING TABLE out AS SELECT * FROM STREAM read_files('{source}', "
        "format => 'csv', schema => 'id INT', includeExistingFiles => false);",
    )
    in_process("update", project)
    seconds: dict[int, list[float]] = {0: [], NEW_FILES: []}
    for run in range(runs):
        for new, found in seconds.items():
            for number in range(new):
                (source / f"new-{run}-{number}.csv").write_text("1\n")
            time.sleep(1)
            found.append(in_process("update", project)["seconds"])
    print("| files | new | update: median | minimum | maximum |")
    print("|---|---|---|---|---|")
    for new, found in seconds.items():
        print(
            f"| {files:,} | {new} | {statistics.median(found):.2f} s | {min(found):.2f} s "
            f"| {max(found):.2f} s |"
        )


def make_project(folder: Path, statement: str) -> Path:
    """A pipeline folder with one file."""
    (folder / "transformations").mkdir(parents=True)
    (folder / "spark-pipeline.yml").write_text(SPEC, encoding="utf-8")
    (folder / "transformations" / "out.sql").write_text(statement, encoding="utf-8")
    return folder


def in_process(what: str, folder: Path) -> dict[str, float]:
    """Do something in a process of its own, and say how long it took and what memory."""
    process = subprocess.run(
        [sys.executable, __file__, "load", "--worker", what, str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(process.stdout)
    return found


def work(what: str, folder: str) -> dict[str, float]:
    start = time.perf_counter()
    if what == "update":
        result = run_update(Project.open(Path(folder) / "spark-pipeline.yml"))
        if result.problems or any(flow.error for flow in result.flows):
            message = f"the update failed: {result}"
            raise RuntimeError(message)
    else:
        copy_with_duckdb(sorted(Path(folder).glob("*.csv")), Path(folder).parent / "out.parquet")
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def copy_with_duckdb(files: Sequence[Path], target: Path) -> None:
    """What DuckDB's own reader and writer do with the same files, its types found by itself."""
    with duckdb.connect() as connection:
        listed = ", ".join(f"'{file}'" for file in files)
        connection.execute(
            f"COPY (SELECT * FROM read_csv([{listed}])) TO '{target}' "
            "(FORMAT parquet, COMPRESSION snappy)"
        )


def check(folder: Path, *, rows: int) -> None:
    """Every row is there once."""
    table = DeltaTable(Layout(folder / "storage").table(TableName("main", "bench", "out")))
    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT count(*), count(DISTINCT id), sum(id) FROM read_parquet({table.file_uris()})"
        ).fetchone()
    if found != (rows, rows, rows * (rows - 1) // 2):
        message = f"the table holds {found}, not {rows} rows"
        raise RuntimeError(message)


if __name__ == "__main__":
    sys.exit(main())
