"""Checks the expectations of a dataset against the columns of each query that feeds it."""

from __future__ import annotations

from millpond.definitions import Dataset
from millpond.engine.protocol import Engine
from millpond.errors import MillpondError
from millpond.graph.resolved import ResolvedFlow


def check(dataset: Dataset, flow: ResolvedFlow, engine: Engine) -> list[MillpondError]:
    """Every expectation of `dataset` that is no boolean expression over the flow's columns."""
    problems: list[MillpondError] = []
    for expectation in dataset.expectations:
        try:
            engine.check_expectation(expectation, flow.schema)
        except MillpondError as problem:
            problems.append(problem)
    return problems
