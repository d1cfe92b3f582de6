"""What the state of an operator costs in several stores, in turn, on the same batches.

Run it with `--help`; `README.md` beside it says what is measured and why it is fair.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.stores import STORES

from millpond.delta import connect

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Workload:
    """Batches for one operator.

    Attributes:
        operator: The method of a store that is timed.
        base_rows: Are in the state before the clock starts.
        keys: How many there are to draw from.
    """

    operator: str
    batches: int
    rows: int
    keys: int
    base_rows: int = 0

    def scaled(self, scale: float) -> Workload:
        tiny = self.rows < 1000
        return replace(
            self,
            rows=self.rows if tiny else int(self.rows * scale),
            keys=int(self.keys * scale),
            base_rows=int(self.base_rows * scale),
        )


SUITES = {
    # Of 5 million draws from 3.2 million keys, about half come for the first time.
    "distinct": Workload("distinct", batches=50, rows=100_000, keys=3_200_000),
    "join": Workload("join", batches=50, rows=100_000, keys=2_500_000),
    "tiny": Workload("distinct", batches=50, rows=100, keys=10_000_000, base_rows=5_000_000),
}
BASE_BATCHES = 10


def main() -> int:
    arguments = parse_arguments()
    if arguments.worker:
        print(json.dumps(run(arguments.worker, SUITES[arguments.suite[0]], arguments.folder)))
        return 0
    with tempfile.TemporaryDirectory(prefix="millpond-bench-", dir=arguments.folder) as folder:
        for suite in arguments.suite or SUITES:
            workload = SUITES[suite].scaled(arguments.scale)
            batches = Path(folder) / suite
            make_batches(workload, batches)
            print(f"\n### {suite}: {workload}\n")
            print(
                "| store | batch 10, s | 30 | 50 | median | worst "
                "| CPU: 10 | 50 | median | worst | MB on disk | peak MB |"
            )
            print("|---|---|---|---|---|---|---|---|---|---|---|---|")
            expected = None
            for store in arguments.store or STORES:
                result = run_in_process(store, suite, batches)
                expected = expected or result["found"]
                if result["found"] != expected:
                    sys.exit(f"{store} found other rows: no figures are shown")
                report(store, result)
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", action="append", choices=SUITES, help="default: all")
    parser.add_argument("--store", action="append", choices=STORES, help="default: all")
    parser.add_argument(
        "--scale", type=float, default=0.1, help="part of the full size, 1 for all (default 0.1)"
    )
    parser.add_argument("--folder", type=Path, help="where state is kept; removed afterwards")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def make_batches(workload: Workload, folder: Path) -> None:
    """Write one Parquet file a batch, those of the base first; the same in every run."""
    folder.mkdir()
    sizes = [workload.rows] * workload.batches
    if workload.base_rows:
        sizes = [workload.base_rows // BASE_BATCHES] * BASE_BATCHES + sizes
    first = 0
    with connect() as connection:
        for number, rows in enumerate(sizes):
            drawn = f"hash(i) % {workload.keys}"
            if number < len(sizes) - workload.batches:
                drawn = "i"
            connection.execute(
                f"COPY (SELECT CAST({drawn} AS BIGINT) AS k, 'customer-' || md5(CAST({drawn} AS "
                f"VARCHAR)) AS t, i AS v FROM range({first}, {first + rows}) AS r (i)) "
                f"TO '{folder}/{number:03}.parquet' (FORMAT parquet)"
            )
            first += rows


def run_in_process(store: str, suite: str, batches: Path) -> dict[str, Any]:
    """Apply the batches in a new process, so that its peak memory is the store's own."""
    command = [sys.executable, __file__, "--worker", store, "--suite", suite]
    command += ["--folder", str(batches)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def run(store: str, workload: Workload, batches: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=batches.parent) as folder:
        state = STORES[store](Path(folder) / "state")
        apply = getattr(state, workload.operator)
        seconds: list[float] = []
        cpu_seconds: list[float] = []
        found = []
        for batch, rows in enumerate(sorted(batches.glob("*.parquet"))):
            start, cpu_start = time.perf_counter(), time.process_time()
            found.append(apply(batch, rows))
            seconds.append(time.perf_counter() - start)
            cpu_seconds.append(time.process_time() - cpu_start)
        files = [path for path in (Path(folder) / "state").rglob("*") if path.is_file()]
        return {
            "seconds": seconds[-workload.batches :],
            "cpu_seconds": cpu_seconds[-workload.batches :],
            "found": found,
            "disk_mb": sum(path.stat().st_size for path in files) / MEGABYTE,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE,
        }


def report(store: str, result: dict[str, Any]) -> None:
    seconds, cpu = result["seconds"], result["cpu_seconds"]
    shown = [seconds[number - 1] for number in (10, 30, 50)]
    shown += [statistics.median(seconds), max(seconds)]
    shown += [cpu[9], cpu[49], statistics.median(cpu), max(cpu)]
    cells = " | ".join(f"{value:.3f}" for value in shown)
    print(f"| {store} | {cells} | {result['disk_mb']:.0f} | {result['peak_mb']:.0f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
