"""duckrun, a dbt adapter that runs SQL in DuckDB and writes Delta tables with delta-rs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peer import THREADS, DeltaPeer
from benchmarks.peers.dbt import PROJECT, Runner

PROFILE = """\
bench:
  target: dev
  outputs:
    dev:
      type: duckrun
      root_path: {root}
      threads: {threads}
"""
MODEL = """\
{{{{ config(materialized="incremental", incremental_strategy="delete+insert", unique_key="k",
   location="{table}") }}}}
select * from read_parquet('{{{{ var("batch") }}}}')
"""


class DeleteInsert(DeltaPeer):
    label = "duckrun, delete+insert"
    how = "An incremental model of dbt whose table is Delta, run by `dbtRunner` in one process."
    environment = "duckrun"

    def prepare(self, files: list[Path]) -> None:  # noqa: ARG002 - the benchmark laid out the table
        (self.folder / "models").mkdir()
        (self.folder / "dbt_project.yml").write_text(PROJECT)
        (self.folder / "models" / "t.sql").write_text(MODEL.format(table=self.table))
        text = PROFILE.format(root=self.folder, threads=THREADS)
        (self.folder / "profiles.yml").write_text(text)

    def open(self) -> None:
        self._dbt = Runner(self.folder)

    def apply(self, number: int, batch: Path) -> None:  # noqa: ARG002 - it knows no numbers
        self._dbt.run(batch)
