"""chDB, ClickHouse in the process: of rows with equal sorting keys, merges keep the newest."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peer import THREADS, Peer
from benchmarks.reading import SCAN, Reader


class ReplacingMergeTree(Peer):
    label = "chDB, ReplacingMergeTree"
    how = (
        "An insert; the newest row of each (k, line) is found when it is read (FINAL). Rows that a "
        "newer snapshot of a key lacks stay, and of equal sequences one row stays."
    )
    environment = "chdb"

    def prepare(self, files: list[Path]) -> None:
        self.open()
        self.query(
            "CREATE TABLE bench.t (k Nullable(Int64), line Int32, seq Int64, status String, "
            "amount Float64, at DateTime64(6, 'UTC'), token String, kind Int32) "
            "ENGINE = ReplacingMergeTree(seq) ORDER BY (k, line) SETTINGS allow_nullable_key = 1"
        )
        for number, file in enumerate(files):
            self.apply(number, file)
        self.close()

    def open(self) -> None:
        from chdb.session import Session

        self._session = Session(str(self.folder / "chdb"))
        self.query("CREATE DATABASE IF NOT EXISTS bench ENGINE = Atomic")
        self.query(f"SET max_threads = {THREADS}")

    def apply(self, number: int, batch: Path) -> None:  # noqa: ARG002 - it knows no numbers
        self.query(f"INSERT INTO bench.t SELECT * FROM file('{batch}', Parquet)")

    def query(self, sql: str) -> str:
        return str(self._session.query(sql))

    def close(self) -> None:
        self._session.close()

    def reader(self) -> Reader:
        return FinalReader(self)

    def vacuum(self) -> None:
        self.open()
        self.query("OPTIMIZE TABLE bench.t FINAL")
        # Parts that were merged stay for a while after.
        self.query("SYSTEM STOP MERGES bench.t")
        self.close()


class FinalReader(Reader):
    """chDB, which merges what it has not merged yet as it reads."""

    def __init__(self, peer: ReplacingMergeTree) -> None:
        self._peer = peer

    def open(self) -> None:
        self._peer.open()

    def close(self) -> None:
        self._peer.close()

    def export(self, folder: Path) -> None:
        target = folder / "rows.parquet"
        self._peer.query(f"SELECT * FROM bench.t FINAL INTO OUTFILE '{target}' FORMAT Parquet")

    def scan(self) -> None:
        self._peer.query(SCAN.format(table="bench.t FINAL", at="at"))

    def point(self, key: int) -> int:
        found = self._peer.query(f"SELECT * FROM bench.t FINAL WHERE k = {key} FORMAT CSV")
        return len(found.splitlines())
