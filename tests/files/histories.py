"""Random histories of a folder of suppliers' files, and what a table of their newest versions is.

The oracle knows only what every version of every file held, when it was made, and when a file was
found to be gone. Time goes by steps, and each version has a time of its own.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from millpond.files.locations import quote_path

# Long ago, so that nothing waits for files to settle.
BEGINNING_NS = 1_600_000_000 * 10**9
STEP_NS = 10**9
NAMES = ("acme.csv", "b b.csv", "Ünal & Söhne.csv", "x'y\n.csv", "z%20.csv")
Version = tuple[int, tuple[int, ...]]


@dataclass
class History:
    """A folder that changes, with all that updates saw of it.

    Attributes:
        versions: By name, every version that an update saw: its time and its rows.
        known: Names of files that the newest update saw.
        gone_ns: By name, the last time at which an update found a known file to be gone.
    """

    folder: Path
    random: random.Random
    step: int = 0
    versions: dict[str, set[Version]] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    gone_ns: dict[str, int] = field(default_factory=dict)

    @property
    def now_ns(self) -> int:
        """A time between two steps: no version has it."""
        return BEGINNING_NS + self.step * STEP_NS + STEP_NS // 2

    def change(self, *, only_newer: bool = False) -> None:
        """Do a few things to the folder.

        Args:
            only_newer: Do nothing after which it matters whether a killed update had got to read
                what was there before.
        """
        things = [self._send, self._send, self._empty]
        if not only_newer:
            things += [self._send_older, self._rename, self._remove]
        for _ in range(self.random.randint(1, 3)):
            self.random.choice(things)()

    def seen(self) -> None:
        """An update looks at the folder as it is now."""
        for name in NAMES:
            path = self.folder / name
            if path.exists():
                rows = tuple(map(int, path.read_text().split()[1:]))
                self.versions.setdefault(name, set()).add((path.stat().st_mtime_ns, rows))
                self.known.add(name)
            elif name in self.known:
                self.known.remove(name)
                self.gone_ns[name] = self.now_ns

    def expected(self, *, removes: bool) -> Counter[tuple[str, int]]:
        """The rows of the newest version of every file.

        Args:
            removes: Whether a file that is gone counts as a version without rows.
        """
        found: Counter[tuple[str, int]] = Counter()
        for name, versions in self.versions.items():
            time_ns, rows = max(versions)
            if not removes or time_ns > self.gone_ns.get(name, 0):
                found.update((quote_path(name), row) for row in rows)
        return found

    def _write(self, rows: list[int], time_ns: int) -> None:
        path = self.folder / self.random.choice(NAMES)
        path.write_text("".join(f"{line}\n" for line in ["v", *rows]))
        os.utime(path, ns=(time_ns, time_ns))

    def _rows(self) -> list[int]:
        return [self.random.randrange(100) for _ in range(self.random.randint(1, 5))]

    def _next_ns(self) -> int:
        self.step += 1
        return BEGINNING_NS + self.step * STEP_NS

    def _send(self) -> None:
        self._write(self._rows(), self._next_ns())

    def _send_older(self) -> None:
        """An older version comes late."""
        later_ns = self._next_ns()
        older_ns = BEGINNING_NS + self.random.randrange(self.step) * STEP_NS
        self._write(self._rows(), older_ns + (later_ns - BEGINNING_NS) // 10**6)

    def _empty(self) -> None:
        self._write([], self._next_ns())

    def _rename(self) -> None:
        self.step += 1
        source, target = self.random.sample(NAMES, 2)
        if (self.folder / source).exists():
            (self.folder / source).rename(self.folder / target)

    def _remove(self) -> None:
        self.step += 1
        (self.folder / self.random.choice(NAMES)).unlink(missing_ok=True)
