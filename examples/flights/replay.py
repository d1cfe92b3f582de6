"""Delivers the flights step by step, runs the pipeline after each, and checks the table.

After every step the table must hold, for each day, the rows of the newest version that has been
delivered: DuckDB works that out from the landing table. At the end it must hold the package's data.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pyarrow as pa
from deliveries import CSV, Flights, plan
from deltalake import DeltaTable, QueryBuilder, write_deltalake

LANDING = Path("landing/flights")
TABLE = Path("pipeline-storage/tables/main/airports/flights")

EXPECTED = """
    SELECT * FROM landing
    QUALIFY sent_at = max(sent_at) OVER (PARTITION BY year, month, day)
"""


def read(folder: Path) -> pa.Table:
    return pa.table(QueryBuilder().register("t", DeltaTable(folder)).execute("SELECT * FROM t"))


def run_pipeline() -> float:
    """Run one update and return how many seconds it took."""
    command = [Path(sys.executable).with_name("millpond"), "run"]
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        sys.exit(done.returncode)
    return time.monotonic() - started


def differences(connection: duckdb.DuckDBPyConnection, one: str, other: str) -> int:
    """Rows of either that the other does not have as often."""
    query = f"""
        SELECT (SELECT count(*) FROM (({one}) EXCEPT ALL ({other})))
             + (SELECT count(*) FROM (({other}) EXCEPT ALL ({one})))
    """
    [(count,)] = connection.sql(query).fetchall()
    return count


def main() -> int:
    os.chdir(Path(__file__).parent)
    for folder in ("landing", "pipeline-storage"):
        shutil.rmtree(folder, ignore_errors=True)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    flights = Flights(connection, CSV)
    wrong = 0
    for number, step in enumerate(plan(), start=1):
        print(f"\nStep {number}: {step.title}")
        delivered = 0
        for commit in step.commits:
            rows = flights.rows(commit)
            delivered += rows.num_rows
            LANDING.parent.mkdir(exist_ok=True)
            write_deltalake(LANDING, rows, mode="append")
        seconds = run_pipeline()
        connection.register("landing", read(LANDING))
        connection.register("actual", read(TABLE))
        columns = ", ".join(connection.table("landing").columns)
        off = differences(connection, EXPECTED, f"SELECT {columns} FROM actual")
        wrong += off
        total = connection.table("actual").shape[0]
        print(
            f"  {delivered:>7,} rows delivered, pipeline took {seconds:.1f} s,"
            f" table has {total:,} rows,",
            "as it should." if off == 0 else f"{off:,} ROWS ARE WRONG.",
        )
    off = differences(
        connection,
        "SELECT * EXCLUDE (day_of_year) FROM final",
        "SELECT * EXCLUDE (sent_at) FROM actual",
    )
    print(
        "\nEvery day is as the package has it."
        if off == 0
        else f"\n{off:,} rows differ from the package's data."
    )
    return 1 if wrong or off else 0


if __name__ == "__main__":
    sys.exit(main())
