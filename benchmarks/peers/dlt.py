"""dlt loading into DuckDB: the rows of a batch's merge keys are deleted, then its rows inserted."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.peer import THREADS, DatabasePeer


class MergeKey(DatabasePeer):
    label = "dlt into DuckDB, merge_key"
    how = (
        "`write_disposition='merge'` with `merge_key`: one transaction, through a staging table; "
        "rows are given as Arrow tables. Its state of runs is counted."
    )
    environment = "dlt"
    relation = "bench.t"

    def prepare(self, files: list[Path]) -> None:
        import pyarrow.parquet as pq

        self.open()
        for file in files:
            self._run(pq.read_table(file), "append")

    def open(self) -> None:
        os.environ.update(
            {
                "DLT_DATA_DIR": str(self.folder / "dlt"),
                "RUNTIME__DLTHUB_TELEMETRY": "false",
                "RUNTIME__LOG_LEVEL": "ERROR",
                "NORMALIZE__WORKERS": "1",
                "LOAD__WORKERS": str(THREADS),
            }
        )
        import dlt

        self._pipeline = dlt.pipeline(
            "bench",
            pipelines_dir=str(self.folder / "pipelines"),
            destination=dlt.destinations.duckdb(str(self.database)),
            dataset_name="bench",
        )

    def _run(self, rows: object, disposition: str) -> None:
        import dlt

        resource = dlt.resource(
            rows,
            name="t",
            write_disposition=disposition,
            merge_key="k",
            columns={"k": {"nullable": True}},
        )
        self._pipeline.run(resource).raise_on_failed_jobs()

    def apply(self, number: int, batch: Path) -> None:  # noqa: ARG002 - it numbers its own loads
        import pyarrow.parquet as pq

        self._run(pq.read_table(batch), "merge")
