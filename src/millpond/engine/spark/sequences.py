"""The sequence of a REPLACE USING flow as SQL, which the statement that replaces rows takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.errors.spark import NotOnSparkError

if TYPE_CHECKING:
    from pyspark.sql import Column


def sequence_sql(sequence_by: str | Column) -> str:
    """The text of a sequence that is an expression.

    Raises:
        NotOnSparkError: It is made of functions in Python.
    """
    if isinstance(sequence_by, str):
        return sequence_by
    expression: Any = sequence_by.to_plan(None)
    if expression.WhichOneof("expr_type") != "expression_string":
        raise NotOnSparkError.of(
            "A sequence that is a Column of functions",
            instead='write it as SQL text, such as sequence_by="coalesce(a, b)", or give it a '
            "name in the query, and name that",
        )
    return str(expression.expression_string.expression)
