"""The suites at their full size. `Workload` says what the words mean."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.workload import Workload


@dataclass(frozen=True)
class Suite:
    """A workload and the question that it answers.

    Attributes:
        peers: Names of the peers that it is for; all where empty.
    """

    title: str
    workload: Workload
    peers: tuple[str, ...] = ()


def _growing(millions: int, *, clustered: bool) -> Suite:
    """The same batches into a table of so many rows."""
    keys = millions * 50_000
    workload = Workload(keys=keys, files=millions, batches=6, batch_keys=5_000, clustered=clustered)
    kind = "clustered" if clustered else "random"
    return Suite(f"Growth, {kind} keys: {millions} million rows", workload, GROWTH)


GROWTH = ("millpond", "duckdb", "delta-rs-overwrite")
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
    "U3": Suite("Small commits", Workload(keys=50_000, files=1, batches=501, batch_keys=50)),
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
}
# What a run without `--suite` measures.
DEFAULT = ("U1", "U2", "U3", "U4", "U5", "R1", "R2", "L")
