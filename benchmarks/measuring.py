"""One suite: its data, every peer in turn, each result checked before any figure of it is kept."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.environments import UnavailableError, first_line, python_of
from benchmarks.peer import THREADS, Peer
from benchmarks.peers import PEERS
from benchmarks.workload import VALID, Workload, make_batches, make_table, write_table

from benchmarks import oracle, processes

WORKER = Path(__file__).parent / "worker.py"
LIMITS = {
    "POLARS_MAX_THREADS": str(THREADS),
    "RAYON_NUM_THREADS": str(THREADS),
    "TOKIO_WORKER_THREADS": str(THREADS),
    "OMP_NUM_THREADS": str(THREADS),
    "TZ": "UTC",
}
POINTS = 11
OK, WRONG, FAILED = "ok", "wrong", "failed"


@dataclass
class Outcome:
    """What became of a peer in a suite. Figures of a run are there only if its result was right.

    Attributes:
        state: `ok`, `wrong` or `failed`.
        reason: Of the latter two, a line.
        seconds: For each round, the time of each batch after the first, which warms up.
        first_s: For each round, that of the first.
        start_s: For each round, from the start of the process until it is ready for a batch.
        peak_bytes: For each round, of the process tree.
        written_bytes: For each round, for all batches; `None` where the system does not say.
        grown_bytes: For each round, how much larger its folder is.
        alive_bytes: Its folder after it was vacuumed.
        scan_s: Reading the table once.
        fresh_scan_s: Reading the same rows in a Delta table that was written a moment ago; `None`
            where the suite does not ask for it, and for tables that are not Delta.
        point_s: Reading a key.
        batches: How many it was given; fewer than there are if its time ran out.
    """

    state: str = OK
    reason: str = ""
    seconds: list[list[float]] = field(default_factory=list)
    first_s: list[float] = field(default_factory=list)
    start_s: list[float] = field(default_factory=list)
    peak_bytes: list[int] = field(default_factory=list)
    written_bytes: list[int | None] = field(default_factory=list)
    grown_bytes: list[int] = field(default_factory=list)
    alive_bytes: int | None = None
    scan_s: float | None = None
    fresh_scan_s: float | None = None
    point_s: float | None = None
    batches: int = 0

    @classmethod
    def without_figures(cls, state: str, reason: str) -> Outcome:
        return cls(state=state, reason=reason)


class StepError(Exception):
    """A step of a peer failed; the text is its error's first line."""


@dataclass(frozen=True)
class Data:
    """The files of a workload: of the table before the first batch, and of the batches.

    Attributes:
        spared: Of a rough workload, the batches without the rows that are to be dropped.
        compares_reads: Whether readers of Delta tables read their rows in a fresh one, too.
    """

    workload: Workload
    folder: Path
    base: tuple[Path, ...]
    batches: tuple[Path, ...]
    spared: tuple[Path, ...]
    compares_reads: bool

    @classmethod
    def make(cls, workload: Workload, folder: Path, *, compares_reads: bool = False) -> Data:
        make_table(workload, folder / "base", vectors=False)
        batches = make_batches(workload, folder / "batches")
        return cls(
            workload,
            folder,
            base=_files_in_order(folder / "base"),
            batches=tuple(batches),
            spared=tuple(_valid_only(batches, folder / "valid")) if workload.rough else (),
            compares_reads=compares_reads,
        )

    def table(self, *, vectors: bool) -> Path:
        """The Delta table before the first batch."""
        folder = self.folder / ("base-vectors" if vectors else "base")
        if not folder.exists():
            make_table(self.workload, folder, vectors=vectors)
        return folder

    def expectation(self, peer: type[Peer]) -> str:
        return VALID if self.workload.rough and peer.knows_expectations else ""

    def deliveries(self, peer: type[Peer]) -> list[tuple[int, str]]:
        """Number and file of each batch, in the order in which they arrive."""
        files = self.batches if peer.knows_expectations or not self.spared else self.spared
        return [
            (number, str(file))
            for number, file in enumerate(files)
            for _ in range(2 if self.workload.is_sent_twice(number) else 1)
        ]


def measure(
    data: Data, peers: Sequence[str], steps: Steps, *, rounds: int, budget_s: float
) -> dict[str, Outcome]:
    """Run every peer once a round, in an order that moves on by one from round to round."""
    expected = cache(lambda count: oracle.expected(data.workload, data.base, data.batches[:count]))
    outcomes = {peer: Outcome() for peer in peers}
    prepared = {peer: _prepare(data, peer, steps, outcomes) for peer in peers}
    for number, peer in rotated(peers, rounds=rounds):
        if outcomes[peer].state != OK:
            continue
        one = OneRun(data, peer, prepared[peer], steps, budget_s=budget_s)
        try:
            one.run(outcomes[peer], expected, reads=number == 0)
        except (StepError, UnavailableError) as error:
            outcomes[peer] = Outcome.without_figures(FAILED, str(error))
        except WrongError as error:
            outcomes[peer] = Outcome.without_figures(WRONG, str(error))
        finally:
            shutil.rmtree(one.folder, ignore_errors=True)
        print(f"  round {number + 1}: {PEERS[peer].label}: {_said(outcomes[peer])}", flush=True)
    return outcomes


def rotated(peers: Sequence[str], *, rounds: int) -> Iterator[tuple[int, str]]:
    for number in range(rounds):
        first = number % len(peers)
        for peer in [*peers[first:], *peers[:first]]:
            yield number, peer


class WrongError(Exception):
    """A table that is not what it must be; the text says how it differs."""

    @classmethod
    def of(cls, found: oracle.Fingerprint, expected: oracle.Fingerprint) -> WrongError:
        if found[0] != expected[0]:
            return cls(f"{found[0]:,} rows, {expected[0]:,} expected")
        return cls(f"{found[0]:,} rows as expected, but not these")


def check(found: oracle.Fingerprint, expected: oracle.Fingerprint) -> None:
    """Raise `WrongError` unless both tables hold the same rows."""
    if found != expected:
        raise WrongError.of(found, expected)


class OneRun:
    """A peer's way through all batches, on a copy of what it prepared."""

    def __init__(
        self, data: Data, peer: str, prepared: Path, steps: Steps, *, budget_s: float
    ) -> None:
        self.data, self.peer, self.prepared = data, peer, prepared
        self.steps, self.budget_s = steps, budget_s
        self.folder = data.folder / "runs" / peer

    def run(self, outcome: Outcome, expected: Any, *, reads: bool) -> None:
        kind = PEERS[self.peer]
        _copy(self.prepared, self.folder, links=kind.vectors is not None)
        before = folder_bytes(self.folder)
        finished, result = self.steps.run(
            "batches",
            self.peer,
            self.folder,
            {"files": self.data.deliveries(kind), "budget_s": self.budget_s},
            expectation=self.data.expectation(kind),
            timeout_s=self.budget_s * 2 + 120,
        )
        grown = folder_bytes(self.folder) - before
        seconds = result["seconds"]
        export = self.folder.with_name(f"{self.peer}-export")
        try:
            reading = {"environment": kind.reading_environment}
            self.steps.run("export", self.peer, self.folder, {"target": str(export)}, **reading)
            rows = sorted(export.iterdir())
            check(oracle.found(rows), expected(len(seconds)))
            fresh = self._write_fresh(rows) if reads and self.data.compares_reads else None
        finally:
            shutil.rmtree(export, ignore_errors=True)
        # Only now is it known that the figures are those of the right work.
        outcome.batches = len(seconds)
        outcome.first_s.append(seconds[0])
        outcome.seconds.append(seconds[1:] or seconds)
        outcome.start_s.append(result["ready"] - finished.started)
        outcome.peak_bytes.append(max(finished.peak_bytes, result["peak"]))
        outcome.written_bytes.append(result["written"])
        outcome.grown_bytes.append(grown)
        if reads:
            keys = [key * 37 % max(self.data.workload.keys, 1) for key in range(POINTS)]
            order = {"keys": keys, "fresh": str(fresh) if fresh else None}
            _, times = self.steps.run("read", self.peer, self.folder, order, **reading)
            outcome.scan_s, outcome.point_s = times["scan"], times["point"]
            outcome.fresh_scan_s = times["fresh_scan"]
            self.steps.run(
                "vacuum", self.peer, self.folder, {}, environment=kind.vacuum_environment
            )
            outcome.alive_bytes = folder_bytes(alive_part(self.peer, self.folder))

    def _write_fresh(self, rows: Sequence[Path]) -> Path | None:
        """Write the rows that a Delta table holds into another one."""
        if PEERS[self.peer].vectors is None:
            return None
        folder = self.folder.with_name(f"{self.peer}-fresh")
        shutil.rmtree(folder, ignore_errors=True)
        return write_table([f"FROM {oracle.parquet(rows)}"], folder, vectors=False)


def alive_part(peer: str, folder: Path) -> Path:
    """Of a peer's folder, what is its table: a Delta table has its own, with its log."""
    return PEERS[peer](folder).table if PEERS[peer].vectors is not None else folder


@dataclass(frozen=True)
class Steps:
    """Runs steps of peers.

    Attributes:
        python_of: The Python of an environment of locked requirements, by its name.
    """

    python_of: Callable[[str], Path] = python_of

    def run(
        self,
        name: str,
        peer: str,
        folder: Path,
        order: dict[str, Any],
        *,
        environment: str | None = None,
        expectation: str = "",
        timeout_s: float = 1800.0,
    ) -> tuple[processes.Finished, Any]:
        """Run a step in a process of its own.

        Raises:
            StepError: It failed.
            UnavailableError: Its environment can't be had.
        """
        python = self.python_of(PEERS[peer].environment if environment is None else environment)
        result = folder.with_name(f"{folder.name}-{name}.json")
        order_file = folder.with_name(f"{folder.name}-{name}-order.json")
        order_file.write_text(json.dumps(order))
        words = ["--folder", str(folder), "--order", str(order_file), "--result", str(result)]
        words += ["--expectation", expectation]
        finished = processes.run(
            [str(python), str(WORKER), name, peer, *words],
            environment=LIMITS,
            timeout_s=timeout_s,
            log=folder.with_name(f"{folder.name}-{name}.log"),
        )
        if finished.is_late:
            raise StepError(f"{name} was ended after {timeout_s:.0f} s")
        if finished.code:
            raise StepError(f"{name}: {first_line(finished.errors)}"[:300])
        return finished, json.loads(result.read_text())


def _prepare(data: Data, peer: str, steps: Steps, outcomes: dict[str, Outcome]) -> Path:
    kind = PEERS[peer]
    # Where it will run, too: some tools keep absolute paths.
    folder = data.folder / "runs" / peer
    folder.mkdir(parents=True)
    try:
        if kind.vectors is not None and hasattr(kind, "table"):
            table = kind(folder).table
            if table == folder / "table":
                _copy(data.table(vectors=kind.vectors), table, links=True)
        files = [str(file) for file in data.base]
        steps.run("prepare", peer, folder, {"files": files}, expectation=data.expectation(kind))
    except (StepError, UnavailableError) as error:
        outcomes[peer] = Outcome.without_figures(FAILED, str(error))
        print(f"  {kind.label}: {_said(outcomes[peer])}", flush=True)
    prepared = data.folder / "prepared" / peer
    prepared.parent.mkdir(exist_ok=True)
    return folder.rename(prepared)


def _copy(source: Path, target: Path, *, links: bool) -> None:
    """Copy a folder; data files of Delta tables are never changed, so they may be links."""

    def copy(old: str, new: str) -> None:
        if links and old.endswith(".parquet"):
            try:
                os.link(old, new)
            except OSError:
                shutil.copyfile(old, new)
        else:
            shutil.copyfile(old, new)

    shutil.copytree(source, target, copy_function=copy, symlinks=True)


def _files_in_order(table: Path) -> tuple[Path, ...]:
    from millpond.delta import Table

    files = Table(table).snapshot().files.values()
    ordered = sorted(files, key=lambda file: json.loads(file.stats_text or "")["minValues"]["k"])
    return tuple(table / file.path for file in ordered)


def _valid_only(batches: Sequence[Path], folder: Path) -> Iterator[Path]:
    """The batches without the rows that the expectation drops, for tools that know none."""
    folder.mkdir()
    with oracle.connection() as duck:
        for batch in batches:
            target = folder / batch.name
            sql = f"SELECT * FROM {oracle.parquet([batch])} WHERE {VALID}"
            duck.execute(f"COPY ({sql}) TO '{target}' (FORMAT parquet)")
            yield target


def folder_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue  # A tool that ended may have left something that cleans up.
    return total


def _said(outcome: Outcome) -> str:
    if outcome.state != OK:
        return f"{outcome.state}: {outcome.reason}"
    return f"{statistics.median(outcome.seconds[-1]):.3f} s a batch"


def as_json(outcomes: dict[str, Outcome]) -> dict[str, Any]:
    return {peer: asdict(outcome) for peer, outcome in outcomes.items()}


def pin_to_processors() -> None:
    """Let this process and all that it starts see as many processors as a tool may use."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
