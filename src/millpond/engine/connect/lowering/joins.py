"""FROM clauses as relations: joins, from left to right, and the generators behind them."""

from __future__ import annotations

from pyspark.sql.connect import proto

from millpond.engine.connect.lowering.items import Lowerings, item_part
from millpond.engine.connect.lowering.parts import Part
from millpond.engine.connect.lowering.refusals import refused
from millpond.engine.connect.lowering.relations import Join, Relation
from millpond.engine.connect.lowering.spans import Span, top_level
from millpond.engine.connect.lowering.streams import CteScope

_TYPES = {
    (): proto.Join.JOIN_TYPE_INNER,
    ("INNER",): proto.Join.JOIN_TYPE_INNER,
    ("CROSS",): proto.Join.JOIN_TYPE_CROSS,
    ("LEFT",): proto.Join.JOIN_TYPE_LEFT_OUTER,
    ("RIGHT",): proto.Join.JOIN_TYPE_RIGHT_OUTER,
    ("FULL",): proto.Join.JOIN_TYPE_FULL_OUTER,
    ("SEMI",): proto.Join.JOIN_TYPE_LEFT_SEMI,
    ("LEFT", "SEMI"): proto.Join.JOIN_TYPE_LEFT_SEMI,
    ("ANTI",): proto.Join.JOIN_TYPE_LEFT_ANTI,
    ("LEFT", "ANTI"): proto.Join.JOIN_TYPE_LEFT_ANTI,
}
_NOT_IN_ON = frozenset({"PIVOT", "UNPIVOT"})


def relations_part(
    lowerings: Lowerings,
    relations: tuple[Relation, ...],
    scope: CteScope,
    *,
    where: Span | None = None,
) -> Part:
    """What a FROM clause reads.

    Args:
        where: The condition of the last join, where it has none of its own.
    """
    found: Part | None = None
    for number, relation in enumerate(relations):
        is_last = number == len(relations) - 1
        part = _relation(lowerings, relation, scope, where=where if len(relations) == 1 else None)
        if found is None:
            found = part
            continue
        condition = _text(lowerings, where) if is_last and where else None
        joined = found.joined(part, _unconditional(condition), condition=condition)
        assert relation.comma is not None
        found = lowerings.placed(joined, "JOIN", relation.comma)
    assert found is not None
    return found


def takes_where(relations: tuple[Relation, ...]) -> bool:
    """Whether the last join of a FROM clause has no condition, so that WHERE can be it."""
    if len(relations) > 1:
        return True
    joins = relations[0].joins
    return bool(joins) and _is_inner(joins[-1]) and not (joins[-1].on or joins[-1].using)


def _relation(
    lowerings: Lowerings, relation: Relation, scope: CteScope, *, where: Span | None
) -> Part:
    found = item_part(lowerings, relation.item, scope)
    for join in relation.joins:
        is_last = join is relation.joins[-1]
        found = _joined(lowerings, found, join, scope, where=where if is_last else None)
    return found


def _joined(
    lowerings: Lowerings, left: Part, join: Join, scope: CteScope, *, where: Span | None
) -> Part:
    words = tuple(word for word in join.words if word != "OUTER")
    join_type = _TYPES.get(words)
    name = " ".join((*join.words, "JOIN"))
    if join_type is None:
        raise refused(
            lowerings.analysis,
            join.at,
            name,
            reason="the engine has no such join",
            instead="write INNER, LEFT, RIGHT or FULL JOIN .. ON",
        )
    _check(lowerings, join)
    condition = _text(lowerings, join.on or where) if join.on or where else None
    if condition is not None and join_type == proto.Join.JOIN_TYPE_CROSS:
        join_type = proto.Join.JOIN_TYPE_INNER
    elif condition is None and not join.using and _is_inner(join):
        join_type = proto.Join.JOIN_TYPE_CROSS
    right = item_part(lowerings, join.item, scope)
    joined = left.joined(right, join_type, condition=condition, using=join.using)
    return lowerings.placed(joined, name, join.at)


def _check(lowerings: Lowerings, join: Join) -> None:
    """Raise for words behind a join that are no part of its condition."""
    outline = lowerings.analysis.outline
    stray = [join.rest.start] if join.rest else []
    if join.on:
        stray += [i for i in top_level(outline, join.on) if outline.word(i) in _NOT_IN_ON]
    if stray:
        raise refused(
            lowerings.analysis,
            stray[0],
            f"{outline.tokens[stray[0]].text} behind a join",
            reason="the engine can't take the query apart there",
        )


def _is_inner(join: Join) -> bool:
    return join.words in {(), ("INNER",), ("CROSS",)}


def _unconditional(condition: str | None) -> int:
    inner, cross = proto.Join.JOIN_TYPE_INNER, proto.Join.JOIN_TYPE_CROSS
    return int(cross if condition is None else inner)


def _text(lowerings: Lowerings, span: Span | None) -> str:
    assert span is not None
    return lowerings.texts.expression(span)
