"""Expectations of a view that fail the update look at the rows of the view: at all, and no others."""

from __future__ import annotations

from millpond.errors.flows import ExpectationViolationError
from tests.pipeline_folder import PipelineFolder
from tests.spark.server import SparkServer
from tests.spark.test_takeover import on_spark

VIEW = """\
CREATE TEMPORARY VIEW {name}_rows (CONSTRAINT real EXPECT (v > 0) ON VIOLATION FAIL UPDATE)
AS {query};
CREATE MATERIALIZED VIEW {name} AS SELECT * FROM {name}_rows {reader};
"""
JOIN = "SELECT r.* FROM readings r JOIN sites s ON r.k = s.k"


def test_a_row_that_a_join_leaves_out_does_not_count_and_one_that_a_reader_leaves_out_does(
    folder: PipelineFolder, spark_server: SparkServer
) -> None:
    folder.write(
        "a.sql",
        VIEW.format(name="joined", query=JOIN, reader="")
        + VIEW.format(name="filtered", query="SELECT * FROM readings WHERE k = 'a'", reader="")
        + VIEW.format(name="failed", query="SELECT * FROM readings", reader="WHERE k = 'a'"),
    )
    folder.feed("readings", [{"k": "a", "v": 1}, {"k": "b", "v": -1}])
    folder.feed("sites", [{"k": "a"}])
    folder.configure(on_spark(spark_server))
    errors = {flow.name.rpartition(".")[2]: flow.error for flow in folder.run().flows}
    assert isinstance(errors.pop("failed"), ExpectationViolationError)
    assert errors == {"joined": None, "filtered": None}
    assert folder.rows("joined") == folder.rows("filtered") == [("a", 1)]
