"""A folder of files that suppliers send again and again, and what a table of them may hold."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

# Long ago, so that nothing waits for files to settle.
BEGINNING_S = 1_600_000_000
NAMES = ("a.csv", "b b.csv", "ü&.csv")


@dataclass
class SentFiles:
    """Each version of a file has rows of its own and is newer than all that were sent before.

    Attributes:
        versions: By name, the rows of each version.
        seen: By name, which version the table had last.
    """

    folder: Path
    choices: random.Random
    sent: int = 0
    versions: dict[str, list[Counter[int]]] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)

    def send(self) -> None:
        self.folder.mkdir(exist_ok=True)
        name = self.choices.choice(NAMES)
        self.sent += 1
        rows = [self.sent * 100 + self.choices.randrange(3) for _ in range(3)]
        self.versions.setdefault(name, []).append(Counter(rows))
        hidden = self.folder / f".{name}"
        hidden.write_text("".join(f"{line}\n" for line in ["v", *rows]))
        time_s = BEGINNING_S + self.sent
        os.utime(hidden, (time_s, time_s))
        hidden.rename(self.folder / name)

    def check(self, rows: Counter[tuple[Any, ...]]) -> None:
        """Each file is there as one of its versions, whole, and none goes back to an earlier one."""
        for name, found in _by_name(rows.elements()).items():
            first = self.seen.get(name, 0)
            fitting = [at for at, held in enumerate(self.versions[name]) if held == found]
            assert fitting, f"{name}: {found} is none of {self.versions[name]}"
            assert fitting[-1] >= first, f"{name} went back from version {first} to {fitting[-1]}"
            self.seen[name] = fitting[-1]
        missing = self.seen.keys() - _by_name(rows.elements()).keys()
        assert not missing, f"{missing} went out of the table"

    def check_all(self) -> None:
        """The newest version of each was seen."""
        newest = {name: len(versions) - 1 for name, versions in self.versions.items()}
        assert self.seen == newest


def _by_name(rows: Iterable[tuple[Any, ...]]) -> dict[str, Counter[int]]:
    found: dict[str, Counter[int]] = {}
    for value, name in rows:
        found.setdefault(unquote(name), Counter())[value] += 1
    return found
