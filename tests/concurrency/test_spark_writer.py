"""Spark merges into a pipeline's table while the embedded engine applies batches to it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from tests.concurrency.foreign_writers import merged, wait_for
from tests.concurrency.shared_target import TABLES, SharedTarget
from tests.concurrency.table_history import TableHistory
from tests.spark.server import SparkServer, session_of

BATCHES = 10
ATTEMPTS = 30
MERGES = 2


def run_again_after_conflicts(spark: Any, statement: str) -> None:
    """Run a statement that Delta refuses as long as batches come in between."""
    for _ in range(ATTEMPTS):
        try:
            spark.sql(statement).collect()
        except PySparkException as error:
            if "DELTA_CONCURRENT" not in str(error):
                raise
        else:
            return
    pytest.fail("there was a conflict each time")


def test_merges_of_spark_and_batches_go_one_after_the_other(
    tmp_path: Path, spark_server: SparkServer
) -> None:
    target = SharedTarget.made(tmp_path / "pipeline", random.Random(11))
    for _ in range(BATCHES):
        target.feed()
    prices = target.table("prices")
    rows = [target.row() | {"k": key} for key in ("a", "spark")]
    update = target.update()
    wait_for([target.table(name) for name in TABLES])
    with session_of(spark_server) as spark:
        for mark, row in enumerate(rows):
            spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", str(mark))
            run_again_after_conflicts(
                spark,
                f"MERGE INTO delta.`{prices}` AS t USING (SELECT '{row['k']}' AS k, "
                f"{row['v']}L AS v, {row['s']}L AS s) AS n ON t.k = n.k "
                "WHEN MATCHED THEN UPDATE SET v = n.v WHEN NOT MATCHED THEN INSERT *",
            )
    said, _ = update.communicate(timeout=240)
    assert update.returncode == 0, said
    history = TableHistory.replayed(
        prices,
        applied=lambda number: target.applied("prices", number),
        foreign=dict(enumerate(map(merged, rows))),
    )
    history.check_batches(BATCHES)
    assert sum(n for who, n in history.foreign.items() if who.startswith("Apache-Spark")) == MERGES
    assert target.held("prices") == history.states[-1]
