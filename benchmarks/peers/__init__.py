"""The tools that are measured, each in a small module of its own. Importing them needs none."""

from __future__ import annotations

from benchmarks.peer import Peer
from benchmarks.peers import (
    chdb,
    dbt,
    delta_rs,
    dlt,
    duckdb,
    duckrun,
    millpond,
    polars,
    sail,
    spark,
    sqlmesh,
    whole_run,
)

PEERS: dict[str, type[Peer]] = {
    "millpond": millpond.Flow,
    "millpond-pipeline": millpond.Pipeline,
    "millpond-copy-on-write": millpond.CopyOnWrite,
    "duckdb": duckdb.DeleteInsert,
    "duckdb-rule": duckdb.Rule,
    "duckdb-copy": duckdb.CopyToParquet,
    "delta-rs-overwrite": delta_rs.Overwrite,
    "delta-rs-merge": delta_rs.Merge,
    "sail": sail.Merge,
    "polars": polars.FullOverwrite,
    "chdb": chdb.ReplacingMergeTree,
    "dlt": dlt.MergeKey,
    "dbt": dbt.DeleteInsert,
    "sqlmesh": sqlmesh.ByPartition,
    "duckrun": duckrun.DeleteInsert,
    "spark-merge": spark.Merge,
    "spark-replace-on": spark.ReplaceOn,
    "millpond-run": whole_run.Millpond,
    "spark-pipelines-run": whole_run.SparkPipelines,
}
