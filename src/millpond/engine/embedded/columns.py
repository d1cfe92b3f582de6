"""The columns that a staged batch carries beside the query's own, and names that are kept free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pyspark.sql.connect import proto
from pyspark.sql.types import StructType

from millpond.definitions import Expectation
from millpond.engine.protocol import EXPECTATION_COLUMN, SEQUENCE_COLUMN
from millpond.errors import SourceLocation
from millpond.errors.engine import DuplicateColumnError, ReservedColumnError
from millpond.errors.names import InvalidNameError
from millpond.names import quote_identifier, split_name

RESERVED_PREFIX = "__millpond_"


def check_names(schema: StructType, *, where: SourceLocation | None) -> None:
    """Raise where two columns have one name, or one has a name of millpond's own.

    Raises:
        DuplicateColumnError: Two names differ in case at most.
        ReservedColumnError: A name begins as helper columns do.
    """
    names = Counter(name.casefold() for name in schema.names)
    repeated = [
        name
        for index, name in enumerate(schema.names)
        if names[name.casefold()] > 1
        and name.casefold() not in {other.casefold() for other in schema.names[:index]}
    ]
    if repeated:
        raise DuplicateColumnError.of(repeated, where=where)
    for name in schema.names:
        if name.casefold().startswith(RESERVED_PREFIX):
            raise ReservedColumnError.of(name, where=where)


def with_helper_columns(
    relation: Any,
    *,
    expectations: Sequence[Expectation],
    sequence: Any | None,
) -> Any:
    """All columns of a relation, whether each row meets each expectation, and its sequence."""
    helpers = [
        (EXPECTATION_COLUMN.format(index=index), is_met(text_expression(expectation.constraint)))
        for index, expectation in enumerate(expectations)
    ]
    if sequence is not None:
        helpers.append((SEQUENCE_COLUMN, sequence))
    if not helpers:
        return relation
    project = proto.Relation()
    project.project.input.CopyFrom(relation)
    project.project.expressions.add().unresolved_star.SetInParent()
    for name, expression in helpers:
        project.project.expressions.append(named(expression, name))
    return project


def named(expression: Any, name: str) -> Any:
    alias = proto.Expression()
    alias.alias.expr.CopyFrom(expression)
    alias.alias.name.append(name)
    return alias


def text_expression(text: str) -> Any:
    """An expression given as SQL text."""
    expression = proto.Expression()
    expression.expression_string.expression = text
    return expression


def sequence_expression(sequence_by: Any, schema: StructType, client: Any) -> Any:
    """The expression of `sequence_by`: a column's name, SQL text, or a `Column`."""
    if not isinstance(sequence_by, str):
        return sequence_by.to_plan(client)
    name = _column_name(sequence_by, schema)
    if name is None:
        return text_expression(sequence_by)
    expression = proto.Expression()
    expression.unresolved_attribute.unparsed_identifier = quote_identifier(name)
    return expression


def is_met(constraint: Any) -> Any:
    """Whether a constraint is true; null counts as not met."""
    expression = proto.Expression()
    expression.unresolved_function.function_name = "coalesce"
    expression.unresolved_function.arguments.append(constraint)
    expression.unresolved_function.arguments.add().literal.boolean = False
    return expression


def _column_name(text: str, schema: StructType) -> str | None:
    """The column that a text names, as it is or in backticks."""
    names = {name.casefold(): name for name in schema.names}
    if text.casefold() in names:
        return names[text.casefold()]
    try:
        parts = split_name(text)
    except InvalidNameError:
        return None
    return names.get(parts[0].casefold()) if len(parts) == 1 else None
