"""Spark merges into a pipeline's table while the embedded engine applies batches to it."""

from __future__ import annotations

import random
from pathlib import Path

from tests.concurrency.foreign_writers import merged, wait_for
from tests.concurrency.shared_target import TABLES, SharedTarget
from tests.concurrency.table_history import TableHistory
from tests.spark.server import SparkServer, session_of

BATCHES = 20
MERGES = 3


def test_merges_of_spark_and_batches_go_one_after_the_other(
    tmp_path: Path, spark_server: SparkServer
) -> None:
    target = SharedTarget.made(tmp_path / "pipeline", random.Random(11))
    for _ in range(BATCHES):
        target.feed()
    prices = target.table("prices")
    rows = [target.row() | {"k": key} for key in ("a", "b", "spark")]
    update = target.update()
    wait_for([target.table(name) for name in TABLES])
    with session_of(spark_server) as spark:
        for mark, row in enumerate(rows):
            spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", str(mark))
            spark.sql(
                f"MERGE INTO delta.`{prices}` AS t USING (SELECT '{row['k']}' AS k, "
                f"{row['v']}L AS v, {row['s']}L AS s) AS n ON t.k = n.k "
                "WHEN MATCHED THEN UPDATE SET v = n.v WHEN NOT MATCHED THEN INSERT *"
            ).collect()
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
