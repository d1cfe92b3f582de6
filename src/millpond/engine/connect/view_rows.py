"""The rows of a view that its expectations let through, and the error for one that must not be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql.connect import proto

from millpond.definitions import Expectation, ExpectationAction
from millpond.engine.connect.expressions import (
    attribute,
    called,
    is_met,
    literal,
    met_or_raised,
    named,
    text_expression,
)
from millpond.errors import SourceLocation
from millpond.errors.flows import ExpectationViolationError

# Begins what a query of ours raises in the engine; the view, the expectation's name and its
# constraint follow, as JSON.
_VIOLATION = "millpond: expectation violated: "
# Numbers the rows of a view.
_ROW_COLUMN = "__millpond_view_row"


def kept_rows(
    relation: Any, expectations: Sequence[Expectation], *, view: str, numbered: bool
) -> Any:
    """Filter a view's relation by its expectations; those with the action WARN change nothing.

    Args:
        numbered: Whether rows are numbered to keep a check that fails behind the view's own
            filters and joins, and before those of its readers. Sail moves it otherwise; Spark
            leaves it where it is, and can't number the rows of a stream.
    """
    for expectation in expectations:
        met = is_met(text_expression(expectation.constraint))
        if expectation.action is ExpectationAction.WARN:
            continue
        if expectation.action is ExpectationAction.FAIL:
            what = json.dumps([view, expectation.name, expectation.constraint])
            met = met_or_raised(met, literal(_VIOLATION + what))
            if numbered:
                relation = _of_numbered_rows(relation, met)
                continue
        relation = _filtered(relation, met)
    return relation


def _filtered(relation: Any, condition: Any) -> Any:
    filtered = proto.Relation()
    filtered.filter.input.CopyFrom(relation)
    filtered.filter.condition.CopyFrom(condition)
    return filtered


def _of_numbered_rows(relation: Any, condition: Any) -> Any:
    """Filter by a condition that names the rows' numbers, so that it needs them to be there."""
    numbers = proto.Relation()
    numbers.project.input.CopyFrom(relation)
    numbers.project.expressions.add().unresolved_star.SetInParent()
    number = named(called("monotonically_increasing_id"), _ROW_COLUMN)
    numbers.project.expressions.append(number)
    is_there = called(">=", attribute(_ROW_COLUMN), literal(0))
    without = proto.Relation()
    without.drop.input.CopyFrom(_filtered(numbers, called("when", is_there, condition)))
    without.drop.column_names.append(_ROW_COLUMN)
    return without


def violation_in(message: str, *, where: SourceLocation | None) -> ExpectationViolationError | None:
    """The error for an engine's message, if a filter of `kept_rows` is what failed."""
    _, found, what = message.partition(_VIOLATION)
    if not found:
        return None
    (view, name, constraint), _ = json.JSONDecoder().raw_decode(what)
    return ExpectationViolationError.from_view(
        view, expectation=name, constraint=constraint, where=where
    )
