"""What the project wants to reach, each a ratio within one run, and whether a run reached it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.peers import PEERS
from benchmarks.report import middle, peak_bytes, written_bytes

Results = dict[str, dict[str, Any]]
# Those that bring a Delta table from one state to the next without one between them.
SINGLE_COMMIT = ("delta-rs-overwrite", "polars", "spark-replace-on")
GIBIBYTE = 2**30


@dataclass(frozen=True)
class Goal:
    """One line of the table.

    Attributes:
        measure: The figure and the words for it; `None` where a suite or a peer was not measured.
    """

    suite: str
    text: str
    limit: float
    measure: Callable[[Results], float | None]
    form: str = "{:.2f}"


def best_time(suite: str, peers: Iterable[str]) -> Callable[[Results], float | None]:
    """millpond's time over that of the quickest of some peers."""
    return _over_quickest(suite, peers, middle)


def written_of_quickest(suite: str, peers: Iterable[str]) -> Callable[[Results], float | None]:
    """What millpond writes over what the quickest of some peers does."""
    return _over_quickest(suite, peers, lambda outcome: written_bytes(outcome) or 0.0)


def _over_quickest(
    suite: str, peers: Iterable[str], value: Callable[[dict[str, Any]], float]
) -> Callable[[Results], float | None]:
    def measure(results: Results) -> float | None:
        own = _right(results, suite, "millpond")
        others = [one for peer in peers if (one := _right(results, suite, peer)) is not None]
        if own is None or not others:
            return None
        theirs = value(min(others, key=middle))
        return value(own) / theirs if theirs else None

    return measure


def later_over_sooner(suite: str, peer: str) -> Callable[[Results], float | None]:
    """Time of the last ten batches, where all were done, over that of the fifth to fifteenth."""

    def measure(results: Results) -> float | None:
        own = _right(results, suite, peer)
        if own is None or own["batches"] < results[suite]["batches"]:
            return None
        late = [second for one in own["seconds"] for second in one[-10:]]
        soon = [second for one in own["seconds"] for second in one[4:15]]
        return statistics.median(late) / statistics.median(soon)

    return measure


def between(suite: str, other: str, peer: str = "millpond") -> Callable[[Results], float | None]:
    """A peer's time for a row in one suite over that in another."""

    def measure(results: Results) -> float | None:
        first, second = _right(results, suite, peer), _right(results, other, peer)
        if first is None or second is None:
            return None
        if results[suite]["scale"] != results[other]["scale"]:
            return None
        rows = results[suite]["batch_keys"] / results[other]["batch_keys"]
        return middle(first) / middle(second) / rows

    return measure


def read_over_fresh(suite: str, peer: str) -> Callable[[Results], float | None]:
    """A full read over that of the same rows in a table that was written a moment ago."""

    def measure(results: Results) -> float | None:
        own = _right(results, suite, peer)
        if own is None or own.get("fresh_scan_s") is None:
            return None
        if own["batches"] < results[suite]["batches"]:
            return None
        return float(own["scan_s"] / own["fresh_scan_s"])

    return measure


def seconds(suite: str, peer: str) -> Callable[[Results], float | None]:
    def measure(results: Results) -> float | None:
        own = _right(results, suite, peer)
        return None if own is None else middle(own)

    return measure


def peak(suite: str) -> Callable[[Results], float | None]:
    def measure(results: Results) -> float | None:
        own = _right(results, suite, "millpond")
        return None if own is None else peak_bytes(own) / GIBIBYTE

    return measure


def _right(results: Results, suite: str, peer: str) -> dict[str, Any] | None:
    outcome = results.get(suite, {}).get("peers", {}).get(peer)
    return outcome if outcome is not None and outcome["state"] == "ok" else None


GOALS = (
    Goal(
        "U2", "time, of the best Delta peer with one commit", 1 / 10, best_time("U2", SINGLE_COMMIT)
    ),
    Goal("U2", "time, of DuckDB's own storage", 2.5, best_time("U2", ["duckdb"])),
    Goal(
        "U2",
        "bytes written, of the best Delta peer with one commit",
        1 / 20,
        written_of_quickest("U2", SINGLE_COMMIT),
    ),
    Goal(
        "U1", "time, of the best Delta peer with one commit", 1 / 6, best_time("U1", SINGLE_COMMIT)
    ),
    Goal("U1", "time, of DuckDB's own storage", 2.0, best_time("U1", ["duckdb"])),
    Goal(
        "U3",
        "time of a commit, of delta-rs",
        1 / 8,
        best_time("U3", ["delta-rs-overwrite", "delta-rs-merge"]),
    ),
    Goal(
        "U3",
        "the last ten commits, of the tenth and those around it",
        1.3,
        later_over_sooner("U3", "millpond"),
    ),
    Goal(
        "U3",
        "the same for whole updates of a pipeline",
        1.3,
        later_over_sooner("U3", "millpond-pipeline"),
    ),
    *(
        Goal(
            "U3",
            f"a full read after all commits, of that of a fresh table: {PEERS[peer].label}",
            1.3,
            read_over_fresh("U3", peer),
        )
        for peer in ("millpond", "millpond-pipeline")
    ),
    Goal("R1", "time, of the same stream in order (U1)", 1.3, between("R1", "U1")),
    Goal(
        "L",
        "first load: time, of DuckDB copying the rows to Parquet",
        2.0,
        best_time("L", ["duckdb-copy"]),
    ),
    Goal("L", "first load: peak memory, GiB", 2.0, peak("L")),
    Goal(
        "G100",
        "time into 100 million rows, of that into 10 million, clustered keys",
        1.3,
        between("G100", "G10"),
    ),
    Goal(
        "S",
        "a whole `millpond run` of two tables and a thousand rows, s",
        1.5,
        seconds("S", "millpond-run"),
    ),
)


def goal_table(results: Results) -> str:
    """Met, missed, or not measured: never left out."""
    lines = ["| suite | what | at most | measured | |", "|---|---|---:|---:|---|"]
    return "\n".join([*lines, *_rows(results)])


def _rows(results: Results) -> Iterator[str]:
    for goal in GOALS:
        value = goal.measure(results)
        if value is None:
            found, word = "", "not measured"
        else:
            found, word = f"{value:.3f}", "met" if value <= goal.limit else "**missed**"
        yield f"| {goal.suite} | {goal.text} | {goal.limit:.3g} | {found} | {word} |"
