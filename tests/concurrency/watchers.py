"""Readers that look at tables all the time, and remember what they saw, and which version it was."""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from millpond.delta import Table
from tests.concurrency.foreign_writers import SAIL_OVERTAKEN
from tests.concurrency.shared_target import Rows, multiset
from tests.delta.tables import rows as rows_of
from tests.readers import read_with_sail

GONE = re.compile(r"[Nn]ot found|No such file|NotFound|is not there|does not exist")


@dataclass(frozen=True)
class Sight:
    """What one reading gave: the state of one of the versions from `first` to `last`."""

    reader: str
    table: str
    first: int
    last: int
    rows: Counter[Any]


@dataclass
class Watchers:
    """Threads that read.

    Attributes:
        vacuums: Whether files that a reader still needs may be taken away.
        gone: How often that happened, by reader; and how often Sail lost its way in the log.
    """

    tables: Sequence[Path]
    seed: int
    pause_s: float
    vacuums: bool
    sights: list[Sight] = field(default_factory=list)
    gone: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> list[threading.Thread]:
        threads = [
            threading.Thread(target=self._watch, args=(name, read, self.seed + number))
            for number, (name, read) in enumerate(READERS.items())
        ]
        for thread in threads:
            thread.start()
        return threads

    def stop(self) -> None:
        self._stop.set()

    def look(self, path: Path) -> None:
        """Read a table once with each reader."""
        for name, read in READERS.items():
            first, last, rows = read(path)
            self.sights.append(Sight(name, path.name, first, last, multiset(rows)))

    def _watch(self, name: str, read: Callable[[Path], tuple[int, int, Rows]], seed: int) -> None:
        choices = random.Random(seed)
        while not self._stop.wait(choices.uniform(0.2, 1.8) * self.pause_s):
            path = choices.choice(self.tables)
            try:
                first, last, rows = read(path)
            except Exception as error:  # noqa: BLE001 - every reader has errors of its own
                if name == "sail" and SAIL_OVERTAKEN in str(error):
                    self.gone["sail: overtaken by a checkpoint"] += 1
                elif self.vacuums and GONE.search(str(error)):
                    self.gone[name] += 1
                else:
                    self.problems.append(f"{name} on {path.name}: {str(error)[:500]}")
                continue
            self.sights.append(Sight(name, path.name, first, last, multiset(rows)))


def _delta_rs(path: Path) -> tuple[int, int, Rows]:
    from deltalake import DeltaTable, QueryBuilder

    table = DeltaTable(path)
    version = table.version()
    rows = QueryBuilder().register("t", table).execute("SELECT * FROM t")
    return version, version, pa.table(rows).to_pylist()


def _polars(path: Path) -> tuple[int, int, Rows]:
    import polars as pl
    from deltalake import DeltaTable

    table = DeltaTable(path)
    return table.version(), table.version(), pl.read_delta(table).to_dicts()


def _sail(path: Path) -> tuple[int, int, Rows]:
    first = newest_version(path)
    rows = read_with_sail(path)
    return first, newest_version(path), rows


def _millpond(path: Path) -> tuple[int, int, Rows]:
    snapshot = Table(path).snapshot()
    return snapshot.version, snapshot.version, rows_of(snapshot)


READERS: dict[str, Callable[[Path], tuple[int, int, Rows]]] = {
    "delta-rs": _delta_rs,
    "polars": _polars,
    "sail": _sail,
    "millpond": _millpond,
}


def newest_version(path: Path) -> int:
    return max(int(entry.stem) for entry in (path / "_delta_log").glob("?" * 20 + ".json"))
