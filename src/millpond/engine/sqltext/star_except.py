"""Finds stars that leave columns out, `* EXCEPT (a)`, and the texts that tell what a star gives.

Names the columns of none: only an engine knows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from millpond.engine.sqltext.blocks import QUERY_STARTS, SET_OPERATIONS, Outline, outline
from millpond.engine.sqltext.file_metadata import tables_of
from millpond.engine.sqltext.parsing import identifiers, parse_query
from millpond.sql.tokens import keywords

# What can follow the tables of a FROM. LATERAL VIEW and joins are part of it.
_AFTER_TABLES = SET_OPERATIONS | keywords(
    "WHERE GROUP HAVING QUALIFY WINDOW ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET ) ;"
)


@dataclass(frozen=True)
class StarExcept:
    """A star that leaves columns out, from `start` to `end`, the name before it included.

    Attributes:
        qualifier: The name before it with its dot, as written; empty where there is none.
        left_out: The names of the columns that it leaves out, each in its parts.
        tables: The names of the tables in whose FROM it stands; empty for one without a name.
        before: The subqueries with names that its tables may be, as `WITH ..`.
        source: Its tables, as `FROM ..`; empty where they can't be told.
    """

    start: int
    end: int
    qualifier: str
    left_out: tuple[tuple[str, ...], ...]
    tables: tuple[str, ...]
    before: str
    source: str

    def query(self, items: str) -> str:
        """A query over the tables of the star."""
        return f"{self.before}SELECT {items} {self.source}"


def star_excepts(text: str) -> list[StarExcept]:
    """The stars that leave columns out, in the order of the text; none if it can't be read."""
    if "except" not in text.lower():
        return []
    found = outline(text)
    places = [*star_except_places(found)]
    tree = parse_query(text) if places else None
    if not isinstance(tree, exp.Query):
        return []
    stars = {
        star.meta["start"]: star
        for star in tree.find_all(exp.Star)
        if star.args.get("except_") and "start" in star.meta
    }
    return [
        _star(stars[start], end=end, text=text, found=found)
        for start, end in places
        if start in stars
    ]


def star_except_places(found: Outline) -> Iterator[tuple[int, int]]:
    """From where to where `* EXCEPT (a)` stands, which is no set operation."""
    for index, token in enumerate(found.tokens):
        words = [found.word(at) for at in range(index, index + 4)]
        if words[:3] == ["*", "EXCEPT", "("] and words[3] not in QUERY_STARTS:
            yield token.start, found.tokens[found.closing(index + 2)].end


def _star(star: exp.Star, *, end: int, text: str, found: Outline) -> StarExcept:
    start = int(star.meta["start"])
    first = start
    if isinstance(star.parent, exp.Column):
        first = int(identifiers(star.parent)[0].meta["start"])
    select = star.find_ancestor(exp.Select)
    tables = () if select is None else tuple(tables_of(select, seen_by_star=True))
    return StarExcept(
        start=first,
        end=end,
        qualifier=text[first:start],
        left_out=tuple(
            tuple(part.name for part in identifiers(column)) for column in star.args["except_"]
        ),
        tables=tuple(table.alias_or_name for table in tables),
        before="" if select is None else _with_clause(select, text=text, found=found),
        source=_from_clause(found.index_at(start), text=text, found=found),
    )


def _from_clause(index: int, *, text: str, found: Outline) -> str:
    """The FROM of the SELECT in whose list a token stands."""
    at = index
    while True:
        start = found.next_inside_same(at, {"FROM"})
        opening = _opening(found, at)
        if start is not None and (opening is None or found.word(opening + 1) in QUERY_STARTS):
            break
        if opening is None:
            return ""
        at = opening
    end = found.next_inside_same(start + 1, _AFTER_TABLES)
    stop = len(text) if end is None else found.tokens[end].start
    return text[found.tokens[start].start : stop].strip()


def _opening(found: Outline, index: int) -> int | None:
    """The innermost parenthesis that is open at a token."""
    depth = 0
    for at in range(index - 1, -1, -1):
        depth += {"(": -1, ")": 1}.get(found.word(at), 0)
        if depth < 0:
            return at
    return None


def _with_clause(select: exp.Select, *, text: str, found: Outline) -> str:
    """The subqueries with names that a SELECT can read; the innermost of one name counts."""
    visible: dict[str, str] = {}
    node: exp.Expr = select
    inside: exp.CTE | None = None
    while True:
        inside = node if isinstance(node, exp.CTE) else inside
        clause = node.args.get("with_")
        if isinstance(clause, exp.With):
            listed = clause.expressions
            before = listed[: listed.index(inside)] if inside in listed else listed
            own = {cte.alias.lower(): _cte_text(cte, text=text, found=found) for cte in before}
            visible = own | visible
        if node.parent is None:
            break
        node = node.parent
    return f"WITH {', '.join(visible.values())} " if visible else ""


def _cte_text(cte: exp.CTE, *, text: str, found: Outline) -> str:
    start = int(cte.args["alias"].this.meta["start"])
    begins_query = {*QUERY_STARTS, "("}
    opening = next(
        at
        for at in range(found.index_at(start), len(found.tokens))
        if found.word(at) == "(" and found.word(at + 1) in begins_query
    )
    return text[start : found.tokens[found.closing(opening)].end]
