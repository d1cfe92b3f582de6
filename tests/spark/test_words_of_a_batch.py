"""What a batch tells of itself, in its commit or its failure, where that is not as it should be."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from millpond.runner.spark.batch_program import PROBLEM
from millpond.runner.spark.failures import _problem
from millpond.runner.spark.history import _result

TOLD = {"batchId": 3, "rowsRead": 5, "rowsDropped": 1, "expectations": []}


def task() -> Any:
    """A task without expectations."""
    return SimpleNamespace(
        flow=SimpleNamespace(name="f", flow=SimpleNamespace(location=None)),
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
    whole = json.dumps({"problem": "null_sequence", "batch_id": 1, "rows": 2})
    assert _problem(f"{PROBLEM}{whole}", task()) is not None


def test_a_commit_without_metrics_tells_a_batch_all_the_same() -> None:
    result = _result({"version": 7, "operationMetrics": None}, TOLD)
    assert (result.version, result.rows_read, result.rows_late) == (7, 5, 0)


def test_rows_that_were_counted_less_than_were_written_are_not_late() -> None:
    metrics = {"numOutputRows": "6"}
    assert _result({"version": 7, "operationMetrics": metrics}, TOLD).rows_late == 0
