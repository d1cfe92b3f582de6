"""A toy target that keeps what a batch gave, durably, and real Delta tables to read."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from millpond.delta import Table
from millpond.engine.protocol import EmptyInput, ParquetInput
from millpond.storage import LocalStore
from millpond.streaming import Checkpoint, DeltaSource, run_batches


def read_rows(given):
    """The rows of an input, by a reader that knows nothing of Delta."""
    if isinstance(given, EmptyInput):
        return []
    assert isinstance(given, ParquetInput)
    assert len(set(given.files)) == len(given.files)
    rows = []
    for file in given.files:
        table = pq.read_table(file, partitioning=None)
        columns = [
            table[name].to_pylist() if name in table.column_names else [None] * len(table)
            for name in given.schema.names
        ]
        rows.extend(zip(*columns, strict=True))
    return rows


class Target:
    """Keeps each batch in a file of its own, which appears whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def committed(self):
        return max(self.numbers(), default=None)

    def numbers(self):
        return sorted(int(path.stem) for path in self.folder.glob("*.json"))

    def commit(self, number, rows):
        path = self.folder / f"{number}.json"
        assert not path.exists(), f"batch {number} is applied twice"
        temporary = self.folder / f"{number}.tmp"
        temporary.write_text(json.dumps(rows, default=str))
        temporary.replace(path)

    def batches(self):
        return [
            [tuple(row) for row in json.loads((self.folder / f"{n}.json").read_text())]
            for n in self.numbers()
        ]

    def rows(self):
        return sorted((row for batch in self.batches() for row in batch), key=str)


class Stream:
    """One flow from one Delta table, or more, into a toy target; each `run` is an update."""

    def __init__(self, folder: Path, tables, store=None) -> None:
        self.folder = folder
        self.tables = dict(tables)
        self.store = store or LocalStore()
        self.target = Target(folder / "target")
        self.checkpoint_folder = folder / "checkpoint"

    def sources(self, options):
        return {
            name: DeltaSource(Table(path, self.store), options, name=name)
            for name, path in self.tables.items()
        }

    def checkpoint(self):
        return Checkpoint(self.checkpoint_folder, self.store)

    def run(self, **options):
        """Run one update; return its micro-batches."""
        return list(self.steps(**options))

    def steps(self, **options):
        def apply(batch):
            rows = []
            for name in self.tables:
                rows += read_rows(
                    batch.input(name, folder=self.folder / "staging" / str(batch.number))
                )
            self.target.commit(batch.number, rows)
            return batch

        yield from run_batches(
            checkpoint=self.checkpoint(),
            sources=self.sources(options),
            committed=self.target.committed,
            apply=apply,
        )


def append(path, ids, **options):
    """Append rows (id, text) to a table, as one commit with one file; creates the table."""
    rows = pa.table(
        {
            "id": pa.array(list(ids), pa.int64()),
            "text": pa.array([f"row {number}" for number in ids], pa.string()),
        }
    )
    write_deltalake(path, rows, mode="append", **options)
    return DeltaTable(path)


def expected(ids):
    return sorted(((number, f"row {number}") for number in ids), key=str)
