"""The rows of a view that its expectations let through, and the error for one that must not be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql.connect import proto

from millpond.definitions import Expectation, ExpectationAction
from millpond.engine.connect.expressions import is_met, literal, met_or_raised, text_expression
from millpond.errors import SourceLocation
from millpond.errors.flows import ExpectationViolationError

# Begins what a query of ours raises in the engine; the view, the expectation's name and its
# constraint follow, as JSON.
_VIOLATION = "millpond: expectation violated: "


def kept_rows(relation: Any, expectations: Sequence[Expectation], *, view: str) -> Any:
    """Filter a view's relation by its expectations; those with the action WARN change nothing."""
    for expectation in expectations:
        met = is_met(text_expression(expectation.constraint))
        if expectation.action is ExpectationAction.WARN:
            continue
        if expectation.action is ExpectationAction.FAIL:
            what = json.dumps([view, expectation.name, expectation.constraint])
            met = met_or_raised(met, literal(_VIOLATION + what))
        filtered = proto.Relation()
        filtered.filter.input.CopyFrom(relation)
        filtered.filter.condition.CopyFrom(met)
        relation = filtered
    return relation


def violation_in(message: str, *, where: SourceLocation | None) -> ExpectationViolationError | None:
    """The error for an engine's message, if a filter of `kept_rows` is what failed."""
    _, found, what = message.partition(_VIOLATION)
    if not found:
        return None
    (view, name, constraint), _ = json.JSONDecoder().raw_decode(what)
    return ExpectationViolationError.from_view(
        view, expectation=name, constraint=constraint, where=where
    )
