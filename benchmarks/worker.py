"""One step of one peer, in a process of the peer's own environment. Prints what it took as JSON.

Needs nothing but the standard library, beside what the peer needs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

# The first entry is this file's folder, whose modules must not be taken for a tool's.
sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.peer import Peer
from benchmarks.peers import PEERS
from benchmarks.processes import written_bytes
from benchmarks.reading import DeltaReader


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("peer")
    parser.add_argument("--folder", type=Path, required=True, help="of the peer")
    parser.add_argument("--expectation", default="", help="which rows to keep, in SQL")
    parser.add_argument("--result", type=Path, required=True, help="a file for the JSON")
    parser.add_argument("--order", type=Path, required=True, help="a file with what it needs")
    given = parser.parse_args()
    peer = PEERS[given.peer](given.folder, given.expectation)
    order = json.loads(given.order.read_text())
    given.result.write_text(json.dumps(STEPS[given.step](peer, **order)))
    return 0


def prepare(peer: Peer, *, files: list[str]) -> Any:
    peer.prepare([Path(file) for file in files])
    return {}


def batches(peer: Peer, *, files: list[list[Any]], budget_s: float) -> Any:
    """Apply batches until there are no more, or the time is up.

    Args:
        peer: To which.
        files: Number and file of each; a number that comes again is the same batch, sent again.
        budget_s: Seconds after which no further batch begins.
    """
    peer.open()
    ready = time.time()
    written = written_bytes(os.getpid())
    seconds: list[float] = []
    last = None
    for number, file in files:
        staged = peer.stage(number, Path(file))
        begun = time.perf_counter()
        peer.apply(number, staged)
        took = time.perf_counter() - begun
        if number == last:
            seconds[-1] += took
        else:
            seconds.append(took)
        last = number
        if time.time() - ready > budget_s:
            break
    # What a tool started may be gone after it is closed, and closing it may write.
    before = written_bytes(os.getpid()) or 0
    peer.close()
    after = written_bytes(os.getpid())
    return {
        "seconds": seconds,
        "ready": ready,
        "written": None if written is None or after is None else max(before, after) - written,
        "peak": own_peak(),
    }


def read(peer: Peer, *, keys: list[int], fresh: str | None) -> Any:
    """Read the whole table, and some keys, as often as it takes to know.

    Args:
        peer: Whose.
        keys: Which.
        fresh: A Delta table with the same rows; if given, both are read in turn.
    """
    reader = peer.reader()
    reader.open()
    scans, fresh_scans = [], []
    for _ in range(8 if fresh else 4):
        scans.append(_timed(reader.scan))
        if fresh:
            fresh_scans.append(_timed(DeltaReader(Path(fresh)).scan))
    points = [_timed(partial(reader.point, key)) for key in keys]
    reader.close()
    return {
        "scan": statistics.median(scans[1:]),
        "fresh_scan": statistics.median(fresh_scans[1:]) if fresh else None,
        "point": statistics.median(points[1:]),
    }


def _timed(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def export(peer: Peer, *, target: str) -> Any:
    Path(target).mkdir()
    reader = peer.reader()
    reader.open()
    reader.export(Path(target))
    reader.close()
    return {}


def vacuum(peer: Peer) -> Any:
    peer.vacuum()
    return {}


STEPS = {
    "prepare": prepare,
    "batches": batches,
    "read": read,
    "export": export,
    "vacuum": vacuum,
}


def own_peak() -> int:
    """The most memory that this process had: what its parent had is not in it."""
    status = Path("/proc/self/status")
    if not status.exists():
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    (line,) = [li for li in status.read_text().splitlines() if li.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    sys.exit(main())
