"""Turns what went wrong on a Spark server into errors that say what, where and what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import PySparkException

from millpond.definitions import Expectation
from millpond.engine.connect.answers import message_of, words_of
from millpond.engine.connect.engine import own_plan
from millpond.engine.connect.failures import running
from millpond.engine.connect.view_rows import violation_in
from millpond.engine.spark import SparkEngine
from millpond.engine.spark.connection import connected
from millpond.errors import MillpondError
from millpond.errors.engine import QueryRunError
from millpond.errors.flows import ExpectationViolationError
from millpond.errors.replace_using import ReplaceUsingNullSequenceError
from millpond.errors.spark import SparkTableRefusedError, SparkWorkerLateError
from millpond.graph import ResolvedDataset
from millpond.runner.schedule import Task
from millpond.runner.spark.batch_program import PROBLEM, BatchProblemError
from millpond.runner.spark.delta_failures import delta_failure

# What is behind an error of ours. The plan of the query has the same words, and is told as well.
_RAISED = re.compile(rf"(?:\A|\[USER_RAISED_EXCEPTION\] |BatchProblemError: )({PROBLEM}.*)")
_CAUSED_BY = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE)
_WRAPPERS = frozenset({"STREAM_FAILED", "TASK_WRITE_FAILED"})
WORKER_LATE = "Python worker failed to connect back"


@contextmanager
def set_up_explained(dataset: ResolvedDataset, engine: SparkEngine) -> Iterator[None]:
    """Say what the table of a dataset could not be set up for."""
    where = dataset.dataset.location
    try:
        with connected(engine.url, where=where):
            yield
    except PySparkException as error:
        raise SparkTableRefusedError.from_table(
            str(dataset.name), message_of(error), where=where
        ) from error


@contextmanager
def explained(task: Task, engine: SparkEngine) -> Iterator[None]:
    """Say what a flow failed for."""
    where = task.flow.flow.location
    try:
        with connected(engine.url, where=where), running(own_plan(task.flow.plan)):
            yield
    except QueryRunError as error:
        text = str(error.__cause__)
        better = (
            _problem(text, task)
            or _late_worker(text, task)
            or delta_failure(text, task, engine)
            or _root_cause(error)
        )
        raise better or error from error.__cause__
    except BatchProblemError as error:
        raise _problem(str(error), task) or error from error


def _problem(text: str, task: Task) -> MillpondError | None:
    """The error for what our own query or program found wrong with a batch."""
    raised = _RAISED.search(text)
    if raised is None:
        return None
    violation = violation_in(raised[1], where=task.flow.flow.location)
    if violation is not None:
        return violation
    try:
        return _told_problem(raised[1].removeprefix(PROBLEM), task)
    except (ValueError, LookupError, TypeError):
        # A server, or what lies before it, may cut long messages short.
        return None


def _late_worker(text: str, task: Task) -> MillpondError | None:
    """The error where the server was too busy to run Python: the query is not to blame."""
    if WORKER_LATE not in text:
        return None
    return SparkWorkerLateError.from_flow(task.flow.name, where=task.flow.flow.location)


def _told_problem(text: str, task: Task) -> MillpondError:
    """The error for a problem that is told as JSON.

    Raises:
        ValueError: It is not whole.
        LookupError: It lacks a part, or names what the dataset does not have.
        TypeError: It is something else.
    """
    told, rest = _json_in(text)
    flow, target = task.flow.name, str(task.dataset.name)
    if told["problem"] == "null_sequence":
        return ReplaceUsingNullSequenceError.from_batch(
            flow,
            target=target,
            batch_id=told["batch_id"],
            rows=told["rows"],
            sequence=task.flow.sequence_text,
            row_json=told["row_json"],
        )
    expectation = _named(task.dataset.dataset.expectations, told["expectation"])
    if told["problem"] == "expectation_row":
        # Spark ends at the first such row.
        row = rest.removeprefix(" row: ")
        _, behind = _json_in(row)
        return ExpectationViolationError.from_row(
            flow,
            target=target,
            expectation=expectation.name,
            constraint=expectation.constraint,
            row_json=row.removesuffix(behind),
        )
    return ExpectationViolationError.from_batch(
        flow,
        target=target,
        batch_id=told["batch_id"],
        expectation=expectation.name,
        constraint=expectation.constraint,
        failed_rows=told["failed_rows"],
        row_json=told["row_json"],
    )


def _root_cause(error: QueryRunError) -> QueryRunError | None:
    """The error with the words of what made a stream or a writer fail, which Spark tells last."""
    cause = error.__cause__
    assert isinstance(cause, PySparkException)
    behind = _CAUSED_BY.findall(str(cause))
    if cause.getCondition() not in _WRAPPERS or not behind:
        return None
    return QueryRunError.of(words_of(behind[-1]), where=error.where)


def _json_in(text: str) -> tuple[Any, str]:
    """The JSON that a text begins with, and the rest."""
    found, end = json.JSONDecoder().raw_decode(text)
    return found, text[end:]


def _named(expectations: tuple[Expectation, ...], name: str) -> Expectation:
    return {expectation.name: expectation for expectation in expectations}[name]
