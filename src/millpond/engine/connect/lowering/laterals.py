"""`LATERAL VIEW explode(..)` over relations that keep their tables' names.

The engine can put a column behind others without losing these names, but under no table's name and
not beside a column of the same name. So it goes by a name of its own to the end of the SELECT.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from millpond.engine.connect.lowering.grammar import Select
from millpond.engine.connect.lowering.items import Lowerings
from millpond.engine.connect.lowering.parts import Part
from millpond.engine.connect.lowering.refusals import refused
from millpond.engine.connect.lowering.relations import Item
from millpond.engine.connect.lowering.select_items import SelectItem
from millpond.engine.connect.lowering.spans import Span, inside, name_at
from millpond.engine.sqltext.binding import quoted
from millpond.engine.sqltext.parsing import identifiers
from millpond.engine.sqltext.source import Edit

_COLUMN = "__millpond_lateral{number}"
_GENERATORS = {"EXPLODE": "explode", "EXPLODE_OUTER": "explode_outer"}


@dataclass
class Laterals:
    """The columns that the LATERAL VIEWs of a SELECT add.

    Attributes:
        names: What the columns are called in the end, by the names that they go by.
        edits: Edits of the text where it names them.
    """

    names: dict[str, str] = field(default_factory=dict)
    edits: list[Edit] = field(default_factory=list)


def with_laterals(lowerings: Lowerings, select: Select, part: Part) -> tuple[Part, Laterals]:
    """The rows of a FROM clause with those of the SELECT's LATERAL VIEWs.

    Raises:
        UnsupportedStreamingOperationError: One calls another function than `explode`.
    """
    found = Laterals()
    for number, span in enumerate(select.laterals):
        function, arguments, table, column = _read(lowerings, span)
        hidden = _COLUMN.format(number=number)
        text = lowerings.texts.expression(arguments, edits=found.edits)
        part = part.with_column(hidden, f"{function}({text})")
        found.names[hidden] = column
        found.edits += _edits(lowerings, select, (table, column), hidden)
    return part, found


def without_tables(lowerings: Lowerings, select: Select) -> Iterator[Edit]:
    """Edits that leave out the table names of LATERAL VIEWs, whose columns have become the rows'.

    They are for expressions over these rows, not for the text that has the LATERAL VIEWs.
    """
    tables = {_table(lowerings, span).lower() for span in select.laterals}
    for node in _columns(lowerings, select):
        parts = identifiers(node)
        if len(parts) > 1 and parts[0].name.lower() in tables:
            start = parts[0].meta["start"]
            yield Edit(start, parts[1].meta["start"], "")


def _table(lowerings: Lowerings, span: Span) -> str:
    """The name of the table that a LATERAL VIEW makes."""
    outline = lowerings.analysis.outline
    opening = next(i for i in range(span.start, span.end) if outline.word(i) == "(")
    behind = outline.closing(opening) + 1
    return name_at(outline, behind) if behind < span.end else ""


def _columns(lowerings: Lowerings, select: Select) -> Iterator[exp.Column]:
    """The columns that the text of a SELECT names."""
    outline, tree = lowerings.analysis.outline, lowerings.analysis.tree
    assert tree is not None
    start, end = outline.tokens[select.span.start].start, outline.tokens[select.span.end - 1].end
    for node in tree.find_all(exp.Column):
        parts = identifiers(node)
        if parts and start <= parts[0].meta["start"] < end:
            yield node


def _read(lowerings: Lowerings, span: Span) -> tuple[str, Span, str, str]:
    """The function, its arguments, and the names of the table and its column."""
    outline = lowerings.analysis.outline
    outer = outline.word(span.start + 2) == "OUTER"
    at = span.start + (3 if outer else 2)
    function = _GENERATORS.get(outline.word(at))
    arguments = inside(outline, at + 1) if outline.word(at + 1) == "(" else Span(at, at)
    behind = arguments.end + 1
    named = [index for index in range(behind, span.end) if outline.word(index) != "AS"]
    if function is None or not arguments or not 1 <= len(named) <= 2:
        raise refused(
            lowerings.analysis,
            at,
            f"LATERAL VIEW {outline.tokens[at].text} beside a join",
            reason="the engine can put the column of explode() beside the others, and no more",
            instead="join the streams in a subquery in FROM, and write LATERAL VIEW behind it",
        )
    names = [name_at(outline, index) for index in named]
    return "explode_outer" if outer else function, arguments, names[0], [*names, "col"][1]


def _items(select: Select) -> Iterator[Item]:
    for relation in select.relations:
        yield relation.item
        yield from (join.item for join in relation.joins)


def _edits(
    lowerings: Lowerings, select: Select, named: tuple[str, str], hidden: str
) -> Iterator[Edit]:
    """Edits of every place of a SELECT that names a column of a LATERAL VIEW."""
    outline = lowerings.analysis.outline
    table, column = (name.lower() for name in named)
    is_table = column in {(item.alias or "").lower() for item in _items(select)}
    for node in _columns(lowerings, select):
        parts = identifiers(node)
        names = [part.name.lower() for part in parts]
        if names[:2] == [table, column]:
            last = parts[1]
        elif names[0] == column and not (is_table and len(names) > 1):
            last = parts[0]
        else:
            continue
        # The field of a struct gets its name from the column.
        behind = outline.word(outline.index_at(parts[-1].meta["end"]) + 1)
        bare = isinstance(node.parent, exp.PropertyEQ) and behind in {",", ")"}
        replacement = f"{hidden} AS {quoted(named[1])}" if bare else hidden
        yield Edit(parts[0].meta["start"], last.meta["end"] + 1, replacement)


def check_names(lowerings: Lowerings, items: Sequence[SelectItem], laterals: Laterals) -> None:
    """Raise for a column that would be named after the name that is only for now.

    Raises:
        UnsupportedStreamingOperationError: There is one.
    """
    for item in items:
        if item.alias is None and item.name is None and any(n in item.text for n in laterals.names):
            raise refused(
                lowerings.analysis,
                item.span.start,
                "An expression over a LATERAL VIEW that is selected without a name",
                reason="its column would get another name than the engine gives it",
                instead="give it a name with AS",
            )
