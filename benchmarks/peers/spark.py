"""Apache Spark with Delta Lake, in the process and a JVM that it starts: a stream of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.peer import THREADS, DeltaPeer

JARS = Path(__file__).parents[2] / ".build" / "spark" / "jars"
SCHEMA = (
    "k BIGINT, line INT, seq BIGINT, status STRING, amount DOUBLE, at TIMESTAMP, token STRING, "
    "kind INT"
)


class ForeachBatch(DeltaPeer):
    """A stream that is started once, and takes each file that comes into a folder as a batch."""

    environment = "spark"
    vectors = True

    def open(self) -> None:
        from pyspark.sql import SparkSession

        self._landing = self.folder / "landing"
        self._landing.mkdir(exist_ok=True)
        self._spark = (
            SparkSession.builder.master(f"local[{THREADS}]")
            .config("spark.driver.memory", "4g")
            .config("spark.driver.extraClassPath", f"{JARS}/*")
            .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
            .config(
                "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
            )
            .config("spark.sql.session.timeZone", "UTC")
            # As many as there are threads, where the defaults are for a cluster.
            .config("spark.sql.shuffle.partitions", str(THREADS))
            .config("spark.databricks.delta.snapshotPartitions", str(THREADS))
            .config("spark.ui.enabled", "false")
            .getOrCreate()
        )
        self._query = (
            self._spark.readStream.schema(SCHEMA)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(self._landing))
            .writeStream.foreachBatch(self.replace)
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .start()
        )

    def replace(self, rows: Any, number: int) -> None:
        """Replace the rows of a batch's keys; `rows` is a DataFrame."""
        raise NotImplementedError

    def apply(self, number: int, batch: Path) -> None:
        target = self._landing / f"{number:04}.parquet"
        if not target.exists():
            target.symlink_to(batch)
        self._query.processAllAvailable()

    def close(self) -> None:
        self._query.stop()
        self._spark.stop()


class Merge(ForeachBatch):
    label = "Spark with Delta, MERGE delete, then append"
    how = "In `foreachBatch`: two commits, with deletion vectors. A file that comes again is none."

    def replace(self, rows: Any, number: int) -> None:  # noqa: ARG002 - Spark keeps the numbers
        rows.persist()
        rows.select("k").distinct().createOrReplaceTempView("keys")
        rows.sparkSession.sql(
            f"MERGE INTO delta.`{self.table}` AS t USING keys AS s ON t.k <=> s.k "
            "WHEN MATCHED THEN DELETE"
        )
        rows.write.format("delta").mode("append").save(str(self.table))
        rows.unpersist()


class ReplaceOn(ForeachBatch):
    label = "Spark with Delta, replaceOn"
    how = "In `foreachBatch`, the overwrite that Delta has since 4.3: one commit, deletion vectors."

    def replace(self, rows: Any, number: int) -> None:  # noqa: ARG002 - Spark keeps the numbers
        rows.alias("s").write.format("delta").mode("overwrite").option(
            "replaceOn", "t.k <=> s.k"
        ).option("targetAlias", "t").save(str(self.table))
