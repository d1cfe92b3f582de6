"""The rows of a view that its expectations let through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql.connect import proto

from millpond.definitions import Expectation, ExpectationAction
from millpond.engine.connect.expressions import called, is_met, literal, text_expression


def kept_rows(relation: Any, expectations: Sequence[Expectation], *, view: str) -> Any:
    """Filter a view's relation by its expectations; those with the action WARN change nothing."""
    for expectation in expectations:
        met = is_met(text_expression(expectation.constraint))
        if expectation.action is ExpectationAction.WARN:
            continue
        if expectation.action is ExpectationAction.FAIL:
            message = f"a row of the view {view} does not meet the expectation {expectation.name!r}"
            met = called("when", met, literal(True), called("raise_error", literal(message)))
        filtered = proto.Relation()
        filtered.filter.input.CopyFrom(relation)
        filtered.filter.condition.CopyFrom(met)
        relation = filtered
    return relation
