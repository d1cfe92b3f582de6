"""What stands in FROM as a relation: tables, subqueries, CTEs and DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from millpond.engine.connect.cuts import Place
from millpond.engine.connect.lowering.grammar import Query
from millpond.engine.connect.lowering.parts import Part, read_of
from millpond.engine.connect.lowering.refusals import refused
from millpond.engine.connect.lowering.relations import Item, Relation
from millpond.engine.connect.lowering.streams import CteScope, Streams
from millpond.engine.connect.lowering.texts import Texts
from millpond.engine.connect.lowering.watermarks import watermark
from millpond.engine.sqltext.analysis import TextAnalysis
from millpond.engine.sqltext.binding import table_aliases
from millpond.engine.sqltext.references import TableReference
from millpond.sql.tokens import TokenKind, identifier_value, scan

# What makes a query of something in FROM. There is room for it before, since a query stands there.
OPENING = "SELECT*FROM"


@dataclass(frozen=True)
class Lowerings:
    """What makes the relations of the parts of one text, and the places of operators among them."""

    analysis: TextAnalysis
    streams: Streams
    texts: Texts
    externals: Mapping[str, Part]
    places: dict[int, Place]
    query: Callable[[Query, CteScope], Part]
    relations: Callable[[tuple[Relation, ...], CteScope], Part]

    def placed(self, part: Part, name: str, index: int) -> Part:
        """Note what the user wrote for a part."""
        token = self.analysis.outline.tokens[index]
        self.places[part.plan_id] = Place(
            name,
            self.analysis.source.locate(token.start),
            self.analysis.source.caret(token.start, token.end),
        )
        return part


def item_part(lowerings: Lowerings, item: Item, scope: CteScope) -> Part:
    """Something in FROM, with its alias.

    Raises:
        UnsupportedStreamingOperationError: It can't be a relation.
    """
    keeps_state = lowerings.streams.item_keeps_state(item, scope)
    if item.lateral:
        raise _unfollowed(lowerings, item.span.start)
    if item.unread is not None:
        raise _unfollowed(lowerings, item.unread)
    if keeps_state and item.extra is not None:
        raise _unfollowed(lowerings, item.extra)
    if item.extra is None and (keeps_state or _is_relation(lowerings, item, scope)):
        part = core_part(lowerings, item, scope)
        return aliased(lowerings, item, part.named(item.columns) if item.columns else part)
    part = lowerings.texts.query(item.span, scope, opening=OPENING)
    return aliased(lowerings, item, part)


def _is_relation(lowerings: Lowerings, item: Item, scope: CteScope) -> bool:
    """Whether an item without state is a relation by itself, without any text."""
    if item.relations or table_of(lowerings, item) is not None:
        return True
    is_cte = lowerings.streams.cte(item, scope) is not None
    return len(item.names) == 1 and item.names[0] in lowerings.externals and not is_cte


def core_part(lowerings: Lowerings, item: Item, scope: CteScope) -> Part:
    """What an item reads, with its watermark, without its alias."""
    part = _read_part(lowerings, item, scope)
    if item.watermark is None:
        return part
    found = watermark(lowerings.analysis, item.watermark, names=item.names)
    if found.expression is not None:
        expression = lowerings.texts.expression(found.expression)
        part = part.projected([f"{expression} AS {found.column}", "*"])
    if not lowerings.streams.item(item, scope):
        # Over a table that does not stream, a watermark means nothing.
        return part
    marked = part.watermarked(found.column, found.delay)
    return lowerings.placed(marked, "WATERMARK", item.watermark.start)


def table_of(lowerings: Lowerings, item: Item) -> TableReference | None:
    """The table of the text that an item names, if it does."""
    if not item.names:
        return None
    start = lowerings.analysis.outline.tokens[item.name_start].start
    references = lowerings.analysis.references
    return next((found for found in references if found.name_start == start), None)


def own_name(lowerings: Lowerings, item: Item) -> str | None:
    """The name by which an item without an alias is known, without backticks."""
    table = table_of(lowerings, item)
    if table is None:
        return item.names[-1] if item.names else None
    references = lowerings.analysis.references
    alias = table_aliases(references)[references.index(table)]
    return next(identifier_value(token) for token in scan(alias) if token.kind is TokenKind.QUOTED)


def _read_part(lowerings: Lowerings, item: Item, scope: CteScope) -> Part:
    if item.query is not None:
        return lowerings.query(item.query, scope)
    if item.relations:
        return lowerings.relations(item.relations, scope)
    table = table_of(lowerings, item)
    if table is not None:
        return read_of(table.read)
    cte = lowerings.streams.cte(item, scope)
    if cte is not None:
        part = lowerings.query(cte.cte.query, cte.scope)
        return part.named(cte.cte.columns) if cte.cte.columns else part
    return lowerings.externals[item.names[0]]


def aliased(lowerings: Lowerings, item: Item, part: Part) -> Part:
    """The rows of an item under its name."""
    name = item.alias or own_name(lowerings, item)
    return part if name is None else part.aliased(name)


def _unfollowed(lowerings: Lowerings, index: int) -> Exception:
    word = lowerings.analysis.outline.tokens[index].text
    return refused(
        lowerings.analysis,
        index,
        f"{word} in FROM beside a join, WATERMARK or window",
        reason="the engine can't take the query apart there",
    )
