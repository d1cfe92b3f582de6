"""Changes the SQL texts of bound plans to what Sail can read and plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from millpond.engine.connect.messages import input_relations
from millpond.engine.connect.plan import ConnectPlan
from millpond.engine.embedded.star_columns import written_out
from millpond.engine.sqltext.order_by import sorted_by_position


def change_texts(root: Any, plan: ConnectPlan, client: Any) -> None:
    """Change the texts of a bound plan in place.

    Args:
        root: `plan`, bound.

    Raises:
        MillpondError: A text can't be changed so.
    """
    for sql, named in _texts(root, ()):
        sql.query = sorted_by_position(written_out(sql, named, plan=plan, client=client))


def _texts(relation: Any, named: tuple[Any, ...]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Each SQL text, behind those that it names, with what gives names around it."""
    if relation.WhichOneof("rel_type") == "sql":
        yield relation.sql, named
    elif relation.WhichOneof("rel_type") == "with_relations":
        for reference in relation.with_relations.references:
            yield from _texts(reference, named)
        yield from _texts(relation.with_relations.root, (*named, relation.with_relations))
    else:
        for child in input_relations(relation):
            yield from _texts(child, named)
