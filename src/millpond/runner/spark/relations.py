"""What a flow's rows pass through before they are written: their checks, and the table's types."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.connect import proto

from millpond.definitions import Expectation, ExpectationAction
from millpond.engine.connect.columns import with_helper_columns
from millpond.engine.connect.expressions import (
    attribute,
    called,
    literal,
    met_or_raised,
    named,
    text_expression,
)
from millpond.engine.protocol import EXPECTATION_COLUMN
from millpond.runner.spark.batch_program import PROBLEM
from millpond.runner.spark.nested_names import fitted_sql
from millpond.runner.spark.sql import type_sql

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

# Under this name a streaming query tells the counts of each batch: of all rows, of those kept, and
# of those that meet each expectation, in this order.
OBSERVATION = "millpond"


def with_checks(
    relation: Any,
    schema: StructType,
    table: StructType,
    expectations: Sequence[Expectation],
    *,
    as_table: bool = False,
) -> Any:
    """The rows in the table's types, each with whether it meets each expectation.

    Args:
        schema: The query's columns.
        table: Those of its table, which may be wider.
        as_table: Whether the rows get all of the table's columns, in its order and spelling.
    """
    checked = with_helper_columns(relation, expectations=expectations, sequence=None)
    given = {field.name.lower(): field for field in schema.fields}
    if as_table:
        wanted = [(field.name, field.dataType) for field in table.fields]
    else:
        types = {field.name.lower(): field.dataType for field in table.fields}
        wanted = [(field.name, types[field.name.lower()]) for field in schema.fields]
    if wanted == [(field.name, field.dataType) for field in schema.fields]:
        return checked
    columns = [
        named(_fitted(given.get(name.lower()), data_type), name) for name, data_type in wanted
    ]
    columns += [attribute(name) for name in _helpers(expectations)]
    return _project(checked, columns)


def _fitted(found: StructField | None, wanted: DataType) -> Any:
    """A column of the query in a type; null where the query does not give it."""
    if found is None:
        return text_expression(f"CAST(NULL AS {type_sql(wanted)})")
    if found.dataType == wanted:
        return attribute(found.name)
    return text_expression(fitted_sql(found.name, found.dataType, wanted))


def counted_and_kept(checked: Any, schema: StructType, expectations: Sequence[Expectation]) -> Any:
    """The query's columns of the rows that expectations leave, which are counted on the way.

    A row that must not be fails the query, with what is wrong with it.
    """
    names = _helpers(expectations)
    drops = [
        attribute(name)
        for name, expectation in zip(names, expectations, strict=True)
        if expectation.action is ExpectationAction.DROP
    ]
    kept = functools.reduce(lambda left, right: called("and", left, right), drops, literal(True))
    counts = [named(called("count", literal("1")), "rows"), named(called("count_if", kept), "kept")]
    counts += [
        named(called("count_if", attribute(name)), f"passed_{index}")
        for index, name in enumerate(names)
    ]
    relation = proto.Relation()
    relation.collect_metrics.input.CopyFrom(checked)
    relation.collect_metrics.name = OBSERVATION
    relation.collect_metrics.metrics.extend(counts)
    own = [attribute(name) for name in schema.names]
    # Rows that are dropped may not fail either, so those that fail are looked for first.
    for expectation, name in zip(expectations, names, strict=True):
        if expectation.action is ExpectationAction.FAIL:
            met = met_or_raised(attribute(name), _message(expectation, own))
            relation = _filter(relation, met)
    for drop in drops:
        relation = _filter(relation, drop)
    return _project(relation, own) if names else relation


def _message(expectation: Expectation, columns: Sequence[Any]) -> Any:
    """What a row that must not be is told with: the expectation's name and the row as JSON."""
    told = json.dumps({"problem": "expectation_row", "expectation": expectation.name})
    with_nulls = called("map", literal("ignoreNullFields"), literal("false"))
    row = called("to_json", called("struct", *columns), with_nulls)
    return called("concat", literal(f"{PROBLEM}{told} row: "), row)


def _helpers(expectations: Sequence[Expectation]) -> list[str]:
    return [EXPECTATION_COLUMN.format(index=index) for index in range(len(expectations))]


def _filter(relation: Any, condition: Any) -> Any:
    found = proto.Relation()
    found.filter.input.CopyFrom(relation)
    found.filter.condition.CopyFrom(condition)
    return found


def _project(relation: Any, columns: Sequence[Any]) -> Any:
    found = proto.Relation()
    found.project.input.CopyFrom(relation)
    found.project.expressions.extend(columns)
    return found
