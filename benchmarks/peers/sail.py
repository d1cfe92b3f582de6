"""Sail, the engine that millpond itself runs queries with, and its own MERGE into Delta tables."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peer import DeltaPeer


class Merge(DeltaPeer):
    label = "Sail, MERGE delete, then append"
    how = "Spark SQL in the process: two commits, and a reader in between sees neither version."
    environment = "sail"

    def open(self) -> None:
        from pysail.spark import SparkConnectServer
        from pyspark.sql import SparkSession

        # It runs for as long as something holds it.
        self._server = SparkConnectServer()
        self._server.start(background=True)
        _, port = self._server.listening_address
        self._spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
        self._spark.sql(f"CREATE TABLE t USING delta LOCATION '{self.table}'")

    def apply(self, number: int, batch: Path) -> None:  # noqa: ARG002 - it knows no numbers
        rows = self._spark.read.parquet(str(batch))
        rows.select("k").distinct().createOrReplaceTempView("keys")
        self._spark.sql(
            "MERGE INTO t USING keys AS s ON t.k = s.k WHEN MATCHED THEN DELETE"
        ).collect()
        rows.write.format("delta").mode("append").save(str(self.table))

    def close(self) -> None:
        self._spark.stop()
        self._server.stop()
