"""Flows that one engine goes on with where the other left them, over the same folders."""

from __future__ import annotations

import pytest

from millpond.errors.flows import ExpectationViolationError
from millpond.errors.takeover import CheckpointOfOtherEngineError
from millpond.runner.project import load
from tests.pipeline_folder import PipelineFolder
from tests.spark.server import SparkServer

PRICES = """\
CREATE OR REFRESH STREAMING TABLE prices
FLOW REPLACE USING (supplier) SEQUENCE BY sent BY NAME
SELECT supplier, article, sent FROM STREAM(lists);
"""
COPIES = "CREATE OR REFRESH STREAMING TABLE copies AS SELECT * FROM STREAM lists;\n"
FAILING = """\
CREATE OR REFRESH STREAMING TABLE copies (CONSTRAINT sent EXPECT (sent > 0) ON VIOLATION FAIL UPDATE)
AS SELECT * FROM STREAM lists;
"""
COUNT = "CREATE OR REFRESH MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM prices;\n"


def on_spark(server: SparkServer) -> dict[str, str]:
    return {"millpond.engine": server.url, "millpond.spark.tables": "storage"}


def send(folder: PipelineFolder, supplier: str, article: str, sent: int) -> None:
    folder.feed("lists", [{"supplier": supplier, "article": article, "sent": sent}])


def update(folder: PipelineFolder, **conf: str) -> None:
    from millpond.runner import run_update

    result = run_update(folder.project(**conf))
    assert not result.problems, result.problems
    for flow in result.flows:
        if flow.error is not None:
            raise flow.error


def test_a_flow_goes_on_from_engine_to_engine_and_reads_each_row_once(
    folder: PipelineFolder, spark_server: SparkServer
) -> None:
    folder.write("a.sql", PRICES + COPIES + COUNT)
    send(folder, "acme", "pen", 1)
    update(folder)
    send(folder, "acme", "ink", 2)
    send(folder, "tulip", "book", 1)
    update(folder, **on_spark(spark_server))
    assert folder.rows("prices") == [("acme", "ink", 2), ("tulip", "book", 1)]
    update(folder, **on_spark(spark_server))
    send(folder, "acme", "late", 1)
    send(folder, "tulip", "map", 5)
    update(folder)
    assert folder.rows("prices") == [("acme", "ink", 2), ("tulip", "map", 5)]
    assert folder.rows("counted") == [(2,)]
    assert sorted(folder.rows("copies")) == [
        ("acme", "ink", 2),
        ("acme", "late", 1),
        ("acme", "pen", 1),
        ("tulip", "book", 1),
        ("tulip", "map", 5),
    ]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT DISTINCT supplier FROM STREAM lists", "keeps state"),
        (
            "SELECT supplier FROM STREAM lists UNION ALL SELECT supplier FROM STREAM more",
            "several streams",
        ),
    ],
)
def test_what_can_t_be_carried_over_is_refused_and_the_table_stays_as_it_is(
    folder: PipelineFolder, spark_server: SparkServer, query: str, reason: str
) -> None:
    folder.write("a.sql", f"CREATE OR REFRESH STREAMING TABLE kept AS {query};")
    send(folder, "acme", "pen", 1)
    folder.feed("more", [{"supplier": "tulip"}])
    update(folder)
    before = folder.rows("kept")
    send(folder, "new", "pen", 1)
    with pytest.raises(CheckpointOfOtherEngineError, match=reason):
        update(folder, **on_spark(spark_server))
    assert folder.rows("kept") == before
    update(folder)
    assert len(folder.rows("kept")) == len(before) + 1


def test_a_flow_that_was_skipped_after_it_came_back_reads_nothing_again(
    folder: PipelineFolder, spark_server: SparkServer
) -> None:
    folder.write("a.sql", COPIES)
    send(folder, "acme", "pen", 1)
    update(folder, **on_spark(spark_server))
    set_up_alone(folder)
    send(folder, "acme", "ink", 2)
    update(folder, **on_spark(spark_server))
    assert folder.rows("copies") == [("acme", "ink", 2), ("acme", "pen", 1)]


def set_up_alone(folder: PipelineFolder) -> None:
    """What an embedded update does before any of its flows runs."""
    project = folder.project()
    runtime = project.start_runtime()
    try:
        for dataset in load(project, runtime, for_update=True).resolved.graph.tables():
            runtime.set_up(dataset, reset=False)
    finally:
        runtime.close()


@pytest.mark.parametrize("first_is_spark", [True, False], ids=["from Spark", "to Spark"])
def test_a_flow_that_ended_amid_its_first_read_goes_on_by_the_other_engine_once_that_is_done(
    folder: PipelineFolder, spark_server: SparkServer, *, first_is_spark: bool
) -> None:
    spark = on_spark(spark_server)
    first, other = (spark, {}) if first_is_spark else ({}, spark)
    folder.write("a.sql", FAILING)
    send(folder, "acme", "pen", 1)
    send(folder, "acme", "ink", -1)
    with pytest.raises(ExpectationViolationError):
        update(folder, **first, **{"millpond.maxFilesPerTrigger": "1"})
    assert folder.rows("copies") == [("acme", "pen", 1)]
    folder.write("a.sql", COPIES)
    with pytest.raises(CheckpointOfOtherEngineError, match="before it had read its") as found:
        update(folder, **other)
    name = "Spark" if first_is_spark else "the embedded engine"
    assert f"run it once more by {name}, to its end" in str(found.value)
    update(folder, **first)
    send(folder, "acme", "late", 2)
    update(folder, **other)
    assert [row[1] for row in folder.rows("copies")] == ["ink", "late", "pen"]
