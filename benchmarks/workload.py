"""The tables and batches of the benchmarks: keys of 20 rows, replaced as a whole by newer ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from millpond.delta import Metadata, Table, connect, literal, write_data_files
from millpond.storage import LocalStore

ROWS_A_KEY = 20
SCHEMA = StructType(
    [
        StructField("k", LongType()),
        StructField("line", IntegerType()),
        StructField("seq", LongType()),
        StructField("status", StringType()),
        StructField("amount", DoubleType()),
        StructField("at", TimestampType()),
        StructField("token", StringType()),
        StructField("kind", IntegerType()),
    ]
)
# Sums are over whole numbers, so that no order of adding changes them.
DIGEST = (
    "SELECT CAST(count(*) AS BIGINT), CAST(sum(k) AS BIGINT), CAST(sum(seq) AS BIGINT), "
    "CAST(sum(line * seq) AS BIGINT), CAST(sum(CAST(amount AS BIGINT)) AS BIGINT), "
    "count(DISTINCT token) FROM {}"
)


@dataclass(frozen=True)
class Workload:
    """Batches of `batch_keys` random keys each, into a table of `keys` keys in `files` files."""

    keys: int
    files: int
    batches: int
    batch_keys: int

    def scaled(self, part: float) -> Workload:
        return replace(
            self,
            keys=max(int(self.keys * part), 100),
            batch_keys=max(int(self.batch_keys * part), 10),
        )

    def __str__(self) -> str:
        return (
            f"{self.batches} batches of {self.batch_keys * ROWS_A_KEY:,} rows over "
            f"{self.batch_keys:,} random keys, into {self.keys * ROWS_A_KEY:,} rows "
            f"in {self.files} files"
        )


SUITES = {
    "large": Workload(keys=500_000, files=16, batches=6, batch_keys=5_000),
    "small": Workload(keys=50_000, files=1, batches=40, batch_keys=50),
}


def rows_sql(keys: str, *, sequence: int) -> str:
    """The 20 rows of each key of a relation `k`; all values follow from key, line and sequence."""
    return (
        f"SELECT k, CAST(line AS INTEGER) AS line, CAST({sequence} AS BIGINT) AS seq, "
        f"['new', 'open', 'done', 'void'][1 + CAST(hash(k, line) % 4 AS INTEGER)] AS status, "
        f"CAST(hash(k, line, {sequence}) % 1000000 AS DOUBLE) AS amount, "
        "TIMESTAMPTZ '2024-01-01 00:00:00+00' "
        "+ to_seconds(CAST(hash(line, k) % 30000000 AS BIGINT)) AS at, "
        f"printf('%016x', hash(k, line, {sequence}, 7)) AS token, "
        "CAST(hash(k) % 1000 AS INTEGER) AS kind "
        f"FROM ({keys}) AS keys, range({ROWS_A_KEY}) AS lines(line)"
    )


def base_sql(workload: Workload, *, first: int = 0, end: int | None = None) -> str:
    end = workload.keys if end is None else end
    return rows_sql(f"SELECT range AS k FROM range({first}, {end})", sequence=1)


def make_table(workload: Workload, folder: Path, *, vectors: bool) -> Path:
    """Write the table before the first batch, its files ordered by key."""
    properties = {"delta.enableDeletionVectors": "true" if vectors else "false"}
    table = Table(folder)
    table.create(
        Metadata(id="00000000-0000-0000-0000-000000000000", schema=SCHEMA, configuration=properties)
    )
    transaction = table.begin()
    connection = connect()
    for number in range(workload.files):
        first = workload.keys * number // workload.files
        end = workload.keys * (number + 1) // workload.files
        files = write_data_files(
            connection,
            base_sql(workload, first=first, end=end),
            snapshot=transaction.snapshot,
            store=LocalStore(),
        )
        for file in files:
            transaction.add(file)
    connection.close()
    transaction.commit("WRITE")
    return folder


def make_batches(workload: Workload, folder: Path) -> list[Path]:
    """Write each batch as the Parquet file that an engine would stage."""
    folder.mkdir(parents=True)
    connection = duckdb.connect()
    paths = []
    for number in range(workload.batches):
        paths.append(folder / f"batch-{number}.parquet")
        keys = (
            f"SELECT range AS k FROM range({workload.keys}) "
            f"ORDER BY hash(range, {number}) LIMIT {workload.batch_keys}"
        )
        connection.execute(
            f"COPY ({rows_sql(keys, sequence=number + 2)}) TO {literal(str(paths[-1]))} "
            "(FORMAT parquet)"
        )
    connection.close()
    return paths


def expected_digest(workload: Workload, batches: list[Path]) -> list[Any]:
    """The digest of the closed form: of everything ever read, each key's rows at its highest."""
    listed = ", ".join(literal(str(path)) for path in batches)
    connection = duckdb.connect()
    everything = f"{base_sql(workload)} UNION ALL SELECT * FROM read_parquet([{listed}])"
    newest = (
        f"SELECT r.* FROM ({everything}) AS r JOIN (SELECT k, max(seq) AS seq "
        f"FROM ({everything}) GROUP BY k) AS m ON r.k = m.k AND r.seq = m.seq"
    )
    row = connection.execute(DIGEST.format(f"({newest})")).fetchall()[0]
    connection.close()
    return list(row)
