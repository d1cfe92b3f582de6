"""DuckDB's own storage: no open format, and one program at a time. The floor."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peer import THREADS, DatabasePeer, Peer
from benchmarks.reading import SCAN, Reader


class DeleteInsert(DatabasePeer):
    label = "DuckDB's own storage, DELETE + INSERT"
    how = "One transaction in a database file, which other programs can't open meanwhile."
    environment = "duckdb"

    def prepare(self, files: list[Path]) -> None:
        self.open()
        for file in files:
            word = "INSERT INTO t" if file != files[0] else "CREATE TABLE t AS"
            self._duck.execute(f"{word} SELECT * FROM read_parquet('{file}')")
        self.close()

    def open(self) -> None:
        import duckdb

        self._duck = duckdb.connect(self.database, config={"threads": THREADS})

    def apply(self, number: int, batch: Path) -> None:  # noqa: ARG002 - it knows no numbers
        rows = f"read_parquet('{batch}')"
        self._duck.execute("BEGIN")
        self._duck.execute(f"DELETE FROM t WHERE k IN (SELECT k FROM {rows})")
        self._duck.execute(f"INSERT INTO t SELECT * FROM {rows}")
        self._duck.execute("COMMIT")

    def close(self) -> None:
        self._duck.close()


class Rule(DeleteInsert):
    """What someone writes by hand who knows the rule: highest sequence, ties, nulls, numbers."""

    label = "DuckDB's own storage, the rule by hand"
    how = "The rule of REPLACE USING in SQL of its own, with a table of the numbers of batches."

    def prepare(self, files: list[Path]) -> None:
        super().prepare(files)
        self.open()
        self._duck.execute("CREATE TABLE applied (number BIGINT)")
        self.close()

    def apply(self, number: int, batch: Path) -> None:
        run = self._duck.execute
        if run("SELECT * FROM applied WHERE number = ?", [number]).fetchall():
            return
        rows = f"read_parquet('{batch}')"
        run("BEGIN")
        run("INSERT INTO applied VALUES (?)", [number])
        run(f"CREATE TEMP TABLE newest AS SELECT k, max(seq) AS seq FROM {rows} GROUP BY k")
        run(
            "CREATE TEMP TABLE stored AS SELECT t.k, max(t.seq) AS seq FROM t "
            "JOIN newest AS n ON t.k IS NOT DISTINCT FROM n.k GROUP BY t.k"
        )
        run(
            "DELETE FROM newest AS n USING stored AS s "
            "WHERE n.k IS NOT DISTINCT FROM s.k AND n.seq < s.seq"
        )
        run("DELETE FROM t USING newest AS n WHERE t.k IS NOT DISTINCT FROM n.k AND t.seq < n.seq")
        run(
            f"INSERT INTO t SELECT r.* FROM {rows} AS r "
            "JOIN newest AS n ON r.k IS NOT DISTINCT FROM n.k AND r.seq = n.seq"
        )
        run("DROP TABLE newest")
        run("DROP TABLE stored")
        run("COMMIT")


class CopyToParquet(Peer):
    """The least that a first load can be: the rows are copied to a Parquet file."""

    label = "DuckDB, COPY to Parquet"
    how = (
        "Copies the batch to a Parquet file. It is no table; only what a first load can't be below."
    )
    environment = "duckdb"
    suites = ("L",)

    @property
    def _file(self) -> Path:
        return self.folder / "copy.parquet"

    def prepare(self, files: list[Path]) -> None:
        """Do nothing: there is no table."""

    def open(self) -> None:
        import duckdb

        self._duck = duckdb.connect(config={"threads": THREADS, "preserve_insertion_order": False})

    def apply(self, number: int, batch: Path) -> None:  # noqa: ARG002 - it knows no numbers
        self._duck.execute(
            f"COPY (FROM read_parquet('{batch}')) TO '{self._file}' (FORMAT parquet)"
        )

    def reader(self) -> Reader:
        return FileReader(self._file)


class FileReader(Reader):
    """DuckDB, of one Parquet file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def open(self) -> None:
        import duckdb

        self._duck = duckdb.connect(config={"threads": THREADS})

    def export(self, folder: Path) -> None:
        (folder / "rows.parquet").hardlink_to(self._file)

    def scan(self) -> None:
        table = f"read_parquet('{self._file}')"
        self._duck.execute(SCAN.format(table=table, at='"at"')).fetchall()

    def point(self, key: int) -> int:
        sql = f"SELECT * FROM read_parquet('{self._file}') WHERE k = {key}"
        return len(self._duck.execute(sql).fetchall())
