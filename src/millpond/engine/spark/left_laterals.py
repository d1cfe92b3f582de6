"""Refuses left joins of a stream with a lateral function, which Spark's streams get wrong.

They give no row for a row of the stream for which the function gives none, and no error.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.connect import proto

from millpond.engine.connect.messages import input_relations
from millpond.engine.connect.plan import ConnectPlan
from millpond.engine.connect.reads import location_of
from millpond.engine.sqltext.analysis import TextAnalysis
from millpond.engine.sqltext.blocks import Outline
from millpond.errors import SourceLocation
from millpond.errors.spark import NotOnSparkError


def check_no_left_lateral(plan: ConnectPlan) -> None:
    """Raise where a streaming query has such a join.

    Raises:
        NotOnSparkError: It has.
    """
    if not plan.is_streaming:
        return
    for source in plan.sources:
        if isinstance(source, TextAnalysis):
            start = _start_in(source.outline)
            if start is not None:
                raise _refusal(source.source.locate(start))
    relation = _relation_in(plan.relation)
    if relation is not None:
        raise _refusal(location_of(relation) or plan.location)


def _refusal(where: SourceLocation | None) -> NotOnSparkError:
    return NotOnSparkError.of(
        "A left join of a stream with a lateral function",
        instead="Spark would lose rows: write LATERAL VIEW OUTER explode(..) t AS x in SQL, or "
        "select(.., explode_outer(..)) in Python",
        where=where,
    )


def _start_in(outline: Outline) -> int | None:
    for index, token in enumerate(outline.tokens):
        if token.word != "LATERAL" or outline.word(index - 1) != "JOIN":
            continue
        side = index - (3 if outline.word(index - 2) == "OUTER" else 2)
        if outline.word(side) == "LEFT":
            return outline.tokens[side].start
    return None


def _relation_in(relation: Any) -> Any | None:
    is_left = proto.Join.JOIN_TYPE_LEFT_OUTER
    if (
        relation.WhichOneof("rel_type") == "lateral_join"
        and relation.lateral_join.join_type == is_left
    ):
        return relation
    for child in input_relations(relation):
        found = _relation_in(child)
        if found is not None:
            return found
    return None
