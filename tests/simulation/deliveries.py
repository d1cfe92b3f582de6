"""What comes in by chance, and by the oracle what the tables hold after each delivery of it."""

from __future__ import annotations

import json
import random
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.oracle import expected

KEYS = (None, "", "a", "b", "c", "d")
SCHEMA = pa.schema({"k": pa.string(), "s": pa.int64(), "v": pa.int64(), "w": pa.int64()})
Multiset = Counter[tuple[Any, ...]]

_TYPES = {"k": "string", "s": "long", "v": "long", "w": "long"}


@dataclass
class Deliveries:
    """A source table that another program fills, and what each prefix of it comes to.

    Rows are late, tied, without a key, or dropped by an expectation, all by chance; no two have the
    same `v`.

    Attributes:
        wanted: By table, what it holds after so many deliveries.
    """

    table: Path
    choices: random.Random
    count: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    wanted: dict[str, list[Multiset]] = field(default_factory=dict)

    def create(self) -> None:
        """Make the table, empty."""
        fields = [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in _TYPES.items()
        ]
        metadata = {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": [],
            "configuration": {},
            "createdTime": 0,
        }
        self._log(
            0, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, metaData=metadata
        )
        self._note()

    def send(self) -> None:
        """One more commit with one file."""
        rows = [self._row(number) for number in range(self.choices.randint(1, 6))]
        self.rows += rows
        self.count += 1
        name = f"part-{uuid.uuid4()}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), self.table / name)
        self._log(
            self.count,
            add={
                "path": name,
                "partitionValues": {},
                "size": (self.table / name).stat().st_size,
                # Of two files of one time the order would be by name, which is chance.
                "modificationTime": self.count * 1000,
                "dataChange": True,
            },
        )
        self._note()

    def _row(self, number: int) -> dict[str, Any]:
        return {
            "k": self.choices.choice(KEYS),
            # Mostly later than before, and often tied with it.
            "s": self.count // 2 + self.choices.randint(0, 2),
            "v": self.count * 100 + number,
            "w": self.choices.choice([-1, 1, 1, 1]),
        }

    def _note(self) -> None:
        kept = [row for row in self.rows if row["w"] >= 0]
        newest = expected(kept, keys=("k",), sequence=lambda row: row["s"])
        replaced = Counter((row["k"], row["v"], row["s"]) for row in newest)
        found = {
            "bronze": Counter(tuple(row.values()) for row in kept),
            "silver": replaced,
            "copied": replaced,
            "seen": Counter({(row["k"],) for row in kept}),
            "gold": Counter([(len(newest), sum(row["v"] for row in newest) if newest else None)]),
        }
        for table, rows in found.items():
            self.wanted.setdefault(table, []).append(rows)

    def _log(self, version: int, first: dict[str, Any] | None = None, **actions: Any) -> None:
        log = self.table / "_delta_log"
        log.mkdir(parents=True, exist_ok=True)
        lines = [first] if first else []
        lines += [{name: action} for name, action in actions.items()]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (log / f"{version:020}.json").write_text(text)
