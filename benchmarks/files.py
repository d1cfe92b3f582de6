"""Files as a stream: 5 million CSV rows in 50 files, and 100,000 files of which 10 are new.

Run it with `--help`; `README.md` beside it says what is measured.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

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
DUCKDB_COLUMNS = (
    "{'id': 'BIGINT', 'customer': 'VARCHAR', 'amount': 'DOUBLE', 'paid': 'BOOLEAN', "
    "'ordered': 'TIMESTAMP', 'day': 'DATE'}"
)
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
        what, place = arguments.worker
        copy(Path(place), gives_columns=what == "copy-given")
        return 0
    with tempfile.TemporaryDirectory(prefix="millpond-bench-") as name:
        # Python keeps what it compiles, as it does for an installed program.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = f"{name}/compiled"
        if arguments.what == "load":
            load(Path(name), rows=arguments.rows, runs=arguments.runs, infers=arguments.infer)
        else:
            discovery(Path(name), files=arguments.files, runs=arguments.runs)
    return 0


def load(folder: Path, *, rows: int, runs: int, infers: bool) -> None:
    """Load the same files into a table and, with DuckDB alone, into Parquet, in turn."""
    import duckdb

    given = "" if infers else f", schema => '{COLUMNS}'"
    source = folder / "source"
    source.mkdir()
    each = rows // FILES
    with duckdb.connect() as connection:
        for number in range(FILES):
            select = SELECT.format(first=number * each, end=(number + 1) * each)
            connection.execute(f"COPY ({select}) TO '{source}/{number:02}.csv' (HEADER)")
    statement = (
        f"CREATE STREAMING TABLE out AS SELECT * FROM STREAM read_files('{source}', "
        f"format => 'csv', header => true{given});"
    )
    in_process("update", make_project(folder / "warm-up", statement))
    sides = {
        "millpond": "update",
        "DuckDB, which finds the columns": "copy",
        "DuckDB, with given columns": "copy-given",
    }
    found: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    for run in range(runs):
        # Each side is first, in the middle and last in turn.
        for side in rotated(list(sides), run):
            place = source
            if side == "millpond":
                place = make_project(folder / f"run-{run}", statement)
            found[side].append(in_process(sides[side], place))
        check(folder / f"run-{run}", rows=each * FILES)
    print(f"| {each * FILES:,} rows of CSV | median | minimum | maximum | CPU | peak memory |")
    print("|---|---|---|---|---|---|")
    for side, results in found.items():
        seconds = [result["seconds"] for result in results]
        cpu = statistics.median(result["cpu_seconds"] for result in results)
        peak = max(result["peak_mb"] for result in results)
        print(
            f"| {side} | {statistics.median(seconds):.2f} s | {min(seconds):.2f} s "
            f"| {max(seconds):.2f} s | {cpu:.2f} s | {peak:.0f} MB |"
        )
    print()
    for side in list(sides)[1:]:
        ratio = {
            key: statistics.median(
                mine[key] / theirs[key]
                for mine, theirs in zip(found["millpond"], found[side], strict=True)
            )
            for key in ("seconds", "cpu_seconds")
        }
        print(
            f"millpond takes {ratio['seconds']:.2f} times the time and "
            f"{ratio['cpu_seconds']:.2f} times the CPU of {side}."
        )


def rotated(sides: Sequence[str], by: int) -> Sequence[str]:
    """The sides, the first of them behind the others, so many times."""
    start = by % len(sides)
    return [*sides[start:], *sides[:start]]


def discovery(folder: Path, *, files: int, runs: int) -> None:
    """Look for new files in a folder in which nearly all were seen before."""
    source = folder / "source"
    source.mkdir()
    for number in range(files):
        (source / f"{number:06}.csv").write_text("1\n")
    projects = {
        overwrites: make_project(
            folder / f"overwrites-{overwrites}",
            f"CREATE STREAMING TABLE out AS SELECT * FROM STREAM read_files('{source}', "
            f"format => 'csv', schema => 'id INT', allowOverwrites => {overwrites}, "
            "includeExistingFiles => false);",
        )
        for overwrites in ("false", "true")
    }
    for project in projects.values():
        in_process("update", project)
    seconds: dict[tuple[str, int], list[float]] = {
        (overwrites, new): [] for overwrites in projects for new in (0, NEW_FILES)
    }
    for run in range(runs):
        for new in (0, NEW_FILES):
            for number in range(new):
                (source / f"new-{run}-{number}.csv").write_text("1\n")
            time.sleep(1)
            for overwrites, project in projects.items():
                seconds[overwrites, new].append(in_process("update", project)["seconds"])
    print("| files | new | allowOverwrites | update: median | minimum | maximum |")
    print("|---|---|---|---|---|---|")
    for (overwrites, new), found in seconds.items():
        print(
            f"| {files:,} | {new} | {overwrites} | {statistics.median(found):.2f} s "
            f"| {min(found):.2f} s | {max(found):.2f} s |"
        )


def make_project(folder: Path, statement: str) -> Path:
    """A pipeline folder with one file."""
    (folder / "transformations").mkdir(parents=True)
    (folder / "spark-pipeline.yml").write_text(SPEC, encoding="utf-8")
    (folder / "transformations" / "out.sql").write_text(statement, encoding="utf-8")
    return folder


def in_process(what: str, folder: Path) -> dict[str, float]:
    """Do something in a process of its own, and say how long it took and what memory.

    The time is that of the whole process: Python's start and all imports are in it.
    """
    command = [sys.executable, __file__, "load", "--worker", what, str(folder)]
    if what == "update":
        spec = folder / "spark-pipeline.yml"
        command = [str(Path(sys.executable).parent / "millpond"), "run", "--spec", str(spec)]
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            message = f"{command} failed: {output.read().decode(errors='replace')}"
            raise RuntimeError(message)
    return {
        "seconds": seconds,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_mb": used.ru_maxrss / 1024,
    }


def copy(folder: Path, *, gives_columns: bool) -> None:
    """Do with DuckDB's own reader and writer what an update does with the files of a folder."""
    import duckdb

    listed = ", ".join(f"'{file}'" for file in sorted(folder.glob("*.csv")))
    given = f", header = true, columns = {DUCKDB_COLUMNS}" if gives_columns else ""
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT * FROM read_csv([{listed}]{given})) "
            f"TO '{folder.parent}/out.parquet' (FORMAT parquet, COMPRESSION snappy)"
        )


def check(folder: Path, *, rows: int) -> None:
    """Every row is there once."""
    import duckdb
    from deltalake import DeltaTable

    from millpond.names import TableName
    from millpond.storage import Layout

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
