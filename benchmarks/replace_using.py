"""What a REPLACE USING batch costs: millpond's flow and delta-rs, in turn, on the same data.

Run it with `--help`; `README.md` beside it says what is measured and why it is fair.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.engines import ENGINES, run_batches
from benchmarks.workload import SUITES, Workload, expected_digest, make_batches, make_table

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Run:
    """One engine's way through all batches of a workload, in a process of its own."""

    seconds: list[float]
    peak_mb: float
    written_mb: float
    digest: list[Any]


def main() -> int:
    arguments = parse_arguments()
    if arguments.worker:
        print(json.dumps(run_batches(arguments.worker, arguments.table, arguments.batch)))
        return 0
    with tempfile.TemporaryDirectory(prefix="millpond-bench-", dir=arguments.folder) as folder:
        for name in arguments.suite or SUITES:
            workload = SUITES[name].scaled(arguments.scale)
            report(name, workload, measure(workload, Path(folder) / name, arguments))
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", action="append", choices=SUITES, help="default: all")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="default: all")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each engine (default 1)")
    parser.add_argument(
        "--scale", type=float, default=0.1, help="part of the full size, 1 for all (default 0.1)"
    )
    parser.add_argument("--folder", type=Path, help="where tables are made; removed afterwards")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--table", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--batch", type=Path, action="append", help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(
    workload: Workload, folder: Path, arguments: argparse.Namespace
) -> dict[str, list[Run]]:
    """Run every engine as often as asked for, and check what each one made of the table."""
    engines = arguments.engine or list(ENGINES)
    batches = make_batches(workload, folder / "batches")
    expected = expected_digest(workload, batches)
    bases = {
        vectors: make_table(workload, folder / f"base-{vectors}", vectors=vectors)
        for vectors in {ENGINES[engine].vectors for engine in engines}
    }
    runs: dict[str, list[Run]] = {engine: [] for engine in engines}
    for engine in rotated(engines, rounds=arguments.rounds):
        table = folder / "table"
        shutil.copytree(bases[ENGINES[engine].vectors], table, copy_function=os.link)
        run = run_in_process(engine, table, batches)
        shutil.rmtree(table)
        if run.digest != expected:
            sys.exit(f"{engine} gives {run.digest}, expected {expected}: no figures are shown")
        runs[engine].append(run)
    shutil.rmtree(folder)
    return runs


def rotated(engines: list[str], *, rounds: int) -> Iterator[str]:
    """Each engine once a round, in an order that moves on by one from round to round."""
    for number in range(rounds):
        first = number % len(engines)
        yield from engines[first:] + engines[:first]


def run_in_process(engine: str, table: Path, batches: list[Path]) -> Run:
    """Apply the batches in a new process, so that its peak memory is the engine's own."""
    before = folder_size(table)
    command = [sys.executable, __file__, "--worker", engine, "--table", str(table)]
    for batch in batches:
        command += ["--batch", str(batch)]
    result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return Run(
        seconds=result["seconds"],
        peak_mb=result["peak_mb"],
        written_mb=(folder_size(table) - before) / MEGABYTE,
        digest=run_worker_digest(table),
    )


def run_worker_digest(table: Path) -> list[Any]:
    command = [sys.executable, __file__, "--worker", "digest", "--table", str(table)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def folder_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def report(name: str, workload: Workload, runs: dict[str, list[Run]]) -> None:
    """Print a Markdown table. Ratios are to the first engine."""
    print(f"\n### {name}: {workload}\n")
    print("| engine | s a batch, median (min to max) | ratio | peak MB | MB written |")
    print("|---|---|---|---|---|")
    own = median(runs[next(iter(runs))], lambda run: statistics.median(run.seconds))
    for engine, found in runs.items():
        middle = median(found, lambda run: statistics.median(run.seconds))
        spread = [seconds for run in found for seconds in run.seconds]
        print(
            f"| {engine} | {middle:.3f} ({min(spread):.3f} to {max(spread):.3f}) "
            f"| {middle / own:.1f} | {median(found, lambda run: run.peak_mb):.0f} "
            f"| {median(found, lambda run: run.written_mb):.1f} |"
        )


def median(runs: list[Run], value: Callable[[Run], float]) -> float:
    return statistics.median(map(value, runs))


if __name__ == "__main__":
    sys.exit(main())
