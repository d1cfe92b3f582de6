"""A SELECT that keeps state, or reads what does, as a relation.

It stays text around what keeps state below it, and its DISTINCT comes after the text. Only over a
join of streams, or with a GROUP BY, does every clause of it become a step of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from millpond.engine.connect.lowering.grammar import Select
from millpond.engine.connect.lowering.grouping import aggregated
from millpond.engine.connect.lowering.items import (
    OPENING,
    Lowerings,
    aliased,
    core_part,
    own_name,
    table_of,
)
from millpond.engine.connect.lowering.joins import relations_part, takes_where
from millpond.engine.connect.lowering.laterals import (
    Laterals,
    check_names,
    with_laterals,
    without_tables,
)
from millpond.engine.connect.lowering.parts import Part
from millpond.engine.connect.lowering.refusals import refused
from millpond.engine.connect.lowering.relations import Item
from millpond.engine.connect.lowering.select_items import select_item
from millpond.engine.connect.lowering.spans import Span
from millpond.engine.connect.lowering.streams import CteScope
from millpond.engine.connect.lowering.texts import Replacement
from millpond.engine.sqltext.binding import quoted
from millpond.engine.sqltext.references import TableReference

# Stands in a text for the rows of a relation. A text has one at most, and always room for this.
_ROWS = "__r"
_FOLLOWED = frozenset({"FROM", "WHERE", "GROUP", "HAVING"})
_QUERY_STARTS = frozenset({"SELECT", "WITH", "VALUES"})


@dataclass(frozen=True)
class _Named:
    """What a text names instead of its item that keeps state."""

    replacements: Sequence[Replacement] = ()
    references: Mapping[str, Part] = field(default_factory=dict)
    table: TableReference | None = None


def select_part(lowerings: Lowerings, select: Select, scope: CteScope) -> Part:
    """The rows of a SELECT.

    Raises:
        UnsupportedStreamingOperationError: It can't be taken apart.
    """
    streams = lowerings.streams.items(select, scope)
    by_steps = (
        lowerings.streams.aggregates(select)
        or _gives_window(lowerings, select)
        or _names_metadata_below(lowerings, streams)
    )
    if len(streams) > 1 or (streams and by_steps):
        part = _taken_apart(lowerings, select, scope)
    else:
        part = _text(lowerings, select, scope)
    if select.distinct is None or not streams:
        return part
    return lowerings.placed(part.deduplicated(), "DISTINCT", select.distinct)


def _names_metadata_below(lowerings: Lowerings, streams: Sequence[Item]) -> bool:
    """Whether `_metadata` is asked of files behind a WATERMARK: a text could not reach it."""
    return any(
        item.watermark is not None
        and (table := table_of(lowerings, item)) is not None
        and table.read.metadata
        for item in streams
    )


def _gives_window(lowerings: Lowerings, select: Select) -> bool:
    """Whether a column is a window of time, by which a query around this one may group or join."""
    outline = lowerings.analysis.outline
    return any(
        outline.word(span.start) in {"WINDOW", "WINDOW_TIME"}
        and outline.word(span.start + 1) == "("
        for span in select.items
    ) and not any(_subquery_in(lowerings, span) for span in select.items)


def _text(lowerings: Lowerings, select: Select, scope: CteScope) -> Part:
    """A SELECT that stays text, without its DISTINCT where that keeps state."""
    streams = lowerings.streams.items(select, scope)
    named = _named(lowerings, streams, scope, where=_early_where(lowerings, select))
    replacements = [*named.replacements]
    if select.distinct is not None and streams:
        replacements.append(Replacement(Span(select.distinct, select.distinct + 1)))
    return lowerings.texts.query(
        select.span,
        scope,
        replacements=replacements,
        references=named.references,
        replaced_table=named.table,
    )


def _early_where(lowerings: Lowerings, select: Select) -> Span | None:
    """The WHERE, where it is about the columns of one table alone."""
    if not _reads_one_item(select) or select.laterals or _has_subquery(lowerings, select):
        return None
    return next(iter(_bodies(select, {"WHERE"})), None)


def _named(
    lowerings: Lowerings, streams: Sequence[Item], scope: CteScope, *, where: Span | None
) -> _Named:
    """A name for the one of a text's streams that keeps state, if one does.

    Args:
        where: What the text asks of the rows of its only table. A watermark is to know of it.
    """
    keeping = (each for each in streams if lowerings.streams.item_keeps_state(each, scope))
    item = next(keeping, None)
    if item is None:
        return _Named()
    table = table_of(lowerings, item)
    # A CTE or DataFrame is named already.
    name = item.names[0] if item.names and table is None else _ROWS
    part = core_part(lowerings, item, scope)
    if item.watermark is not None and where is not None:
        part = aliased(lowerings, item, part).filtered(lowerings.texts.expression(where))
    references = {name: part}
    if table is not None and item.alias is None and item.watermark is not None:
        whole = Span(
            item.core.start, max(item.watermark.end, item.options.end if item.options else 0)
        )
        own = _last_name(lowerings, item)
        return _Named([Replacement(whole, f"{name} AS {quoted(own)}")], references, table)
    replacements = [Replacement(item.core, name)] if name == _ROWS else []
    replacements += [Replacement(span) for span in (item.options, item.watermark) if span]
    return _Named(replacements, references, table)


def _last_name(lowerings: Lowerings, item: Item) -> str:
    """The name of a table, which stands for it in a text where it is no table any more."""
    name = own_name(lowerings, item)
    if name != item.names[-1]:
        raise refused(
            lowerings.analysis,
            item.name_start,
            f"A second table named {item.names[-1]} beside a WATERMARK",
            reason="the query is taken apart, and their columns could not be told apart",
            instead="give each of them an alias",
        )
    return name


def _taken_apart(lowerings: Lowerings, select: Select, scope: CteScope) -> Part:
    """A SELECT every clause of which becomes a step."""
    _check_clauses(lowerings, select)
    if _reads_one_item(select) and (select.laterals or _has_subquery(lowerings, select)):
        part = _rows_by_text(lowerings, select, scope)
        laterals = Laterals(edits=list(without_tables(lowerings, select)))
    else:
        part, laterals = _rows_by_steps(lowerings, select, scope)
    _check_subqueries(lowerings, [*select.items, *_bodies(select, {"GROUP", "HAVING"})])
    if lowerings.streams.aggregates(select):
        part = aggregated(lowerings, select, part, edits=laterals.edits)
    else:
        outline, texts = lowerings.analysis.outline, lowerings.texts
        items = [select_item(outline, texts, span, edits=laterals.edits) for span in select.items]
        check_names(lowerings, items, laterals)
        part = part.projected([texts.expression(item.span, edits=laterals.edits) for item in items])
    return part.renamed(laterals.names)


def _reads_one_item(select: Select) -> bool:
    return len(select.relations) == 1 and not select.relations[0].joins


def _rows_by_text(lowerings: Lowerings, select: Select, scope: CteScope) -> Part:
    """FROM with one item, LATERAL VIEW and WHERE as text, under the name of the item."""
    item = select.relations[0].item
    streams = lowerings.streams.items(select, scope)
    named = _named(lowerings, streams, scope, where=_early_where(lowerings, select))
    end = max(span.end for span in (item.span, *select.laterals, *_bodies(select, {"WHERE"})))
    part = lowerings.texts.query(
        Span(item.span.start, end),
        scope,
        opening=OPENING,
        replacements=named.replacements,
        references=named.references,
        replaced_table=named.table,
    )
    return aliased(lowerings, item, part)


def _rows_by_steps(lowerings: Lowerings, select: Select, scope: CteScope) -> tuple[Part, Laterals]:
    """FROM, LATERAL VIEW and WHERE as relations that keep the names of their tables."""
    where = next(iter(_bodies(select, {"WHERE"})), None)
    _check_subqueries(lowerings, [*select.laterals, *_bodies(select, {"WHERE"}), *_ons(select)])
    in_join = where is not None and not select.laterals and takes_where(select.relations)
    part = relations_part(lowerings, select.relations, scope, where=where if in_join else None)
    part, laterals = with_laterals(lowerings, select, part)
    if where is not None and not in_join:
        part = part.filtered(lowerings.texts.expression(where, edits=laterals.edits))
    return part, laterals


def _bodies(select: Select, words: set[str]) -> list[Span]:
    return [clause.body for word, clause in select.clauses.items() if word in words]


def _ons(select: Select) -> Iterator[Span]:
    for relation in select.relations:
        yield from (join.on for join in relation.joins if join.on is not None)


def _has_subquery(lowerings: Lowerings, select: Select) -> bool:
    return any(_subquery_in(lowerings, span) is not None for span in _bodies(select, {"WHERE"}))


def _subquery_in(lowerings: Lowerings, span: Span) -> int | None:
    """The first word of a subquery in an expression."""
    outline = lowerings.analysis.outline
    return next(
        (
            index + 1
            for index in range(span.start, span.end)
            if outline.word(index) == "(" and outline.word(index + 1) in _QUERY_STARTS
        ),
        None,
    )


def _check_subqueries(lowerings: Lowerings, spans: Sequence[Span]) -> None:
    for span in spans:
        index = _subquery_in(lowerings, span)
        if index is not None:
            raise refused(
                lowerings.analysis,
                index,
                "A subquery in an expression beside a join of streams or a GROUP BY",
                reason="there it would have to be looked up for rows that wait",
                instead="put the join or GROUP BY in a subquery in FROM, and the condition with "
                "this subquery around it; or join the other table",
            )


def _check_clauses(lowerings: Lowerings, select: Select) -> None:
    for word, clause in select.clauses.items():
        if word not in _FOLLOWED:
            raise refused(
                lowerings.analysis,
                clause.at,
                f"{word} beside a join of streams or a GROUP BY",
                reason="it looks at rows of all batches",
                instead="leave it out",
            )
