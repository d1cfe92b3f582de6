"""What a tool must be able to do to be measured. Runs in the tool's own environment.

So this module, and those in `peers/`, import nothing at their top but the standard library.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from benchmarks.reading import DatabaseReader, DeltaReader, Reader

# What every tool is to keep to; the benchmark pins its processes to as many processors.
THREADS = 2


class Peer:
    """A tool and one way of replacing the rows of keys by those of a batch.

    Each step is a process of its own: `prepare` once; then `open`, and `apply` for all batches;
    after that its reader, and `vacuum`.

    Attributes:
        label: What tables and plots call it.
        how: How it replaces rows, and what a reader must know of it, in a sentence or two.
        environment: Its locked requirements, `requirements/bench-NAME.txt`; millpond's if empty.
        reading_environment: That of its reader, where it has another.
        vacuum_environment: That of `vacuum`, where it has another.
        vectors: Of a Delta table, whether deletion vectors are switched on; `None` where it keeps
            its own storage, and so starts from Parquet files.
        knows_expectations: Whether it drops rows itself; others are spared those rows.
        suites: Those that it can enter; all if empty.
        folder: Where all that it stores lies.
        expectation: A condition in SQL; rows that do not meet it are to be dropped. Empty for none,
            and for those that know no expectations.
    """

    label: ClassVar[str]
    how: ClassVar[str]
    environment: ClassVar[str] = ""
    reading_environment: ClassVar[str | None] = None
    vacuum_environment: ClassVar[str | None] = None
    vectors: ClassVar[bool | None] = None
    knows_expectations: ClassVar[bool] = False
    suites: ClassVar[tuple[str, ...]] = ()

    def __init__(self, folder: Path, expectation: str = "") -> None:
        self.folder = folder
        self.expectation = expectation

    def prepare(self, files: list[Path]) -> None:
        """Store the rows of these Parquet files as the table; there may be none."""
        raise NotImplementedError

    def open(self) -> None:
        """Do what a process does once before its first batch."""

    def stage(self, number: int, batch: Path) -> Path:  # noqa: ARG002 - some look at the number
        """Bring a batch to where the tool finds it; not timed."""
        return batch

    def apply(self, number: int, batch: Path) -> None:
        """Replace the rows of the batch's keys. Durable, and seen by all readers, on return."""
        raise NotImplementedError

    def close(self) -> None:
        """Do what a process does once after its last batch."""

    def reader(self) -> Reader:
        """Who reads the table afterwards."""
        raise NotImplementedError

    def vacuum(self) -> None:
        """Remove what no reader of the newest state needs, by the tool's own means."""


class DeltaPeer(Peer):
    """A tool that writes a Delta table. All of them begin with a table of the same data files."""

    reading_environment = "delta-rs"
    vacuum_environment = "delta-rs"
    vectors = False

    @property
    def table(self) -> Path:
        return self.folder / "table"

    def prepare(self, files: list[Path]) -> None:
        """Do nothing: the benchmark has laid out the table."""

    def reader(self) -> Reader:
        return DeltaReader(self.table)

    def vacuum(self) -> None:
        from deltalake import DeltaTable

        table = DeltaTable(self.table)
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


class DatabasePeer(Peer):
    """A tool that keeps its table in a database file of DuckDB's.

    Attributes:
        relation: The table's name in it.
    """

    relation: ClassVar[str] = "t"

    @property
    def database(self) -> Path:
        return self.folder / "rows.duckdb"

    def reader(self) -> Reader:
        return DatabaseReader(self.database, self.relation, threads=THREADS)

    def vacuum(self) -> None:
        import duckdb

        with duckdb.connect(str(self.database)) as connection:
            connection.execute("CHECKPOINT")
