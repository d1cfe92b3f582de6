"""Names what a grouped query is sorted by by its position: `ORDER BY 2` for `ORDER BY count(*)`.

Sail can't compute most expressions once more behind GROUP BY, though the query selects them.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from millpond.engine.sqltext.blocks import SET_OPERATIONS, Outline, outline
from millpond.engine.sqltext.parsing import parse_query
from millpond.engine.sqltext.places import Places
from millpond.engine.sqltext.source import Edit, apply_edits
from millpond.sql.tokens import keywords

_AFTER_ORDER = SET_OPERATIONS | keywords("LIMIT OFFSET ; )")
_AFTER_EXPRESSION = keywords(", ASC DESC NULLS") | _AFTER_ORDER


def sorted_by_position(text: str) -> str:
    """The text, sorting grouped rows by positions where it selects what it sorts by."""
    words = text.upper()
    if "GROUP" not in words or "ORDER" not in words:
        return text
    tree = parse_query(text)
    if not isinstance(tree, exp.Query):
        return text
    found = outline(text)
    edits = [
        edit
        for select in tree.find_all(exp.Select)
        if select.args.get("group") and select.args.get("order")
        for edit in _edits(select, found)
    ]
    return apply_edits(text, edits)


def _edits(select: exp.Select, found: Outline) -> Iterator[Edit]:
    items = select.expressions
    if any(item.is_star for item in items):
        return
    positions = {_form(item.unalias()): at for at, item in enumerate(items, start=1)}
    # In ORDER BY these names are what is selected, not what is grouped.
    given = {item.alias.lower() for item in items if isinstance(item, exp.Alias)}
    spans = _spans(select, found)
    ordered = [each.this for each in select.args["order"].expressions]
    if len(spans) != len(ordered):
        return
    for (start, end), expression in zip(spans, ordered, strict=True):
        # A number is a position already.
        if isinstance(expression, exp.Literal) or expression.find(exp.Query):
            continue
        names = {column.parts[0].name.lower() for column in expression.find_all(exp.Column)}
        position = positions.get(_form(expression))
        if position is not None and not names & given:
            yield Edit(start, end, str(position))


def _form(expression: exp.Expr) -> str:
    """An expression in one spacing, its names in one case."""
    return expression.sql(normalize=True)


def _spans(select: exp.Select, found: Outline) -> list[tuple[int, int]]:
    """From where to where each expression stands that a SELECT is sorted by."""
    block = Places(found).block(select)
    group = None if block is None else block.words.get("GROUP")
    order = None if group is None else found.next_inside_same(group, {"ORDER"})
    if order is None:
        return []
    spans: list[tuple[int, int]] = []
    at = order + 2
    while True:
        end = found.next_inside_same(at, _AFTER_EXPRESSION)
        last = (len(found.tokens) if end is None else end) - 1
        spans.append((found.tokens[at].start, found.tokens[last].end))
        comma = found.next_inside_same(at, {",", *_AFTER_ORDER})
        if comma is None or found.word(comma) != ",":
            return spans
        at = comma + 1
