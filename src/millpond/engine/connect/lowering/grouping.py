"""GROUP BY, HAVING and the expressions of their SELECT as an aggregation.

The engine gives an aggregation's columns as those grouped by, then the expressions, whose names
only it knows. Where every expression has a plain name, columns are told by their place. Otherwise
those grouped by are taken away by their names, which no expression may have until then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from millpond.engine.connect.lowering.grammar import Select
from millpond.engine.connect.lowering.items import Lowerings
from millpond.engine.connect.lowering.parts import Part
from millpond.engine.connect.lowering.refusals import refused
from millpond.engine.connect.lowering.select_items import (
    SelectItem,
    plain_name,
    select_item,
    window_name,
)
from millpond.engine.connect.lowering.spans import Span, name_at, separated
from millpond.engine.shapes import OperatorKind
from millpond.engine.shapes.functions import kind_of_function
from millpond.engine.sqltext.binding import quoted
from millpond.engine.sqltext.blocks import outline as outline_of
from millpond.engine.sqltext.source import Edit, apply_edits
from millpond.sql.tokens import Token, TokenKind, identifier_value, scan

_GROUP = "__millpond_group{number}"
_ITEM = "__millpond_item{number}"
_HAVING = "__millpond_having"
_SETS = frozenset({"ROLLUP", "CUBE", "GROUPING"})


@dataclass(frozen=True)
class _Key:
    """One expression that is grouped by.

    Attributes:
        text: As it stands in the aggregation.
        name: Of its column there.
        computed: What it is computed by beforehand, or `None` for a column or time window.
    """

    text: str
    name: str
    computed: str | None = None


def aggregated(
    lowerings: Lowerings, select: Select, part: Part, *, edits: Sequence[Edit] = ()
) -> Part:
    """The rows that a SELECT with GROUP BY, HAVING or aggregate functions gives.

    Raises:
        UnsupportedStreamingOperationError: It can't be taken apart.
    """
    outline, texts = lowerings.analysis.outline, lowerings.texts
    items = [select_item(outline, texts, span, edits=edits) for span in select.items]
    keys = list(_keys(lowerings, select, items, edits))
    for key in keys:
        if key.computed is not None:
            part = part.with_column(key.text, key.computed)
    condition = _condition(lowerings, select, items, keys, edits)
    if all(item.alias or item.name for item in items):
        return _by_place(lowerings, select, part, _Parts(items, keys, condition))
    return _by_name(lowerings, select, part, _Parts(items, keys, condition))


@dataclass(frozen=True)
class _Parts:
    """What a SELECT aggregates.

    Attributes:
        condition: Its HAVING.
    """

    items: Sequence[SelectItem]
    keys: Sequence[_Key]
    condition: str | None


def _by_place(lowerings: Lowerings, select: Select, part: Part, parts: _Parts) -> Part:
    """The aggregation, where every expression has a name that is known."""
    columns = [
        _over_keys(lowerings, item, parts.keys)
        + (f" AS {quoted(item.alias)}" if item.alias is not None else "")
        for item in parts.items
    ]
    if parts.condition is not None:
        columns.append(f"({parts.condition}) AS {_HAVING}")
    found = part.aggregated([key.text for key in parts.keys], columns)
    found = lowerings.placed(found, *_place(select))
    hidden = [_ITEM.format(number=number) for number in range(len(columns))]
    found = found.named(
        [*(f"{_GROUP}_key".format(number=n) for n, _ in enumerate(parts.keys)), *hidden]
    )
    if parts.condition is not None:
        found = found.filtered(hidden.pop())
    names = [str(item.alias or item.name) for item in parts.items]
    return found.projected(
        [f"{column} AS {quoted(name)}" for column, name in zip(hidden, names, strict=True)]
    )


def _by_name(lowerings: Lowerings, select: Select, part: Part, parts: _Parts) -> Part:
    """The aggregation, where the engine gives names to expressions."""
    columns: list[str] = []
    names: dict[str, str] = {}
    for number, item in enumerate(parts.items):
        _check_alias(lowerings, item, parts.keys)
        text, name = _over_keys(lowerings, item, parts.keys), item.alias or item.name
        if name is None:
            _check_unnamed(lowerings, item)
            columns.append(text)
            continue
        hidden = _ITEM.format(number=number)
        columns.append(f"{text} AS {hidden}")
        names[hidden] = name
    dropped = [key.name for key in parts.keys]
    if parts.condition is not None:
        columns.append(f"({parts.condition}) AS {_HAVING}")
        dropped.append(_HAVING)
    found = part.aggregated([key.text for key in parts.keys], columns)
    found = lowerings.placed(found, *_place(select))
    if parts.condition is not None:
        found = found.filtered(_HAVING)
    return (found.without(dropped) if dropped else found).renamed(names)


def _condition(
    lowerings: Lowerings,
    select: Select,
    items: Sequence[SelectItem],
    keys: Sequence[_Key],
    edits: Sequence[Edit],
) -> str | None:
    """HAVING over the columns of the aggregation."""
    having = select.clauses.get("HAVING")
    if having is None:
        return None
    text = lowerings.texts.expression(having.body, edits=edits)
    return _with_keys(_having(text, items, keys), keys)


def _check_alias(lowerings: Lowerings, item: SelectItem, keys: Sequence[_Key]) -> None:
    """Raise if the rows are grouped by an expression under the name that SELECT gives it.

    The engine finds it by that name alone, which is taken away with the columns grouped by.
    """
    grouped = {key.text.strip("`").lower() for key in keys}
    is_same = plain_name(item.text) is not None and item.text.strip("`").lower() in grouped
    if item.alias is not None and item.alias.lower() in grouped and not is_same:
        raise refused(
            lowerings.analysis,
            item.span.start,
            f"GROUP BY {item.alias}, a name that SELECT gives, beside expressions without a name",
            reason="the columns could not be told apart",
            instead="give every expression of SELECT a name with AS",
        )


def _check_unnamed(lowerings: Lowerings, item: SelectItem) -> None:
    """Raise for what the engine may name as it names a column that is grouped by.

    A text is named by what it says, and parentheses do not count: both would be taken away with
    the columns grouped by.
    """
    outline, span = lowerings.analysis.outline, item.body
    is_text = span.end - span.start == 1 and outline.tokens[span.start].kind is TokenKind.STRING
    is_enclosed = outline.word(span.start) == "(" and outline.closing(span.start) == span.end - 1
    if is_text or is_enclosed:
        raise refused(
            lowerings.analysis,
            span.start,
            f"{item.text}, without a name, beside GROUP BY",
            reason="it could not be told from a column that is grouped by",
            instead="give it a name with AS",
        )


def _place(select: Select) -> tuple[str, int]:
    for word, name in (("GROUP", "GROUP BY"), ("HAVING", "HAVING")):
        if word in select.clauses:
            return name, select.clauses[word].at
    return "An aggregate function", select.items[0].start


def _keys(
    lowerings: Lowerings, select: Select, items: Sequence[SelectItem], edits: Sequence[Edit]
) -> Iterator[_Key]:
    group = select.clauses.get("GROUP")
    if group is None:
        return
    _check(lowerings, group.body)
    outline = lowerings.analysis.outline
    for number, span in enumerate(separated(outline, group.body)):
        item = _item_of(lowerings, span, items)
        body = item.body if item else span
        text = item.text if item else lowerings.texts.expression(span, edits=edits)
        name = window_name(outline, body)
        if name is not None or _is_column(text):
            yield _Key(text, name or plain_name(text) or text)
        else:
            hidden = _GROUP.format(number=number)
            yield _Key(hidden, hidden, computed=text)


def _check(lowerings: Lowerings, body: Span) -> None:
    outline = lowerings.analysis.outline
    words = [outline.word(index) for index in range(body.start, body.end)]
    if words == ["ALL"]:
        raise refused(
            lowerings.analysis,
            body.start,
            "GROUP BY ALL",
            reason="the engine does not know it",
            instead="name the columns",
        )
    at = next((index for index, word in enumerate(words) if word in _SETS), None)
    if at is not None and (words[at + 1 : at + 2] in (["("], ["SETS"]) or words[at - 1] == "WITH"):
        raise refused(
            lowerings.analysis,
            body.start + at,
            f"GROUP BY with {words[at]}",
            reason="rows of several groupings are no windows of time",
            instead="write one GROUP BY, with the time window among its columns",
        )


def _item_of(lowerings: Lowerings, span: Span, items: Sequence[SelectItem]) -> SelectItem | None:
    """The expression of SELECT that a number stands for, or the name of a time window.

    Other names are left to the engine, which looks for a column of the name first.
    """
    outline = lowerings.analysis.outline
    if span.end - span.start != 1:
        return None
    token = outline.tokens[span.start]
    if token.kind is TokenKind.NUMBER:
        number = int(token.text) if token.text.isdecimal() else 0
        if not 1 <= number <= len(items):
            raise refused(
                lowerings.analysis,
                span.start,
                f"GROUP BY {token.text}",
                reason=f"SELECT has {len(items)} expressions",
                instead="give the number of one of them, or its text",
            )
        return items[number - 1]
    name = name_at(outline, span.start).lower()
    return next(
        (
            item
            for item in items
            if item.alias is not None
            and item.alias.lower() == name
            and window_name(outline, item.body) is not None
        ),
        None,
    )


def _is_column(text: str) -> bool:
    tokens = list(scan(text))
    names = all(token.kind in {TokenKind.WORD, TokenKind.QUOTED} for token in tokens[::2])
    return names and all(token.word == "." for token in tokens[1::2])


def _over_keys(lowerings: Lowerings, item: SelectItem, keys: Sequence[_Key]) -> str:
    """What an item computes, from the columns of keys that were computed beforehand."""
    text = _with_keys(item.text, keys)
    if text != item.text and item.alias is None:
        raise refused(
            lowerings.analysis,
            item.span.start,
            "An expression of GROUP BY that is selected without a name",
            reason="its column would get another name than the engine gives it",
            instead="give it a name with AS",
        )
    return text


def _with_keys(text: str, keys: Sequence[_Key]) -> str:
    """A text with the columns of keys in the place of what these were computed by.

    Only where that is the whole text, or a function's call: parts of other expressions could be
    torn out of the order of operators.
    """
    for key in keys:
        if key.computed is None:
            continue
        wanted = [_folded(token) for token in scan(key.computed)]
        tokens = list(scan(text))
        found = [_folded(token) for token in tokens]
        length = len(wanted)
        if found == wanted:
            return key.text
        is_call = len(wanted) > 2 and wanted[1] == "(" and wanted[-1] == ")"
        is_call = is_call and outline_of(key.computed).closing(1) == length - 1
        edits = [
            Edit(tokens[at].start, tokens[at + length - 1].end, key.text)
            for at in range(len(found) - length + 1)
            if is_call and found[at : at + length] == wanted and (at == 0 or found[at - 1] != ".")
        ]
        text = apply_edits(text, edits)
    return text


def _folded(token: Token) -> str:
    return token.text.lower() if token.kind is TokenKind.WORD else token.text


def _having(text: str, items: Sequence[SelectItem], keys: Sequence[_Key]) -> str:
    """HAVING with expressions in the place of the names that SELECT gives them.

    As the engine reads it: a name means a column grouped by, if there is one, and inside of
    aggregate functions a column of the rows.
    """
    taken = {key.name.lower() for key in keys}
    bodies = {item.alias.lower(): item.text for item in items if item.alias is not None}
    found = outline_of(text)
    edits: list[Edit] = []
    inside_until = -1
    for index, token in enumerate(found.tokens):
        is_call = found.word(index + 1) == "("
        name = identifier_value(token).lower()
        if token.kind not in {TokenKind.WORD, TokenKind.QUOTED} or index <= inside_until:
            continue
        if is_call:
            if kind_of_function(name) is OperatorKind.AGGREGATION:
                inside_until = found.closing(index + 1)
        elif found.word(index - 1) != "." and name in bodies and name not in taken:
            edits.append(Edit(token.start, token.end, f"({bodies[name]})"))
    return apply_edits(text, edits)
