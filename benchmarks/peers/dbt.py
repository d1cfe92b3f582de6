"""dbt over DuckDB: an incremental model with delete+insert, run by dbt's own runner."""

from __future__ import annotations

import json
import os
from pathlib import Path

from benchmarks.peer import THREADS, DatabasePeer

PROJECT = """\
name: bench
version: "1.0"
profile: bench
model-paths: [models]
flags:
  send_anonymous_usage_stats: false
"""
PROFILE = """\
bench:
  target: dev
  outputs:
    dev:
      type: duckdb
      path: {database}
      threads: {threads}
"""
MODEL = """\
{{ config(materialized="incremental", incremental_strategy="delete+insert", unique_key="k") }}
select * from read_parquet('{{ var("batch") }}')
"""


class DeleteInsert(DatabasePeer):
    label = "dbt with DuckDB, delete+insert"
    how = (
        "An incremental model, run by `dbtRunner` in one process; starting dbt is counted under "
        "`start`, and a `dbt run` of one's own pays it each time."
    )
    environment = "dbt"

    def prepare(self, files: list[Path]) -> None:
        (self.folder / "models").mkdir()
        (self.folder / "dbt_project.yml").write_text(PROJECT)
        (self.folder / "models" / "t.sql").write_text(MODEL)
        self.open()
        for number, file in enumerate(files):
            self.apply(number, file)

    def open(self) -> None:
        text = PROFILE.format(database=self.database, threads=THREADS)
        (self.folder / "profiles.yml").write_text(text)
        self._dbt = Runner(self.folder)

    def apply(self, number: int, batch: Path) -> None:  # noqa: ARG002 - it knows no numbers
        self._dbt.run(batch)


class Runner:
    """dbt in this process, and a project that it runs with the path of a batch."""

    def __init__(self, folder: Path) -> None:
        os.environ["DBT_LOG_LEVEL"] = "error"
        from dbt.cli.main import dbtRunner

        self._folder = folder
        self._runner = dbtRunner()

    def run(self, batch: Path) -> None:
        words = ["run", "--quiet", "--project-dir", str(self._folder)]
        words += ["--profiles-dir", str(self._folder), "--vars", json.dumps({"batch": str(batch)})]
        result = self._runner.invoke(words)
        if not result.success:
            results = getattr(result.result, "results", None) or [None]
            reason = result.exception or getattr(results[0], "message", "it failed")
            raise RuntimeError(" ".join(str(reason).split()))
