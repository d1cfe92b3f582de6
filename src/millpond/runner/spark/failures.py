"""Turns what went wrong on a Spark server into errors that say what, where and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from millpond.definitions import Expectation
from millpond.engine.connect.engine import own_plan
from millpond.engine.connect.failures import running
from millpond.engine.spark import SparkEngine
from millpond.engine.spark.connection import connected
from millpond.errors import MillpondError
from millpond.errors.engine import QueryRunError
from millpond.errors.flows import ExpectationViolationError
from millpond.errors.replace_using import ReplaceUsingNullSequenceError
from millpond.runner.schedule import Task
from millpond.runner.spark.batch_program import PROBLEM, BatchProblemError
from millpond.runner.spark.delta_failures import delta_failure


@contextmanager
def explained(task: Task, engine: SparkEngine) -> Iterator[None]:
    """Say what a flow failed for."""
    where = task.flow.flow.location
    try:
        with connected(engine.url, where=where), running(own_plan(task.flow.plan)):
            yield
    except QueryRunError as error:
        text = str(error.__cause__)
        better = _problem(text, task) or delta_failure(text, task, engine)
        raise better or error from error.__cause__
    except BatchProblemError as error:
        raise _problem(str(error), task) or error from error


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
