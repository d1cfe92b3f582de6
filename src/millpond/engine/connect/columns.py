"""The columns that a staged batch carries beside the query's own, and names that are kept free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pyspark.sql.connect import proto
from pyspark.sql.types import StructType

from millpond.definitions import Expectation
from millpond.engine.connect.expressions import attribute, is_met, named, text_expression
from millpond.engine.protocol import EXPECTATION_COLUMN, SEQUENCE_COLUMN
from millpond.errors import SourceLocation
from millpond.errors.engine import DuplicateColumnError
from millpond.errors.graph import ReservedColumnNameError
from millpond.errors.names import InvalidNameError
from millpond.names import split_name

RESERVED_PREFIX = "__millpond_"
HELPER_COLUMNS = (SEQUENCE_COLUMN, EXPECTATION_COLUMN.format(index=""))


def check_unique(schema: StructType, *, where: SourceLocation | None) -> None:
    """Raise where two columns have one name.

    Raises:
        DuplicateColumnError: Two names differ in case at most.
    """
    counts = Counter(name.lower() for name in schema.names)
    repeated = {name.lower(): name for name in schema.names if counts[name.lower()] > 1}
    if repeated:
        raise DuplicateColumnError.of([*repeated.values()], where=where)


def check_not_reserved(
    schema: StructType,
    *,
    where: SourceLocation,
    reserved: tuple[str, ...] = (RESERVED_PREFIX,),
) -> None:
    """Raise where the name of a column begins as one of millpond's own does.

    Raises:
        ReservedColumnNameError: There is one.
    """
    for name in schema.names:
        if name.lower().startswith(reserved):
            raise ReservedColumnNameError.from_column("The query", name, where=where)


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


def sequence_expression(sequence_by: Any, schema: StructType, client: Any) -> Any:
    """The expression of `sequence_by`: a column's name, SQL text, or a `Column`."""
    if not isinstance(sequence_by, str):
        return sequence_by.to_plan(client)
    name = _column_name(sequence_by, schema)
    if name is None:
        return text_expression(sequence_by)
    return attribute(name)


def _column_name(text: str, schema: StructType) -> str | None:
    """The column that a text names, as it is or in backticks."""
    names = {name.lower(): name for name in schema.names}
    if text.lower() in names:
        return names[text.lower()]
    try:
        parts = split_name(text)
    except InvalidNameError:
        return None
    return names.get(parts[0].lower()) if len(parts) == 1 else None
