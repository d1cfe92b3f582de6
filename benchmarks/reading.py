"""Reading a table that a peer has made: all of it, some keys, and into Parquet files to check it.

Runs in an environment that has the reader's package and the standard library.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Reads all columns of all rows. Each reader is given it in its own words.
SCAN = (
    "SELECT count(*), sum(k), sum(line), sum(seq), max(status), sum(amount), max({at}), "
    "max(token), sum(kind) FROM {table}"
)
COLUMNS = 'k, line, seq, status, amount, "at", token, kind'


class Reader:
    """Opens nothing before `open`."""

    def open(self) -> None:
        """Do what a process does once before it reads."""

    def close(self) -> None:
        """Do what a process does once after it has read."""

    def export(self, folder: Path) -> None:
        """Write the whole table to Parquet files."""
        raise NotImplementedError

    def scan(self) -> None:
        """Read all columns of all rows (`SCAN`), as someone does who opens the table anew."""
        raise NotImplementedError

    def point(self, key: int) -> int:
        """Read the rows of a key, and return how many there are."""
        raise NotImplementedError


class DeltaReader(Reader):
    """delta-rs, whoever wrote the table: tables are compared, and not their readers."""

    def __init__(self, table: Path) -> None:
        self._table = table

    def export(self, folder: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        writer = None
        for found in self._query("SELECT * FROM t"):
            batch = pa.record_batch(found)
            writer = writer or pq.ParquetWriter(folder / "rows.parquet", batch.schema)
            writer.write_batch(batch)
        if writer is not None:
            writer.close()

    def scan(self) -> None:
        list(self._query(SCAN.format(table="t", at="at")))

    def point(self, key: int) -> int:
        return sum(batch.num_rows for batch in self._query(f"SELECT * FROM t WHERE k = {key}"))

    def _query(self, sql: str) -> Any:
        from deltalake import DeltaTable, QueryBuilder

        return QueryBuilder().register("t", DeltaTable(self._table)).execute(sql)


class DatabaseReader(Reader):
    """DuckDB, of a table in a database file."""

    def __init__(self, database: Path, relation: str, *, threads: int) -> None:
        self._database = database
        self._relation = relation
        self._threads = threads

    def open(self) -> None:
        import duckdb

        self._duck = duckdb.connect(str(self._database), config={"threads": self._threads})

    def close(self) -> None:
        self._duck.close()

    def export(self, folder: Path) -> None:
        target = folder / "rows.parquet"
        self._duck.execute(
            f"COPY (SELECT {COLUMNS} FROM {self._relation}) TO '{target}' (FORMAT parquet)"
        )

    def scan(self) -> None:
        self._duck.execute(SCAN.format(table=self._relation, at='"at"')).fetchall()

    def point(self, key: int) -> int:
        found = self._duck.execute(f"SELECT {COLUMNS} FROM {self._relation} WHERE k = {key}")
        return len(found.fetchall())
