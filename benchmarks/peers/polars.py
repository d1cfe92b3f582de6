"""Polars over Delta: read the table, leave out the batch's keys, write all of it anew."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peer import DeltaPeer


class FullOverwrite(DeltaPeer):
    label = "Polars, anti-join and full overwrite"
    how = "One commit that replaces the whole table; it must fit into memory."
    environment = "polars"

    def apply(self, number: int, batch: Path) -> None:  # noqa: ARG002 - it knows no numbers
        import polars as pl

        rows = pl.scan_parquet(batch)
        kept = pl.scan_delta(str(self.table)).join(rows.select("k").unique(), on="k", how="anti")
        pl.concat([kept, rows], how="vertical_relaxed").collect(engine="streaming").write_delta(
            str(self.table), mode="overwrite"
        )
