"""A pipeline whose tables others write to and read from while it runs, and what its batches hold."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests import oracle
from tests.pipeline_folder import PipelineFolder
from tests.readers import read_with_delta_rs

COLUMNS = ("k", "v", "s")
KEYS = ("a", "b", "c", "d", "e", "f", "", None)
TABLES = ("prices", "copies")
PIPELINE = """\
CREATE OR REFRESH STREAMING TABLE prices {properties}
FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT * FROM STREAM(lists);
CREATE OR REFRESH STREAMING TABLE copies {properties} AS SELECT * FROM STREAM(lists);
"""
WITHOUT_UPKEEP = "TBLPROPERTIES ('pipelines.autoOptimize.managed' = 'false')"
MILLPOND = Path(__file__).with_name("counted_update.py")

Row = dict[str, Any]
Rows = list[Row]
Change = Callable[[Rows], Rows]


@dataclass
class SharedTarget:
    """A pipeline folder with a REPLACE USING table and an append table, one batch for each feed.

    Attributes:
        batches: The rows of each batch, by its number.
    """

    folder: PipelineFolder
    choices: random.Random
    batches: list[Rows] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _values: int = 0

    @classmethod
    def made(cls, root: Path, choices: random.Random, *, has_upkeep: bool = True) -> SharedTarget:
        folder = PipelineFolder.made(root, {"millpond.maxFilesPerTrigger": "1"})
        properties = "" if has_upkeep else WITHOUT_UPKEEP
        folder.write("prices.sql", PIPELINE.format(properties=properties))
        return cls(folder, choices)

    def feed(self) -> None:
        """Add a file to the source: a batch with late, tied and keyless rows."""
        rows = [self.row() for _ in range(self.choices.randint(1, 8))]
        self.folder.feed("lists", rows, k=pa.string(), v=pa.int64(), s=pa.int64())
        self.batches.append(rows)

    def row(self) -> Row:
        """A row of which no other has the same `v`."""
        with self._lock:
            self._values += 1
            value = self._values
        sequence = len(self.batches) // 2 + self.choices.randint(-1, 2)
        return {"k": self.choices.choice(KEYS), "v": value, "s": sequence}

    def update(self) -> subprocess.Popen[str]:
        """Start `millpond run`."""
        return subprocess.Popen(
            [
                sys.executable,
                MILLPOND,
                self.conflicts_file,
                "run",
                "--spec",
                self.folder.root / "spark-pipeline.yml",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def conflicts_file(self) -> Path:
        """It has a character for each commit of the program that others came before."""
        return self.folder.root / "conflicts"

    def table(self, name: str) -> Path:
        return self.folder.table(name)

    def held(self, table: str) -> Any:
        """What delta-rs finds in a table, as a multiset."""
        return multiset(read_with_delta_rs(self.table(table)))

    def applied(self, table: str, number: int) -> Change:
        """What the batch of a number does to a table, by the oracle."""
        batch = self.batches[number]
        if table == "copies":
            return lambda rows: [*rows, *batch]
        return lambda rows: [
            dict(row)
            for row in oracle.following(rows, batch, keys=("k",), sequence=lambda row: row["s"])
        ]


def multiset(rows: Rows) -> Any:
    return oracle.multiset(rows, columns=COLUMNS)
