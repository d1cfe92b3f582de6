"""delta-rs, the package deltalake: two ways to replace rows."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peer import DeltaPeer


class Overwrite(DeltaPeer):
    label = "delta-rs, overwrite by predicate"
    how = (
        "One commit; the batch's keys are listed in the predicate as SQL text. Files are rewritten."
    )
    environment = "delta-rs"

    def open(self) -> None:
        from deltalake import DeltaTable

        self._table = DeltaTable(self.table)

    def apply(self, number: int, batch: Path) -> None:  # noqa: ARG002 - it is not told numbers
        import pyarrow.compute as pc
        import pyarrow.parquet as pq
        from deltalake import write_deltalake

        rows = pq.read_table(batch)
        keys = ", ".join(str(key) for key in pc.unique(rows["k"]).drop_null().to_pylist())
        predicate = f"k IN ({keys})" + (" OR k IS NULL" if rows["k"].null_count else "")
        write_deltalake(self._table, rows, mode="overwrite", predicate=predicate)


class Merge(DeltaPeer):
    label = "delta-rs, MERGE delete, then append"
    how = (
        "Two commits, since one MERGE can't replace the rows of a key by others of another number; "
        "a reader in between sees neither. Files are rewritten."
    )
    environment = "delta-rs"

    def open(self) -> None:
        from deltalake import DeltaTable

        self._table = DeltaTable(self.table)

    def apply(self, number: int, batch: Path) -> None:  # noqa: ARG002 - it is not told numbers
        import pyarrow.parquet as pq
        from deltalake import write_deltalake

        rows = pq.read_table(batch)
        keys = rows.select(["k"]).group_by("k").aggregate([])
        merge = self._table.merge(
            keys, predicate="t.k = s.k", source_alias="s", target_alias="t", streamed_exec=False
        )
        merge.when_matched_delete().execute()
        write_deltalake(self._table, rows, mode="append")
