"""Ways to parse a text and look at what came out."""

from __future__ import annotations

import pytest

from millpond.sql import parse_file


@pytest.fixture
def parse():
    """Parse a text that has no problem, in catalog `main` and schema `sales`."""

    def parse(text, **configuration):
        pipeline, problems = parse_file(
            text, file="a.sql", catalog="main", schema="sales", configuration=configuration
        )
        assert [str(problem) for problem in problems] == []
        return pipeline

    return parse


@pytest.fixture
def parse_flow(parse):
    """Parse a text that defines one flow, and return it."""

    def parse_flow(text, **configuration):
        (flow,) = parse(text, **configuration).flows
        return flow

    return parse_flow


@pytest.fixture
def parse_dataset(parse):
    """Parse a text that defines one dataset, and return it."""

    def parse_dataset(text, **configuration):
        (dataset,) = parse(text, **configuration).datasets
        return dataset

    return parse_dataset


@pytest.fixture
def problems():
    """Parse a text and return every problem as (class, line, column, what the caret marks)."""

    def problems(text, **configuration):
        _, found = parse_file(
            text, file="a.sql", catalog="main", schema="sales", configuration=configuration
        )
        return [pointed(problem) for problem in found]

    return problems


@pytest.fixture
def refused():
    """Parse a text that has one problem and defines nothing, and return the problem."""

    def refused(text, **configuration):
        pipeline, (problem,) = parse_file(
            text, file="a.sql", catalog="main", schema="sales", configuration=configuration
        )
        assert not pipeline.datasets
        assert not pipeline.flows
        return problem

    return refused


@pytest.fixture
def refusal(refused):
    """Like `refused`, but returned as (class, line, column, what the caret marks)."""
    return lambda text, **configuration: pointed(refused(text, **configuration))


def pointed(problem):
    """Class and place of a problem, and the text above its carets (empty at the line's end)."""
    assert problem.where.file == "a.sql"
    shown, carets = problem.detail.split("\n")
    start, end = carets.index("^"), carets.rindex("^") + 1
    return (
        problem.error_class,
        problem.where.line,
        problem.where.column,
        shown[start:end].strip(),
    )
