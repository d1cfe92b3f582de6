"""Programs that write to a pipeline's tables while it runs: delta-rs and Sail, at random."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.concurrency.shared_target import TABLES, Change, Rows, SharedTarget
from tests.readers import sail_session

LETTERS = ("a", "b", "c", "d", "e", "f")
# What writers say of a commit that others were faster with, and of files that a vacuum took away.
CONFLICT = re.compile(
    r"conflict|already exists|concurrent|Transaction failed|[Cc]ommit failed|Failed to commit"
)
# Sail looks for a version in the log from the newest checkpoint on, which may be a later one by then.
SAIL_OVERTAKEN = "Missing commit file"
VACUUMED = re.compile(r"[Nn]ot found|No such file|NotFound|does not exist|can't be read")


@dataclass
class ForeignWriters:
    """One thread for delta-rs and one for Sail.

    Attributes:
        compacts: Whether delta-rs compacts, too. It does not notice another compaction of the same
            files, and would bring their rows twice, so one has to leave it to the other.
        changes: What each commit does to the rows, by its mark.
        refused: Writes that were not made, by kind and why.
    """

    target: SharedTarget
    seed: int
    pause_s: float
    vacuums: bool
    compacts: bool
    changes: dict[int, Change] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> list[threading.Thread]:
        threads = [
            threading.Thread(target=self._write, args=(kinds, self.seed + number))
            for number, kinds in enumerate(
                [
                    [self._append, self._append, self._delete, self._update]
                    + [self._compact] * self.compacts
                    + [self._vacuum] * self.vacuums,
                    [self._merge, self._merge, self._delete_by_sail],
                ]
            )
        ]
        for thread in threads:
            thread.start()
        return threads

    def stop(self) -> None:
        self._stop.set()

    def _write(self, kinds: list[Any], seed: int) -> None:
        choices = random.Random(seed)
        while not self._stop.wait(choices.uniform(0.2, 1.8) * self.pause_s):
            kind, path = choices.choice(kinds), self.target.table(choices.choice(TABLES))
            try:
                kind(path, choices)
            except Exception as error:  # noqa: BLE001 - every engine has errors of its own
                self._note(kind.__name__.strip("_"), str(error))

    def _note(self, kind: str, message: str) -> None:
        if CONFLICT.search(message):
            self.refused[f"{kind}: conflict"] += 1
        elif SAIL_OVERTAKEN in message:
            self.refused[f"{kind}: overtaken by a checkpoint"] += 1
        elif self.vacuums and VACUUMED.search(message):
            self.refused[f"{kind}: a file is gone"] += 1
        else:
            self.problems.append(f"{kind}: {message[:500]}")

    def _marked(self, change: Change) -> int:
        with self._lock:
            mark = len(self.changes)
            self.changes[mark] = change
        return mark

    def _append(self, path: Path, choices: random.Random) -> None:
        from deltalake import write_deltalake

        rows = [self.target.row() for _ in range(choices.randint(1, 2))]
        schema = pa.schema({"k": pa.string(), "v": pa.int64(), "s": pa.int64()})
        mark = self._marked(lambda held: [*held, *rows])
        data = pa.Table.from_pylist(rows, schema)
        write_deltalake(path, data, mode="append", commit_properties=_properties(mark))

    def _delete(self, path: Path, choices: random.Random) -> None:
        key = choices.choice(LETTERS)
        mark = self._marked(_without(key))
        _open(path).delete(f"k = '{key}'", commit_properties=_properties(mark))

    def _update(self, path: Path, choices: random.Random) -> None:
        key, value = choices.choice(LETTERS), self.target.row()["v"]
        mark = self._marked(_with_value(key, value))
        _open(path).update(
            predicate=f"k = '{key}'",
            updates={"v": str(value)},
            commit_properties=_properties(mark),
        )

    def _compact(self, path: Path, _: random.Random) -> None:
        _open(path).optimize.compact()

    def _vacuum(self, path: Path, _: random.Random) -> None:
        _open(path).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)

    def _merge(self, path: Path, choices: random.Random) -> None:
        row = self.target.row() | {"k": choices.choice([*LETTERS, "sail"])}
        mark = self._marked(merged(row))
        with sail_session() as session:
            session.sql(
                f"MERGE INTO delta.`{path}` AS t USING (SELECT '{row['k']}' AS k, "
                f"{row['v']}L AS v, {row['s']}L AS s) AS n "
                f"ON t.k = n.k AND 'op-{mark}' = 'op-{mark}' "
                "WHEN MATCHED THEN UPDATE SET v = n.v "
                "WHEN NOT MATCHED THEN INSERT (k, v, s) VALUES (n.k, n.v, n.s)"
            ).collect()

    def _delete_by_sail(self, path: Path, choices: random.Random) -> None:
        key = choices.choice(LETTERS)
        mark = self._marked(_without(key))
        with sail_session() as session:
            session.sql(
                f"DELETE FROM delta.`{path}` WHERE k = '{key}' AND 'op-{mark}' = 'op-{mark}'"
            ).collect()


def _open(path: Path) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(path)


def _properties(mark: int) -> Any:
    from deltalake import CommitProperties

    return CommitProperties(custom_metadata={"mark": str(mark)})


def _without(key: str) -> Change:
    return lambda rows: [row for row in rows if row["k"] != key]


def _with_value(key: str, value: int) -> Change:
    return lambda rows: [row | {"v": value} if row["k"] == key else row for row in rows]


def merged(new: dict[str, Any]) -> Change:
    """A MERGE of one row by key, which leaves the sequence of rows that it updates."""

    def change(rows: Rows) -> Rows:
        if any(row["k"] == new["k"] for row in rows):
            return _with_value(new["k"], new["v"])(rows)
        return [*rows, new]

    return change


def exists(path: Path) -> bool:
    return (path / "_delta_log" / f"{0:020}.json").exists()


def wait_for(paths: list[Path], *, seconds: float = 60) -> None:
    """Wait until tables are there."""
    deadline = time.monotonic() + seconds
    while not all(map(exists, paths)):
        assert time.monotonic() < deadline, "the update made no tables"
        time.sleep(0.02)
