"""Tables in folders, filled on a Spark server, are looked after with the embedded engine by hand."""

from __future__ import annotations

import pytest

from millpond.delta import VECTOR_FOLDER
from millpond.errors.maintenance import MaintenanceElsewhereError
from millpond.runner import maintain, run_update
from tests.pipeline_folder import PipelineFolder
from tests.spark.server import SparkServer

PRICES = """\
CREATE OR REFRESH STREAMING TABLE prices
TBLPROPERTIES (delta.deletedFileRetentionDuration = 'interval 0 seconds')
FLOW REPLACE USING (supplier) SEQUENCE BY sent BY NAME
SELECT supplier, article, sent FROM STREAM(lists);
"""


def update(folder: PipelineFolder, **conf: str) -> None:
    result = run_update(folder.project(**conf))
    assert not result.problems, result.problems
    assert [flow.error for flow in result.flows] == [None]


def test_vectors_that_nobody_needs_go_by_maintenance_with_the_embedded_engine(
    folder: PipelineFolder, spark_server: SparkServer
) -> None:
    on_spark = {"millpond.engine": spark_server.url, "millpond.spark.tables": "storage"}
    folder.write("a.sql", PRICES)
    suppliers = [f"supplier {number}" for number in range(9)]
    folder.feed("lists", [{"supplier": s, "article": "pen", "sent": 1} for s in suppliers])
    update(folder)
    folder.feed("lists", [{"supplier": suppliers[0], "article": "ink", "sent": 2}])
    update(folder)
    vectors = folder.table("prices") / VECTOR_FOLDER
    assert any(vectors.iterdir())
    folder.feed("lists", [{"supplier": s, "article": "ink", "sent": 3} for s in suppliers])
    update(folder, **on_spark)
    wanted = sorted((s, "ink", 3) for s in suppliers)
    assert any(vectors.iterdir())
    with pytest.raises(MaintenanceElsewhereError, match="Spark server"):
        maintain(folder.project(**on_spark))
    tables, problems = maintain(folder.project())
    assert not problems
    assert [table.problem for table in tables] == [None] * len(tables)
    assert not any(vectors.iterdir())
    assert sorted(folder.rows("prices")) == wanted
