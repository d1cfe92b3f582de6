"""The suites at their full size. `Workload` says what the words mean."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.workload import Workload


@dataclass(frozen=True)
class Suite:
    """A workload and the question that it answers.

    Attributes:
        peers: Names of the peers that it is for; all where empty.
        compares_reads: Whether Delta tables are read beside fresh ones of the same rows.
    """

    title: str
    workload: Workload
    peers: tuple[str, ...] = ()
    compares_reads: bool = False


def _growing(millions: int, *, clustered: bool) -> Suite:
    """The same batches into a table of so many rows."""
    keys = millions * 50_000
    workload = Workload(keys=keys, files=millions, batches=6, batch_keys=5_000, clustered=clustered)
    kind = "clustered" if clustered else "random"
    return Suite(f"Growth, {kind} keys: {millions} million rows", workload, GROWTH)


def _large(percent: int) -> Suite:
    """As many rows as the line items of TPC-H at factor 10, in as many orders."""
    workload = Workload(
        keys=15_000_000, files=60, batches=5, batch_keys=150_000 * percent, rows_a_key=4
    )
    return Suite(f"Large, {percent}% of the keys", workload)


def _cell(*, files: float, rows: float, added: float) -> Suite:
    """One batch into a table of 20 files, after one that warms up.

    Args:
        files: The part of the files that has the keys of a batch.
        rows: The part of the rows of these files that a batch replaces.
        added: Rows of keys that the table does not have, as a part of the rows of these files.
    """
    keys = 500_000
    new = round(keys * files * added)
    workload = Workload(
        keys=keys,
        files=20,
        batches=2,
        batch_keys=round(keys * files * rows) + new,
        new_keys=new,
        reach=files,
    )
    title = f"{files:.0%} of the files, {rows:.0%} of their rows, {added:.1%} more rows"
    return Suite(title, workload, DELTA_WRITERS)


GROWTH = ("millpond", "duckdb", "delta-rs-overwrite")
DELTA_WRITERS = (
    "millpond",
    "delta-rs-overwrite",
    "delta-rs-merge",
    "sail",
    "polars",
    "spark-merge",
    "spark-replace-on",
)
# Of tables that grow, in millions of rows.
SIZES = (1, 10, 100, 300)

SUITES = {
    "U1": Suite(
        "In order, clustered keys",
        Workload(keys=500_000, files=16, batches=21, batch_keys=5_000, clustered=True),
    ),
    "U2": Suite(
        "In order, random keys", Workload(keys=500_000, files=16, batches=21, batch_keys=5_000)
    ),
    "U3": Suite(
        "Small commits",
        Workload(keys=50_000, files=1, batches=501, batch_keys=50),
        compares_reads=True,
    ),
    "U4": Suite(
        "Large groups",
        Workload(keys=1_000, files=16, batches=21, batch_keys=5, rows_a_key=10_000),
    ),
    "U5": Suite(
        "One row a key, a fifth of them new",
        Workload(
            keys=10_000_000,
            files=16,
            batches=21,
            batch_keys=100_000,
            rows_a_key=1,
            new_keys=20_000,
        ),
    ),
    "U6": _large(1),
    "U6-5": _large(5),
    "R1": Suite(
        "A stream with rough edges",
        Workload(keys=500_000, files=16, batches=51, batch_keys=5_000, clustered=True, rough=True),
    ),
    "R2": Suite(
        "The same, over skewed keys",
        Workload(
            keys=17_000, files=16, batches=51, batch_keys=170, rows_a_key=0, rough=True, zipf=True
        ),
    ),
    **{f"G{size}": _growing(size, clustered=True) for size in SIZES},
    **{f"GR{size}": _growing(size, clustered=False) for size in SIZES},
    "L": Suite(
        "First load",
        Workload(keys=0, files=0, batches=1, batch_keys=2_500_000, clustered=True),
        ("millpond", "millpond-pipeline", "duckdb-copy"),
    ),
    "S": Suite(
        "From start to exit: two tables of a thousand rows",
        Workload(keys=0, files=0, batches=1, batch_keys=50, clustered=True),
        ("millpond-run", "spark-pipelines-run"),
    ),
}
# By what Delta Lake's own benchmarks vary for MERGE: files, their rows, and rows that are new.
MATRIX = {
    f"D-{files:g}-{rows:g}-{added:g}": _cell(files=files, rows=rows, added=added)
    for files in (0.05, 0.5, 1)
    for rows in (0, 0.01, 0.1, 0.5, 1)
    for added in (0, 0.001, 0.1)
    if rows or added
}
SUITES |= MATRIX
# Names that stand for several suites.
GROUPS = {"D": (*MATRIX,)}
# What a run without `--suite` measures.
DEFAULT = ("U1", "U2", "U3", "U4", "U5", "R1", "R2", "L", "S")
