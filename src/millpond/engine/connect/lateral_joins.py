"""Puts generators in the place of lateral joins with table-valued functions.

`frame.lateralJoin(spark.tvf.explode(sf.col("xs").outer()))` says what `frame.select("*",
sf.explode("xs"))` says as well, and only the second is known to Sail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql.connect import proto

from millpond.engine.connect.expressions import called
from millpond.engine.connect.messages import input_relations

_OUTER = {name: f"{name}_outer" for name in ("explode", "posexplode", "inline")}
# These give a row for each row of the left side, or are outer themselves.
_ALWAYS_ROWS = frozenset({"stack", *_OUTER.values()})
_FUNCTION = "unresolved_table_valued_function"
_INNER = (proto.Join.JOIN_TYPE_INNER, proto.Join.JOIN_TYPE_CROSS)


def generator_of(relation: Any) -> Any | None:
    """The table-valued function that is the right side of a lateral join, if that is one."""
    kind = relation.WhichOneof("rel_type")
    if kind == "to_df":
        return generator_of(relation.to_df.input)
    return relation.unresolved_table_valued_function if kind == _FUNCTION else None


def with_generators(relation: Any) -> Any:
    """A copy of a relation with generators for lateral joins, where they say the same."""
    found = proto.Relation()
    found.CopyFrom(relation)
    _replace(found)
    return found


def _replace(relation: Any) -> None:
    for child in input_relations(relation):
        _replace(child)
    if relation.WhichOneof("rel_type") != "lateral_join":
        return
    join = relation.lateral_join
    function = generator_of(join.right)
    name = None if function is None else _generator(function.function_name.lower(), join)
    if function is None or name is None:
        return
    names = join.right.to_df.column_names if join.right.WhichOneof("rel_type") == "to_df" else ()
    rows = _projected(relation, called(name, *function.arguments), names)
    if _has_condition(join):
        filtered = proto.Relation()
        filtered.filter.input.CopyFrom(rows)
        filtered.filter.condition.CopyFrom(join.join_condition)
        rows = filtered
    rows.common.CopyFrom(relation.common)
    relation.CopyFrom(rows)


def _generator(name: str, join: Any) -> str | None:
    """The function that gives the rows of a lateral join, or `None` where there is none."""
    if name not in _OUTER and name not in _ALWAYS_ROWS:
        return None
    if join.join_type in _INNER:
        return name
    if join.join_type != proto.Join.JOIN_TYPE_LEFT_OUTER or _has_condition(join):
        return None
    return _OUTER.get(name, name)


def _has_condition(join: Any) -> bool:
    """Whether a join has a condition that is not simply true, as SQL's left join must have one."""
    return join.HasField("join_condition") and not join.join_condition.literal.boolean


def _projected(relation: Any, generator: Any, names: Sequence[str]) -> Any:
    found = proto.Relation()
    found.project.input.CopyFrom(relation.lateral_join.left)
    found.project.expressions.add().unresolved_star.SetInParent()
    if names:
        alias = proto.Expression()
        alias.alias.expr.CopyFrom(generator)
        alias.alias.name.extend(names)
        generator = alias
    found.project.expressions.append(generator)
    return found
