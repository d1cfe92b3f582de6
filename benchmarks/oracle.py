"""What must come out: of everything that was ever read, each key's rows at its highest sequence.

DuckDB computes it from the files that the peers were given, by one statement over all of them; it
knows nothing of batches, flows or tables.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import duckdb
from benchmarks.workload import VALID, Workload

# A row's columns in one number, whatever its place; equal sums mean equal rows.
ROW_HASH = (
    "hash(CAST(k AS BIGINT), CAST(line AS INTEGER), CAST(seq AS BIGINT), CAST(status AS VARCHAR), "
    'CAST(amount AS DOUBLE), epoch_us("at"), CAST(token AS VARCHAR), CAST(kind AS INTEGER))'
)
FINGERPRINT = f"SELECT count(*), sum(CAST({ROW_HASH} AS HUGEINT)) FROM {{}}"

Fingerprint = tuple[int, int]


def expected(workload: Workload, base: Sequence[Path], batches: Sequence[Path]) -> Fingerprint:
    """The fingerprint of the closed form over a table's first rows and some batches.

    A batch that is sent twice is the same batch, and was read once.
    """
    read = [f"SELECT * FROM {parquet(base)}"] if base else []
    if batches:
        kept = f" WHERE {VALID}" if workload.rough else ""
        read.append(f"SELECT * FROM {parquet(batches)}{kept}")
    everything = " UNION ALL ".join(read)
    with connection() as duck:
        duck.execute(f"CREATE VIEW read AS {everything}")
        duck.execute("CREATE TABLE newest AS SELECT k, max(seq) AS seq FROM read GROUP BY k")
        closed_form = (
            "(SELECT r.* FROM read AS r JOIN newest AS n "
            "ON r.k IS NOT DISTINCT FROM n.k AND r.seq = n.seq)"
        )
        return fetch(duck, FINGERPRINT.format(closed_form))


def found(files: Sequence[Path]) -> Fingerprint:
    """The fingerprint of a table that its peer wrote out as Parquet."""
    with connection() as duck:
        return fetch(duck, FINGERPRINT.format(parquet(files)))


def fetch(duck: duckdb.DuckDBPyConnection, sql: str) -> Fingerprint:
    count, total = duck.execute(sql).fetchall()[0]
    return int(count), int(total or 0)


def connection() -> duckdb.DuckDBPyConnection:
    """With a place for what does not fit into memory."""
    spill = tempfile.gettempdir()
    return duckdb.connect(config={"preserve_insertion_order": False, "temp_directory": spill})


def parquet(files: Sequence[Path]) -> str:
    listed = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
    return f"read_parquet([{listed}])"
