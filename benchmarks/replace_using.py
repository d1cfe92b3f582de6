"""What replacing the rows of keys costs: millpond and its peers, in turn, on the same data.

Run it with `make bench` or with `--help`; `README.md` beside it says what is measured and why it is
fair.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# The first entry is this file's folder, whose modules must not be taken for others.
sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.environments import FOLDER, python_of
from benchmarks.measuring import Data, Steps, as_json, measure, pin_to_processors
from benchmarks.page import write_page
from benchmarks.peers import PEERS
from benchmarks.report import markdown
from benchmarks.suites import DEFAULT, GROUPS, SUITES, Suite


def main() -> int:
    given = parse_arguments()
    results: Path = given.results
    # So that ending this ends what it has started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if not given.page_only:
        pin_to_processors()
        results.mkdir(parents=True, exist_ok=True)
        load = os.getloadavg()[0]
        for name in chosen(given.suite or DEFAULT):
            found = run_suite(name, SUITES[name], given, load_before=load)
            (results / f"{name}.json").write_text(json.dumps(found, indent=1))
            print(markdown(found), flush=True)
    report = given.page or results / "report.md"
    write_page(report, results, pythons(given))
    print(f"Tables, plots and goals are in {report}")
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--suite",
        action="append",
        choices=[*GROUPS, *SUITES],
        help=f"default: {', '.join(DEFAULT)}",
    )
    parser.add_argument("--peer", action="append", choices=PEERS, help="default: all")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each peer (default 3)")
    parser.add_argument(
        "--scale", type=float, default=0.1, help="part of the full size, 1 for all (default 0.1)"
    )
    parser.add_argument(
        "--budget", type=float, default=300, help="seconds for a peer's batches (default 300)"
    )
    parser.add_argument("--batches", type=int, help="at most so many of a suite's")
    parser.add_argument(
        "--here",
        action="store_true",
        help="take tools from this environment as far as it has them, and install nothing",
    )
    parser.add_argument("--folder", type=Path, help="where tables are made; removed afterwards")
    parser.add_argument(
        "--results", type=Path, default=FOLDER / "results", help="where figures are kept as JSON"
    )
    parser.add_argument(
        "--page", type=Path, help="a page whose measured part is written anew from all results"
    )
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    return parser.parse_args()


def chosen(names: Iterable[str]) -> list[str]:
    """Suites, where a group stands for all of its suites."""
    return [suite for name in names for suite in GROUPS.get(name, (name,))]


def run_suite(
    name: str, suite: Suite, given: argparse.Namespace, *, load_before: float
) -> dict[str, Any]:
    """Measure the peers that can enter a suite, and say on what."""
    workload = suite.workload.scaled(given.scale)
    if given.batches:
        workload = replace(workload, batches=min(given.batches, workload.batches))
    peers = [peer for peer in given.peer or PEERS if enters(peer, name, suite)]
    print(f"\n{name}: {workload}", flush=True)
    with tempfile.TemporaryDirectory(prefix="millpond-bench-", dir=given.folder) as folder:
        data = Data.make(workload, Path(folder), compares_reads=suite.compares_reads)
        steps = Steps(pythons(given))
        outcomes = measure(data, peers, steps, rounds=given.rounds, budget_s=given.budget)
    return {
        "suite": name,
        "title": suite.title,
        "workload": str(workload),
        "into": workload.table,
        "batches": workload.batches,
        "rows_a_key": workload.rows_a_key,
        "batch_keys": workload.batch_keys,
        "scale": given.scale,
        "rounds": given.rounds,
        "date": datetime.now(tz=UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": machine(),
        "load_before": round(load_before, 1),
        "load_after": round(os.getloadavg()[0], 1),
        "peers": as_json(outcomes),
    }


def pythons(given: argparse.Namespace) -> Callable[[str], Path]:
    """Where the Python of an environment is, by its name."""
    return (lambda _: Path(sys.executable)) if given.here else python_of


def enters(peer: str, name: str, suite: Suite) -> bool:
    if suite.peers:
        return peer in suite.peers
    return not PEERS[peer].suites or name in PEERS[peer].suites


def machine() -> str:
    """What the figures were taken on, as far as the system says."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [li for li in info.read_text().splitlines() if li.startswith("model name")]
        processor = names[0].partition(":")[2].strip() if names else processor
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.release().split('-')[0]}"
    return (
        f"{processor}, {os.cpu_count()} processors, {memory:.0f} GiB, {system}, "
        f"Python {platform.python_version()}"
    )


if __name__ == "__main__":
    sys.exit(main())
