"""SQLMesh over DuckDB: a model by partition, whose partitions are the keys."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.peer import THREADS, DatabasePeer

CONFIG = """\
gateways:
  bench:
    connection:
      type: duckdb
      database: {database}
      connector_config:
        threads: {threads}
default_gateway: bench
model_defaults:
  dialect: duckdb
  start: 2024-01-01
disable_anonymized_analytics: true
"""
MODEL = """\
MODEL (
  name bench.t,
  kind INCREMENTAL_BY_PARTITION,
  partitioned_by k,
  cron '@daily',
  columns (k BIGINT, line INT, seq BIGINT, status TEXT, amount DOUBLE, at TIMESTAMPTZ,
    token TEXT, kind INT)
);
SELECT k, line, seq, status, amount, at, token, kind FROM read_parquet('{batch}');
"""
FIRST = datetime(2024, 1, 2, tzinfo=UTC)


class ByPartition(DatabasePeer):
    label = "SQLMesh with DuckDB, by partition"
    how = (
        "An INCREMENTAL_BY_PARTITION model partitioned by the key, run in one process by "
        "`Context.run`, a day for each batch; its state of runs is counted."
    )
    environment = "sqlmesh"
    relation = "bench.t"

    @property
    def _batch(self) -> Path:
        return self.folder / "batch"

    def prepare(self, files: list[Path]) -> None:
        """Make the project and let a plan load what there is, as one batch."""
        (self.folder / "models").mkdir()
        config = CONFIG.format(database=self.database, threads=THREADS)
        (self.folder / "config.yaml").write_text(config)
        model = MODEL.format(batch=f"{self._batch}/*.parquet")
        (self.folder / "models" / "t.sql").write_text(model)
        self._show(files)
        self.open()
        self._context.plan(auto_apply=True, no_prompts=True, execution_time=FIRST)

    def open(self) -> None:
        os.environ["MAX_FORK_WORKERS"] = "1"
        from sqlmesh import Context
        from sqlmesh.core.console import NoopConsole, set_console

        set_console(NoopConsole())
        self._context = Context(paths=[str(self.folder)])

    def stage(self, number: int, batch: Path) -> Path:  # noqa: ARG002 - the newest is what counts
        self._show([batch])
        return batch

    def _show(self, files: list[Path]) -> None:
        """Let the model see these files and no others."""
        self._batch.mkdir(exist_ok=True)
        for old in self._batch.iterdir():
            old.unlink()
        for number, file in enumerate(files):
            (self._batch / f"{number:04}.parquet").symlink_to(file)

    def apply(self, number: int, batch: Path) -> None:  # noqa: ARG002 - it is staged
        moment = FIRST + timedelta(days=number + 1)
        status = self._context.run(execution_time=moment, ignore_cron=True)
        # A day that was run already, as of a batch that comes again, leaves nothing to do.
        if status.is_failure:
            raise RuntimeError(f"the run ended as {status}")
