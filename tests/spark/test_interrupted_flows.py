"""Streaming flows on Spark whose query ends early: by a row that fails it, or by others' commits."""

from __future__ import annotations

import threading
import time
from contextlib import closing, nullcontext
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from millpond.errors.flows import ExpectationViolationError
from millpond.errors.spark import SparkQueryStoppedError
from millpond.events import Event
from millpond.profiling import Profile
from millpond.runner import run_update
from millpond.runner.schedule import FlowStoppedError
from millpond.runner.spark import flow_run
from millpond.runner.spark.interrupted import ATTEMPTS, despite_interrupts
from millpond.runner.spark.progress import QueryProgress
from tests.pipeline_folder import PipelineFolder
from tests.spark.server import SparkServer
from tests.spark.test_server_errors import engine_at
from tests.spark.test_takeover import COPIES, on_spark, send, update

CHECKED = """\
CREATE OR REFRESH STREAMING TABLE copies
(CONSTRAINT sent EXPECT (sent > 0) ON VIOLATION FAIL UPDATE) AS SELECT * FROM STREAM lists;
CREATE OR REFRESH STREAMING TABLE prices
(CONSTRAINT sent EXPECT (sent > 0) ON VIOLATION FAIL UPDATE)
FLOW REPLACE USING (supplier) SEQUENCE BY sent BY NAME SELECT * FROM STREAM(lists);
"""
ROWS = 6


def test_batches_before_one_that_fails_are_counted(
    folder: PipelineFolder, spark_server: SparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that the query has ended before it is asked about its batches.
    monkeypatch.setattr(flow_run, "POLL_S", 120)
    folder.write("a.sql", CHECKED)
    send(folder, "acme", "pen", 1)
    send(folder, "acme", "ink", -1)
    conf = {**on_spark(spark_server), "millpond.maxFilesPerTrigger": "1"}
    events: list[Event] = []
    result = run_update(folder.project(**conf), listeners=[events.append])
    errors = [flow.error for flow in result.flows]
    assert all(isinstance(error, ExpectationViolationError) for error in errors), errors
    assert folder.rows("copies") == folder.rows("prices") == [("acme", "pen", 1)]
    batches = [event.origin.batch_id for event in events if "metrics" in event.detail]
    assert batches == [0, 0]


def test_a_stop_does_not_wait_for_the_queries_that_are_to_start_before() -> None:
    def stop() -> None:
        raise FlowStoppedError("flow")

    with flow_run.STARTING, pytest.raises(FlowStoppedError), flow_run.turn_to_start(stop):
        pass
    with flow_run.turn_to_start(stop):
        pass


def test_a_query_that_somebody_else_stopped_is_no_flow_that_completed(
    folder: PipelineFolder, spark_server: SparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries: list[Any] = []

    class Noted(QueryProgress):
        def __init__(self, query: Any, expectations: Any) -> None:
            super().__init__(query, expectations)
            queries.append(query)

    def stop(event: Event) -> None:
        """As another client of the session does, once the first batch is in."""
        if event.origin.batch_id == 0:
            queries[0].stop()

    monkeypatch.setattr(flow_run, "QueryProgress", Noted)
    folder.write("a.sql", COPIES)
    conf = {**on_spark(spark_server), "millpond.maxFilesPerTrigger": "1"}
    for number in range(ROWS):
        send(folder, f"s{number}", "pen", 1)
    (flow,) = run_update(folder.project(**conf), listeners=[stop]).flows
    assert isinstance(flow.error, SparkQueryStoppedError)
    before = len(folder.rows("copies"))
    assert before < ROWS
    profile = Profile()
    with profile.taken():
        update(folder, **conf)
    assert len(folder.rows("copies")) == ROWS
    # The server's own times, of each batch.
    batches = profile.spent["main.sales.copies", "run query, commit"]
    assert batches.seconds > 0
    assert batches.times == ROWS - before


def test_an_append_flow_goes_on_after_others_changed_the_properties_of_its_table(
    folder: PipelineFolder, spark_server: SparkServer
) -> None:
    folder.write("a.sql", COPIES)
    conf = {**on_spark(spark_server), "millpond.maxFilesPerTrigger": "1"}
    send(folder, "acme", "pen", 1)
    update(folder, **conf)
    for number in range(1, ROWS):
        send(folder, f"s{number}", "pen", 1)
    path = folder.table("copies")
    before = DeltaTable(path).version()
    ended = threading.Event()

    def change() -> None:
        """Change properties in a row, once the first batch is in."""
        with closing(engine_at(spark_server.url)) as engine:
            while not ended.is_set() and DeltaTable(path).version() == before:
                time.sleep(0.05)
            for number in range(ROWS):
                engine.rows(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (note = '{number}')")

    changing = threading.Thread(target=change)
    changing.start()
    try:
        update(folder, **conf)
    finally:
        ended.set()
        changing.join()
    assert len(folder.rows("copies")) == ROWS


@pytest.mark.parametrize(
    ("failures", "asked"),
    [(0, 1), (1, 2), (2, 3), (3, 3)],
)
def test_what_a_stop_cancels_is_asked_again_as_often_as_a_stop_may(
    failures: int, asked: int
) -> None:
    times: list[int] = []

    def ask() -> None:
        times.append(len(times))
        if len(times) <= failures:
            raise SparkConnectGrpcException("[OPERATION_CANCELED] The operation is cancelled.")

    expected = pytest.raises(SparkConnectGrpcException) if failures >= ATTEMPTS else nullcontext()
    with expected:
        despite_interrupts(ask)
    assert len(times) == asked


def test_what_fails_otherwise_is_not_asked_again() -> None:
    times: list[int] = []

    def ask() -> None:
        times.append(len(times))
        raise SparkConnectGrpcException("[TABLE_OR_VIEW_NOT_FOUND] nowhere")

    with pytest.raises(SparkConnectGrpcException, match="nowhere"):
        despite_interrupts(ask)
    assert len(times) == 1
