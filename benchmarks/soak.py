"""Thousands of small updates of one pipeline: what they cost, and what a reader of its tables pays.

A table that takes rows and a REPLACE USING table follow one source, to which rows of some keys are
added between the updates. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from millpond.delta import Metadata, Table, connect, live_rows_sql, write_data_files
from millpond.events import Event
from millpond.maintenance import RowOrder, Upkeep
from millpond.names import TableName
from millpond.runner import Project, UpdateResult, run_update

KEYS = 50_000
ROWS_OF_KEY = 20
KEYS_OF_UPDATE = 50
SAMPLES = (10, 50, 100, 250, 500, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500, 5000)
SCHEMA = StructType(
    [
        StructField("k", LongType()),
        StructField("line", LongType()),
        StructField("seq", LongType()),
        StructField("amount", DoubleType()),
        StructField("note", StringType()),
    ]
)
SPEC = """\
name: soak
storage: storage
catalog: main
schema: soak
libraries:
  - glob:
      include: transformations/**
"""
PIPELINE = """\
CREATE STREAMING TABLE added TBLPROPERTIES ({properties})
AS SELECT * FROM STREAM landing WHERE line >= 0;

CREATE STREAMING TABLE current (CONSTRAINT positive EXPECT (amount >= 0))
TBLPROPERTIES ({properties})
FLOW REPLACE USING (k) SEQUENCE BY seq BY NAME
SELECT k, line, seq, amount, concat('note ', note) AS note FROM STREAM landing;
"""
TABLES = ("added", "current")


@dataclass
class Soak:
    """A pipeline folder, and the source that feeds it."""

    root: Path
    properties: str
    batches: bool
    random: random.Random = field(default_factory=lambda: random.Random(7))
    sequence: int = 0

    def __post_init__(self) -> None:
        (self.root / "transformations").mkdir(parents=True)
        (self.root / "spark-pipeline.yml").write_text(SPEC)
        text = PIPELINE.format(properties=self.properties)
        (self.root / "transformations" / "tables.sql").write_text(text)
        self.project = Project.open(
            self.root / "spark-pipeline.yml",
            conf={"millpond.maxFilesPerTrigger": "1"} if self.batches else None,
        )
        self.landing = Table(self.path("landing"))
        self.landing.create(Metadata("5f0c3f6e-0000-4000-8000-000000000000", SCHEMA))
        # The source's own program keeps it small, too, so that its size is not what is measured.
        self.producer = Upkeep(self.landing, RowOrder(), marker=self.root / "landing.json")

    def path(self, table: str) -> Path:
        return self.project.layout.table(TableName("main", "soak", table))

    def send(self, keys: Iterable[int]) -> None:
        """Add the rows of some keys to the source, with a new sequence."""
        self.sequence += 1
        listed = ", ".join(f"({key})" for key in keys)
        rows = (
            f"SELECT key AS k, line, {self.sequence} AS seq, "
            f"(hash(key, line, {self.sequence}) % 100000) / 7.0 AS amount, "
            f"left(md5(concat(key, line, {self.sequence})), 16) AS note "
            f"FROM (VALUES {listed}) AS v(key), range({ROWS_OF_KEY}) AS r(line)"
        )
        transaction = self.landing.begin()
        with connect() as connection:
            snapshot, store = transaction.snapshot, self.landing.store
            for file in write_data_files(connection, rows, snapshot=snapshot, store=store):
                transaction.add(file)
        transaction.commit("WRITE")
        if not self.batches:
            self.producer.after_batch()

    def send_some(self) -> None:
        self.send(self.random.sample(range(KEYS), KEYS_OF_UPDATE))

    def check(self) -> None:
        """Compare both tables with the closed form over everything that was sent."""
        with connect() as connection:
            sent = rows_sql(connection, self.landing)
            newest = (
                f"SELECT k, line, seq, amount, concat('note ', note) AS note FROM ({sent}) "
                "QUALIFY seq = max(seq) OVER (PARTITION BY k)"
            )
            for table, expected in (("added", sent), ("current", newest)):
                found = rows_sql(connection, Table(self.path(table)))
                columns = "k, line, seq, amount, note"
                digests = [
                    connection.execute(
                        f"SELECT count(*), sum(hash({columns})) FROM ({sql})"
                    ).fetchall()
                    for sql in (expected, found)
                ]
                if digests[0] != digests[1]:
                    sys.exit(f"the table {table} is wrong: {digests}")


def rows_sql(connection: duckdb.DuckDBPyConnection, table: Table) -> str:
    snapshot = table.snapshot()
    return live_rows_sql(connection, snapshot, snapshot.files.values())


@dataclass(frozen=True)
class Sample:
    """How things are after some updates."""

    updates: int
    update_s: float
    rss_mb: float
    handles: int
    threads: int
    files: int
    live_mb: float
    disk_mb: float
    log_files: int
    listing_ms: float
    read_s: float
    fresh_s: float

    HEADINGS = (
        "updates | s an update | RSS MB | handles | threads | files | live MB | on disk MB | "
        "log files | list ms | read ms | fresh ms | ratio"
    )

    def line(self) -> str:
        ratio = self.read_s / self.fresh_s
        return (
            f"| {self.updates} | {self.update_s:.3f} | {self.rss_mb:.0f} | {self.handles} | "
            f"{self.threads} | {self.files} | {self.live_mb:.1f} | {self.disk_mb:.1f} | "
            f"{self.log_files} | {self.listing_ms:.1f} | {self.read_s * 1000:.0f} | "
            f"{self.fresh_s * 1000:.0f} | {ratio:.2f} |"
        )


def sample(soak: Soak, updates: int, update_s: float, *, rss_mb: float | None = None) -> Sample:
    if rss_mb is None:
        gc.collect()
        rss_mb = _rss_mb()
    snapshots = [Table(soak.path(table)).snapshot() for table in TABLES]
    files = [file for snapshot in snapshots for file in snapshot.files.values()]
    begun = time.perf_counter()
    log_files = sum(_count(soak.path(table) / "_delta_log") for table in TABLES)
    listing_ms = (time.perf_counter() - begun) * 1000
    read_s, fresh_s = _read_times(soak)
    return Sample(
        updates,
        update_s,
        rss_mb,
        _count("/proc/self/fd"),
        _count("/proc/self/task"),
        len(files),
        sum(file.size_bytes for file in files) / 1e6,
        sum(map(_folder_bytes, map(soak.path, TABLES))) / 1e6,
        log_files,
        listing_ms,
        read_s,
        fresh_s,
    )


def _rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def _count(folder: Path | str) -> int:
    return len(list(Path(folder).iterdir()))


def _folder_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


READ = """
import sys, time
from deltalake import DeltaTable, QueryBuilder
import pyarrow as pa
times = {path: [] for path in sys.argv[1:]}
for _ in range(7):
    for path in times:
        begun = time.perf_counter()
        query = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t")
        pa.table(query)
        times[path].append(time.perf_counter() - begun)
print(*(min(found[1:]) for found in times.values()))
"""


def _read_times(soak: Soak) -> tuple[float, float]:
    """What a reader pays for both tables, and for the same rows in tables written just now."""
    read = [0.0, 0.0]
    for table in TABLES:
        with tempfile.TemporaryDirectory(dir=soak.root) as folder:
            fresh = Table(Path(folder) / "fresh")
            fresh.create(Metadata("fresh", Table(soak.path(table)).snapshot().metadata.schema))
            transaction = fresh.begin()
            with connect() as connection:
                for file in write_data_files(
                    connection,
                    rows_sql(connection, Table(soak.path(table))),
                    snapshot=transaction.snapshot,
                    store=fresh.store,
                ):
                    transaction.add(file)
            transaction.commit("WRITE")
            # In a process of its own: what the reader keeps is not ours.
            command = [sys.executable, "-c", READ, str(soak.path(table)), str(fresh.path)]
            found = subprocess.run(command, capture_output=True, text=True, check=True)
            for number, seconds in enumerate(map(float, found.stdout.split())):
                read[number] += seconds
    return read[0], read[1]


def updates_in_one_process(soak: Soak, count: int) -> Iterator[Sample]:
    times: list[float] = []
    for number in range(1, count + 1):
        soak.send_some()
        times.append(_timed_update(soak))
        if number in SAMPLES or number == count:
            yield sample(soak, number, statistics.median(times[-10:]))


def updates_as_processes(soak: Soak, count: int) -> Iterator[Sample]:
    times: list[float] = []
    command = [Path(sys.executable).with_name("millpond"), "run"]
    for number in range(1, count + 1):
        soak.send_some()
        begun = time.perf_counter()
        subprocess.run(command, cwd=soak.root, check=True, capture_output=True)
        times.append(time.perf_counter() - begun)
        if number in SAMPLES or number == count:
            peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
            yield sample(soak, number, statistics.median(times[-10:]), rss_mb=peak_mb)


def batches_of_one_update(soak: Soak, count: int) -> Iterator[Sample]:
    """One update with a batch for each commit of the source; both flows run side by side."""
    for _ in range(count):
        soak.send_some()
    found: list[Sample] = []
    ends: list[float] = [time.perf_counter()]

    def listen(event: Event) -> None:
        if (
            getattr(event.origin, "batch_id", None) is None
            or event.origin.flow_name[-7:] != "current"
        ):
            return
        ends.append(time.perf_counter())
        number = len(ends) - 1
        if number in SAMPLES or number == count:
            steps = [later - sooner for sooner, later in zip(ends[-11:], ends[-10:], strict=False)]
            found.append(sample(soak, number, statistics.median(steps)))
            ends[-1] = time.perf_counter()

    result = run_update(soak.project, listeners=[listen])
    _check_state(result)
    yield from found


def _timed_update(soak: Soak) -> float:
    begun = time.perf_counter()
    result = run_update(soak.project)
    _check_state(result)
    return time.perf_counter() - begun


def _check_state(result: UpdateResult) -> None:
    if result.state.value != "COMPLETED":
        sys.exit(f"an update ended as {result.state}: {result.flows} {result.problems}")


VARIANTS = {
    "updates": updates_in_one_process,
    "processes": updates_as_processes,
    "batches": batches_of_one_update,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--variant", choices=list(VARIANTS), default="updates")
    parser.add_argument(
        "--property",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="A property of both tables, as delta.deletedFileRetentionDuration=interval 1 minute.",
    )
    parser.add_argument("--folder", type=Path, help="Where to work; left as it is at the end.")
    given = parser.parse_args()
    pairs = (text.partition("=") for text in ["quality=soak", *given.property])
    properties = ", ".join(f"'{key}' = '{value}'" for key, _, value in pairs)
    root = given.folder or Path(tempfile.mkdtemp(prefix="millpond-soak-"))
    try:
        soak = Soak(root / "pipeline", properties, batches=given.variant == "batches")
        soak.send(range(KEYS))
        if given.variant != "batches":
            _timed_update(soak)
        print(f"| {Sample.HEADINGS} |", flush=True)
        print("|" + "---|" * len(Sample.HEADINGS.split("|")), flush=True)
        for found in VARIANTS[given.variant](soak, given.updates):
            print(found.line(), flush=True)
        soak.check()
        print("Both tables hold what they should.")
    finally:
        if given.folder is None:
            shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
