"""What a batch tells of itself, in its commit or its failure, where that is not as it should be."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from millpond.errors.flows import ExpectationViolationError
from millpond.errors.spark import SparkWorkerLateError
from millpond.runner.spark.batch_program import PROBLEM, _until_no_conflict
from millpond.runner.spark.delta_failures import delta_failure
from millpond.runner.spark.failures import _late_worker, _problem
from millpond.runner.spark.history import _result

TOLD = {"batchId": 3, "rowsRead": 5, "rowsDropped": 1, "expectations": []}


def task() -> Any:
    """A task without expectations."""
    return SimpleNamespace(
        flow=SimpleNamespace(name="f", flow=SimpleNamespace(location=None), sequence_text="s"),
        dataset=SimpleNamespace(name="t", dataset=SimpleNamespace(expectations=())),
    )


@pytest.mark.parametrize(
    "told",
    [
        '{"problem": "null_seq',
        "",
        '{"problem": "null_sequence"}',
        '{"problem": "expectation_row", "expectation": "unknown"}',
        "[1]",
    ],
)
def test_a_problem_whose_words_are_cut_leaves_the_error_as_spark_told_it(told: str) -> None:
    assert _problem(f"{PROBLEM}{told}", task()) is None


def test_a_problem_that_is_told_whole_is_an_error_of_its_own() -> None:
    row = {"problem": "null_sequence", "batch_id": 1, "rows": 2, "row_json": '{"k":1}'}
    error = _problem(f"{PROBLEM}{json.dumps(row)}", task())
    assert "a null sequence (s)" in str(error)
    assert '{"k":1}' in str(error)


def test_the_row_that_fails_an_append_flow_is_shown_in_part_where_it_is_long() -> None:
    long = task()
    expectation = SimpleNamespace(name="short", constraint="length(k) < 9")
    long.dataset.dataset.expectations = (expectation,)
    row = json.dumps({"k": "x" * 5000})
    told = json.dumps({"problem": "expectation_row", "expectation": "short"})
    error = _problem(f"{PROBLEM}{told} row: {row}", long)
    assert isinstance(error, ExpectationViolationError)
    assert error.row_json == row
    assert row[:900] in str(error)
    assert len(str(error)) < 1500


def test_a_server_that_is_too_busy_for_python_is_no_fault_of_the_query() -> None:
    told = "org.apache.spark.SparkException: Python worker failed to connect back. SQLSTATE: XX"
    error = _late_worker(told, task())
    assert isinstance(error, SparkWorkerLateError)
    assert "did not start in time" in str(error)
    assert _late_worker("division by zero", task()) is None


def test_a_changed_source_that_is_no_table_of_the_flow_leaves_the_error_as_spark_told_it() -> None:
    without_tables = task()
    without_tables.flow.streams = (SimpleNamespace(table=None),)
    told = "[DELTA_SOURCE_IGNORE_DELETE] Detected deleted data from the source at version 3."
    engine: Any = None
    assert delta_failure(told, without_tables, engine) is None


@pytest.mark.parametrize(
    ("told", "attempts"),
    [
        ("[DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES] files were added", 2),
        ("[FOREACH_BATCH] failed: [DELTA_METADATA_CHANGED] by another", 2),
        ("[DELTA_PROTOCOL_CHANGED] by another", 2),
        ("[UNRESOLVED_COLUMN] no column `DELTA_CONCURRENT_APPEND`", 1),
    ],
)
def test_a_batch_is_tried_again_where_another_commit_came_first(told: str, attempts: int) -> None:
    made: list[str] = []

    def commit() -> None:
        made.append(told)
        if len(made) == 1:
            raise PySparkException(told)

    with nullcontext() if attempts > 1 else pytest.raises(PySparkException):
        _until_no_conflict(commit)
    assert len(made) == attempts


def test_a_commit_without_metrics_tells_a_batch_all_the_same() -> None:
    result = _result({"version": 7, "operationMetrics": None}, TOLD)
    assert (result.version, result.rows_read, result.rows_late) == (7, 5, 0)


def test_rows_that_were_counted_less_than_were_written_are_not_late() -> None:
    metrics = {"numOutputRows": "6"}
    assert _result({"version": 7, "operationMetrics": metrics}, TOLD).rows_late == 0
