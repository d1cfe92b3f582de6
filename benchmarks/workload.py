"""The rows of the benchmarks: a table before its first batch, and the batches that change it.

All values follow from key, line and sequence, so every run on every machine has the same rows. What
the suites are, and at which size, stands in `suites.py`; what comes out of them in `oracle.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.delta import Metadata, Table, connect, literal, write_data_files
from millpond.storage import LocalStore

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

ROWS_A_KEY = 20
# Sizes of keys between one row and 5,000, as many between 1 and 10 as between 100 and 1,000.
SKEWED_SIZE = "CAST(floor(pow(5000, (hash(k, 3) % 10000) / 10000)) AS BIGINT)"
# What the expectation of the stream with rough edges keeps: nine rows of ten.
VALID = "amount >= 100000"


@dataclass(frozen=True)
class Workload:
    """Batches of some keys each, into a table of `keys` keys.

    Attributes:
        rows_a_key: Rows of each key; 0 for sizes that differ (`SKEWED_SIZE`).
        clustered: Whether the keys of a batch lie beside one another, or anywhere.
        new_keys: Of a batch's keys, how many the table does not have.
        rough: Whether there are late rows, ties, null keys, rows that an expectation drops, and
            batches that arrive twice.
        zipf: Whether some keys come in nearly every batch, and most in none.
        reach: Of the table, in the order of its keys, the part in which random keys lie.
    """

    keys: int
    files: int
    batches: int
    batch_keys: int
    rows_a_key: int = ROWS_A_KEY
    clustered: bool = False
    new_keys: int = 0
    rough: bool = False
    zipf: bool = False
    reach: float = 1.0

    def scaled(self, part: float) -> Workload:
        return replace(
            self,
            keys=max(int(self.keys * part), 100) if self.keys else 0,
            batch_keys=max(int(self.batch_keys * part), 2),
            new_keys=max(int(self.new_keys * part), 1) if self.new_keys else 0,
        )

    @property
    def size(self) -> str:
        return str(self.rows_a_key) if self.rows_a_key else SKEWED_SIZE

    def is_sent_twice(self, batch: int) -> bool:
        return self.rough and batch % 10 == 9

    @property
    def table(self) -> str:
        return f"{self.keys:,} keys in {self.files} files" if self.keys else "an empty table"

    def __str__(self) -> str:
        kind = "adjacent" if self.clustered else "Zipf-distributed" if self.zipf else "random"
        rows = f"{self.rows_a_key:,} rows each" if self.rows_a_key else "1 to 5,000 rows each"
        new = f", {self.new_keys:,} of them new" if self.new_keys else ""
        reach = f", the others in the first {self.reach:.0%} of the table" if self.reach < 1 else ""
        keys = f"{self.batch_keys:,} {kind} keys of {rows}{new}{reach}"
        return f"{self.batches:,} x {keys}; into {self.table}"


def schema() -> StructType:
    from pyspark.sql.types import (
        DoubleType,
        IntegerType,
        LongType,
        StringType,
        StructField,
        StructType,
        TimestampType,
    )

    return StructType(
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


def rows_sql(keys: str, *, sequence: int, size: str = str(ROWS_A_KEY)) -> str:
    """The rows of each key of a relation `k`, as many as `size` says."""
    return (
        f"SELECT k, CAST(line AS INTEGER) AS line, CAST({sequence} AS BIGINT) AS seq, "
        f"['new', 'open', 'done', 'void'][1 + CAST(hash(k, line) % 4 AS INTEGER)] AS status, "
        f"CAST(hash(k, line, {sequence}) % 1000000 AS DOUBLE) AS amount, "
        "TIMESTAMPTZ '2024-01-01 00:00:00+00' "
        "+ to_seconds(CAST(hash(line, k) % 30000000 AS BIGINT)) AS at, "
        f"printf('%016x', hash(k, line, {sequence}, 7)) AS token, "
        "CAST(hash(k) % 1000 AS INTEGER) AS kind "
        f"FROM (SELECT k, unnest(range({size})) AS line FROM ({keys}) AS keys)"
    )


def make_table(workload: Workload, folder: Path, *, vectors: bool) -> Path:
    """Write the table before the first batch as Delta, its files ordered by key."""
    parts = []
    for number in range(workload.files if workload.keys else 0):
        first = workload.keys * number // workload.files
        end = workload.keys * (number + 1) // workload.files
        keys = f"SELECT range AS k FROM range({first}, {end})"
        parts.append(rows_sql(keys, sequence=1, size=workload.size))
    return write_table(parts, folder, vectors=vectors)


def write_table(parts: Iterable[str], folder: Path, *, vectors: bool) -> Path:
    """Write the rows of some queries as Delta, each into a file of its own."""
    properties = {"delta.enableDeletionVectors": "true" if vectors else "false"}
    table = Table(folder)
    table.create(
        Metadata(
            id="00000000-0000-0000-0000-000000000000", schema=schema(), configuration=properties
        )
    )
    transaction = table.begin()
    with connect(memory_limit="2GB") as connection:
        for part in parts:
            files = write_data_files(
                connection, part, snapshot=transaction.snapshot, store=LocalStore()
            )
            for file in files:
                transaction.add(file)
    transaction.commit("WRITE")
    return folder


def make_batches(workload: Workload, folder: Path) -> list[Path]:
    """Write each batch as a Parquet file."""
    folder.mkdir(parents=True)
    paths = []
    with connect(memory_limit="4GB", temporary_folder=folder / "spill") as connection:
        for number in range(workload.batches):
            paths.append(folder / f"batch-{number:04}.parquet")
            sql = batch_sql(workload, number)
            connection.execute(f"COPY ({sql}) TO {literal(str(paths[-1]))} (FORMAT parquet)")
    return paths


def batch_sql(workload: Workload, number: int) -> str:
    keys = keys_sql(workload, number)
    if not workload.rough:
        return rows_sql(keys, sequence=number + 2, size=workload.size)
    # Of the keys a fifth has a sequence from before the first batch, and each hundredth of the
    # others is null. A twentieth as many of the batch before come again with its sequence.
    late = f"SELECT k FROM ({keys}) WHERE hash(k, {number}, 1) % 5 = 0"
    newer = (
        f"SELECT IF(hash(k, {number}, 2) % 100 = 0, NULL, k) AS k FROM ({keys}) "
        f"WHERE hash(k, {number}, 1) % 5 <> 0"
    )
    before = max(number - 1, 0)
    ties = (
        f"SELECT k FROM ({keys_sql(workload, before)}) "
        f"WHERE hash(k, {before}, 1) % 5 <> 0 AND hash(k, {before}, 4) % 20 = 0"
    )
    return " UNION ALL ".join(
        f"({rows_sql(part, sequence=sequence, size=workload.size)})"
        for part, sequence in ((newer, number + 2), (ties, before + 2), (late, 0))
    )


def keys_sql(workload: Workload, number: int) -> str:
    """The keys of a batch, each once."""
    count, keys = workload.batch_keys - workload.new_keys, max(workload.keys, 1)
    if not workload.keys:
        return f"SELECT range AS k FROM range({count})"
    if workload.clustered:
        first = number * 7_919 * count % max(keys - count, 1)
        return f"SELECT range AS k FROM range({first}, {first + count})"
    if workload.zipf:
        # The inverse of the distribution function of a power law with exponent 1.1.
        drawn = (
            f"SELECT CAST(floor(pow(1 - hash(range, {number}) / 18446744073709551616 "
            f"* (1 - pow({keys}, -0.1)), -10)) AS BIGINT) - 1 AS k FROM range({count})"
        )
        return f"SELECT DISTINCT least(k, {keys - 1}) AS k FROM ({drawn})"
    within = int(keys * workload.reach)
    old = f"SELECT range AS k FROM range({within}) ORDER BY hash(range, {number}) LIMIT {count}"
    if not workload.new_keys:
        return old
    first = keys + number * workload.new_keys
    return (
        f"(({old}) UNION ALL (SELECT range AS k FROM range({first}, {first + workload.new_keys})))"
    )
