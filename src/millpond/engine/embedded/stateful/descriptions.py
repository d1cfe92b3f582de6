"""What operators keep, in words that stay the same from update to update.

State can be used again as long as the descriptions are equal. They hold all that gives the stored
rows their meaning, and nothing of what a user may change meanwhile: where a query stands, how it is
spaced, what is filtered or computed before and after.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import astuple
from typing import Any

from pyspark.sql.types import StructType

from millpond.engine.connect.cuts import Cut, cut_of, cuts
from millpond.engine.connect.expressions import digest, fingerprint
from millpond.engine.connect.messages import input_relations
from millpond.state import SHOWN

Description = Mapping[str, Any]

# The beginning of the names of columns that a query has only since it was taken apart.
_HIDDEN = "__millpond_"


def described(cut: Cut, kept: Mapping[str, Any]) -> Description:
    """The description of an operator, with what to call it in messages."""
    where = cut.place.where
    return {
        **kept,
        "streams": cut.streams,
        "name": cut.place.name,
        "where": None if where is None else astuple(where),
    }


def columns_of(schema: StructType) -> list[str]:
    """Columns of stored rows. They are found again by their places: both names and order count."""
    return [f"{field.name.lower()} {field.dataType.simpleString()}" for field in schema.fields]


def hidden_expressions(relation: Any) -> list[Any]:
    """What the columns are computed by that the query's text has no name for."""
    found: list[Any] = []
    for step in _steps(relation):
        if step.WhichOneof("rel_type") == "with_columns":
            found += [
                fingerprint(alias.expr)
                for alias in step.with_columns.aliases
                if alias.name[0].startswith(_HIDDEN)
            ]
    return found


def told_apart(root: Any, descriptions: Mapping[str, Description]) -> dict[str, Description]:
    """Descriptions that are equal no more where the inputs are not.

    Operators are told by their order. Where two would take each other's state for their own once
    they are exchanged, all that is computed before them counts, too.

    Args:
        root: The bound query, as yet with its operators.
    """
    found = dict(descriptions)
    counts = Counter(_key(description) for description in descriptions.values())
    for relation, cut in cuts(root):
        description = descriptions[cut.operator]
        has_equal = counts[_key(description)] > 1
        sides = description.get("sides")
        if has_equal or (sides and len({*cut.streams}) < len(cut.streams)):
            below = [fingerprint(each) for each in input_relations(relation.hint.input)]
            found[cut.operator] = {**description, "inputs": {"digest": digest(below)}}
    return found


def _key(description: Description) -> str:
    kept = {name: value for name, value in description.items() if name not in SHOWN}
    return json.dumps(kept, sort_keys=True)


def _steps(relation: Any) -> Iterator[Any]:
    """A relation and those below, down to where it is cut."""
    if cut_of(relation) is not None:
        return
    yield relation
    for below in input_relations(relation):
        yield from _steps(below)
