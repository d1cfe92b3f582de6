"""Checks that a sequence is one value for each row, from that row alone."""

from __future__ import annotations

from typing import Any

from millpond.engine.connect.expectations import problem_of_text
from millpond.engine.connect.messages import own_expressions
from millpond.engine.shapes.functions import GENERATORS, kind_of_function
from millpond.errors.engine import InvalidSequenceError

_REFUSED = {
    "sort_order": "gives a direction, such as desc(): the highest sequence always wins",
    "window": "holds a window function",
    "subquery_expression": "holds a subquery",
}


def check_sequence(expression: Any) -> None:
    """Check the expression of `sequence_by`.

    Raises:
        InvalidSequenceError: It is more or less than one value of a row.
    """
    for part in (expression, *own_expressions(expression)):
        problem = _problem(part)
        if problem is not None:
            raise InvalidSequenceError.of(problem)


def _problem(expression: Any) -> str | None:
    match expression.WhichOneof("expr_type"):
        case "expression_string":
            # Python functions may compute a sequence: it is stored, and compared as it was.
            return problem_of_text(expression.expression_string.expression, python_functions=())
        case "unresolved_function":
            return _problem_of_call(expression.unresolved_function.function_name)
        case kind:
            return _REFUSED.get(kind)


def _problem_of_call(name: str) -> str | None:
    if name.lower() in GENERATORS:
        return f"calls {name}, which gives several rows"
    if kind_of_function(name) is not None:
        return f"calls {name}, which looks at more than one row"
    return None
