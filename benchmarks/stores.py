"""Ways to keep the state of an operator: each applies batches of rows to state that it versions."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from millpond.delta import connect
from millpond.state import BatchState, FlowState
from millpond.storage import LocalStore

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

VERSIONS_KEPT = 10
SUM = "coalesce(sum(v), 0)::BIGINT"
SAME_KEY = "s.k IS NOT DISTINCT FROM n.k AND s.t IS NOT DISTINCT FROM n.t"


class StateStore(Protocol):
    """A batch is a Parquet file of the key (k BIGINT, t VARCHAR) and a value (v BIGINT).

    Each call is durable on return, and can be taken back: a second attempt at the batch starts
    from the state after the one before.
    """

    def __init__(self, folder: Path) -> None: ...

    def distinct(self, batch: int, rows: Path) -> tuple[int, int]:
        """Store the keys that are new; their number and the sum of their values."""
        ...

    def join(self, batch: int, rows: Path) -> tuple[int, int]:
        """Store all rows; number and sum of the values of stored rows whose key is in the batch."""
        ...


class ParquetFiles:
    """What millpond does: immutable Parquet files sorted by key hash, named by a version."""

    def __init__(self, folder: Path) -> None:
        self._state = FlowState(folder, LocalStore())
        self._connection = connect(temporary_folder=folder.with_name("spill"))

    def distinct(self, batch: int, rows: Path) -> tuple[int, int]:
        state = self._state.begin(batch)
        stored = state.rows("distinct")
        with closing(self._connection.cursor()) as connection:
            connection.execute(first_rows(rows))
            known = stored.matching(connection, "SELECT k, t FROM firsts", keys=["k", "t"])
            connection.execute(new_rows(known if batch else None))
            stored.add(connection, "SELECT k, t FROM new", keys=["k", "t"])
            found = numbers(connection, f"SELECT count(*), {SUM} FROM new")
        self._finish(batch, state)
        return found

    def join(self, batch: int, rows: Path) -> tuple[int, int]:
        state = self._state.begin(batch)
        stored = state.rows("join")
        new = f"SELECT k, t, v FROM '{rows}'"
        with closing(self._connection.cursor()) as connection:
            stored.declare(connection, new, keys=["k", "t"])
            matching = stored.matching(connection, new, keys=["k", "t"])
            found = numbers(connection, f"SELECT count(*), {SUM} FROM ({matching})")
            stored.add(connection, new, keys=["k", "t"])
        self._finish(batch, state)
        return found

    def _finish(self, batch: int, state: BatchState) -> None:
        state.commit({})
        self._state.prune(committed=batch)


class DuckdbFile:
    """One database; each row knows the batch that added it, and the one that removed it."""

    index = ""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._connection = self._open(folder / "state.duckdb")

    def _open(self, path: Path) -> DuckDBPyConnection:
        connection = connect(temporary_folder=self._folder.with_name("spill"))
        connection.execute(f"ATTACH '{path}' AS state")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS state.rows "
            "(k BIGINT, t VARCHAR, v BIGINT, added INTEGER, removed INTEGER)"
        )
        if self.index:
            connection.execute(f"CREATE INDEX IF NOT EXISTS by_key ON state.rows {self.index}")
        return connection

    @contextmanager
    def batch(self, batch: int) -> Iterator[DuckDBPyConnection]:
        with closing(self._connection.cursor()) as connection:
            # Take back what a killed attempt left.
            connection.execute(f"DELETE FROM state.rows WHERE added >= {batch}")
            connection.execute(f"UPDATE state.rows SET removed = NULL WHERE removed >= {batch}")
            yield connection

    def distinct(self, batch: int, rows: Path) -> tuple[int, int]:
        with self.batch(batch) as connection:
            connection.execute(first_rows(rows))
            known = f"SELECT k, t FROM state.rows AS s SEMI JOIN firsts AS n ON {SAME_KEY}"
            connection.execute(new_rows(known))
            connection.execute(f"INSERT INTO state.rows SELECT k, t, NULL, {batch}, NULL FROM new")
            return numbers(connection, f"SELECT count(*), {SUM} FROM new")

    def join(self, batch: int, rows: Path) -> tuple[int, int]:
        with self.batch(batch) as connection:
            matching = f"SELECT * FROM state.rows AS s SEMI JOIN '{rows}' AS n ON {SAME_KEY}"
            found = numbers(connection, f"SELECT count(*), {SUM} FROM ({matching})")
            connection.execute(
                f"INSERT INTO state.rows SELECT k, t, v, {batch}, NULL FROM '{rows}'"
            )
        return found


class DuckdbFileIndexed(DuckdbFile):
    """The same, with an index on the key."""

    index = "(k)"


class DuckdbFilePerVersion(DuckdbFile):
    """A database for each version, copied from the one before."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder

    @contextmanager
    def batch(self, batch: int) -> Iterator[DuckDBPyConnection]:
        path = self._folder / f"{batch}.duckdb"
        path.unlink(missing_ok=True)
        if batch:
            shutil.copyfile(path.with_stem(str(batch - 1)), path)
        with closing(self._open(path)) as connection:
            yield connection
            connection.execute("CHECKPOINT state")
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        path.with_stem(str(batch - VERSIONS_KEPT)).unlink(missing_ok=True)


class SqliteFile:
    """One SQLite database with an index on the key; rows know their batches."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._connection = connect(temporary_folder=folder.with_name("spill"))
        self._sqlite = sqlite3.connect(folder / "state.sqlite", isolation_level=None)
        for statement in (
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            "PRAGMA cache_size = -262144",
            "CREATE TABLE rows (k INTEGER, t TEXT, v INTEGER, added INTEGER, removed INTEGER)",
            "CREATE INDEX by_key ON rows (k, t)",
            "CREATE INDEX by_batch ON rows (added)",
            "CREATE INDEX by_removal ON rows (removed) WHERE removed IS NOT NULL",
        ):
            self._sqlite.execute(statement)

    @contextmanager
    def batch(self, batch: int, rows: Path) -> Iterator[sqlite3.Connection]:
        given = self._connection.execute(f"SELECT k, t, v FROM '{rows}'").fetchall()
        sqlite = self._sqlite
        sqlite.execute("BEGIN")
        sqlite.execute("DELETE FROM rows WHERE added >= ?", [batch])
        sqlite.execute("UPDATE rows SET removed = NULL WHERE removed >= ?", [batch])
        sqlite.execute("CREATE TEMP TABLE given (k INTEGER, t TEXT, v INTEGER)")
        sqlite.executemany("INSERT INTO given VALUES (?, ?, ?)", given)
        yield sqlite
        sqlite.execute("DROP TABLE temp.given")
        sqlite.execute("COMMIT")

    def distinct(self, batch: int, rows: Path) -> tuple[int, int]:
        with self.batch(batch, rows) as sqlite:
            sqlite.execute(
                "CREATE TEMP TABLE new AS SELECT k, t, min(v) AS v FROM given AS n WHERE NOT "
                "EXISTS (SELECT 1 FROM rows AS s WHERE s.k IS n.k AND s.t IS n.t) GROUP BY k, t"
            )
            sqlite.execute("INSERT INTO rows SELECT k, t, NULL, ?, NULL FROM new", [batch])
            found = sqlite.execute("SELECT count(*), coalesce(sum(v), 0) FROM new").fetchone()
            sqlite.execute("DROP TABLE temp.new")
        return found

    def join(self, batch: int, rows: Path) -> tuple[int, int]:
        with self.batch(batch, rows) as sqlite:
            found = sqlite.execute(
                "SELECT count(*), coalesce(sum(s.v), 0) FROM (SELECT DISTINCT k, t FROM given) "
                "AS n CROSS JOIN rows AS s ON s.k IS n.k AND s.t IS n.t"
            ).fetchone()
            sqlite.execute("INSERT INTO rows SELECT k, t, v, ?, NULL FROM given", [batch])
        return found


STORES: dict[str, type[StateStore]] = {
    "parquet": ParquetFiles,
    "duckdb": DuckdbFile,
    "duckdb-indexed": DuckdbFileIndexed,
    "duckdb-copied": DuckdbFilePerVersion,
    "sqlite": SqliteFile,
}


def first_rows(rows: Path) -> str:
    return (
        "CREATE OR REPLACE TEMP TABLE firsts AS "
        f"SELECT k, t, min(v) AS v FROM '{rows}' GROUP BY k, t"
    )


def new_rows(known: str | None) -> str:
    anti = "" if known is None else f" ANTI JOIN ({known}) AS s ON {SAME_KEY}"
    return f"CREATE OR REPLACE TEMP TABLE new AS SELECT n.* FROM firsts AS n{anti}"


def numbers(connection: DuckDBPyConnection, select: str) -> tuple[int, int]:
    count, total = connection.execute(select).fetchall()[0]
    return int(count), int(total)
