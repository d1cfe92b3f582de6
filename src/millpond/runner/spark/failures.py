"""Turns what went wrong on a Spark server into errors that say what, where and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from millpond.definitions import Expectation
from millpond.engine.connect.engine import own_plan
from millpond.engine.connect.failures import running
from millpond.engine.spark import SparkEngine
from millpond.engine.spark.server import shown
from millpond.errors import MillpondError
from millpond.errors.flows import ExpectationViolationError
from millpond.errors.replace_using import ReplaceUsingNullSequenceError
from millpond.errors.spark import SparkConnectionLostError, SparkServerRestartedError
from millpond.runner.schedule import Task
from millpond.runner.spark.batch_program import PROBLEM, BatchProblemError

_SESSION_GONE = ("SESSION_CHANGED", "SESSION_NOT_FOUND", "SESSION_CLOSED", "OPERATION_NOT_FOUND")
_CONNECTION_LOST = ("UNAVAILABLE", "RETRIES_EXCEEDED", "Connection refused", "Socket closed")


@contextmanager
def explained(task: Task, engine: SparkEngine) -> Iterator[None]:
    """Say what a flow failed for."""
    from pyspark.errors import PySparkException

    where = task.flow.flow.location
    try:
        with running(own_plan(task.flow.plan)):
            yield
    except MillpondError as error:
        cause = error.__cause__
        if isinstance(cause, PySparkException):
            raise _better(cause, task, engine) or error from cause
        raise
    except BatchProblemError as error:
        raise _problem(str(error), task) or error from error
    except Exception as error:
        if _is_connection(error):
            raise SparkConnectionLostError.from_error(
                shown(engine.url), _first_line(error), where=where
            ) from error
        raise


def _better(error: Any, task: Task, engine: SparkEngine) -> MillpondError | None:
    text = str(error)
    where = task.flow.flow.location
    if any(word in text for word in _SESSION_GONE):
        return SparkServerRestartedError.from_url(shown(engine.url), where=where)
    if _is_connection(error):
        return SparkConnectionLostError.from_error(
            shown(engine.url), _first_line(error), where=where
        )
    return _problem(text, task)


def _is_connection(error: BaseException) -> bool:
    text = f"{type(error).__name__} {error}"
    return any(word in text for word in _CONNECTION_LOST)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _problem(text: str, task: Task) -> MillpondError | None:
    """The error for what the batch program found wrong with a batch."""
    _, found, rest = text.partition(PROBLEM + "{")
    if not found:
        return None
    told, end = json.JSONDecoder().raw_decode("{" + rest)
    flow, target = task.flow.name, str(task.dataset.name)
    if told["problem"] == "null_sequence":
        return ReplaceUsingNullSequenceError.from_batch(
            flow, target=target, batch_id=told["batch_id"], rows=told["rows"]
        )
    expectation = _named(task.dataset.dataset.expectations, told["expectation"])
    if told["problem"] == "expectation_row":
        # Spark ends at the first such row.
        row = ("{" + rest)[end:].removeprefix(" row: ").splitlines()[0]
        return ExpectationViolationError.from_row(
            flow,
            target=target,
            expectation=expectation.name,
            constraint=expectation.constraint,
            row_json=row,
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


def _named(expectations: tuple[Expectation, ...], name: str) -> Expectation:
    return next(expectation for expectation in expectations if expectation.name == name)
