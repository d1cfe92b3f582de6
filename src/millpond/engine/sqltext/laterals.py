"""Rewrites `LATERAL` where the engine reads it otherwise than Spark.

Sail looks for the columns that `WHERE` names before it adds those of `LATERAL VIEW`, gives a row of
nulls for an empty array with `, LATERAL explode(..)` and `CROSS JOIN LATERAL`, and knows no
`ON true` behind `LATERAL`. All of it can be said with `INNER JOIN LATERAL` and `LEFT JOIN LATERAL`.
"""

from __future__ import annotations

from collections.abc import Iterator

from millpond.engine.sqltext.blocks import Outline
from millpond.engine.sqltext.source import Edit
from millpond.sql.tokens import TokenKind, keywords

_NO_ALIAS = keywords(
    "LATERAL WHERE GROUP HAVING QUALIFY WINDOW ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET UNION "
    "EXCEPT MINUS INTERSECT ON JOIN INNER CROSS LEFT PIVOT UNPIVOT"
)


def lateral_edits(outline: Outline) -> Iterator[Edit]:
    """Edits of every `LATERAL` with a function behind it that the engine would read otherwise."""
    for index, token in enumerate(outline.tokens):
        if token.word != "LATERAL":
            continue
        if outline.word(index + 1) == "VIEW":
            # Without WHERE it is read as it should be, also behind tables with commas between.
            if "WHERE" in outline.owner[index].words:
                yield from _view_edits(outline, index)
        elif outline.word(index + 1) != "(":
            yield from _relation_edits(outline, index)


def _view_edits(outline: Outline, index: int) -> Iterator[Edit]:
    """`LATERAL VIEW OUTER f(..) t AS a, b` as `LEFT JOIN LATERAL f(..) AS t(a, b)`."""
    tokens = outline.tokens
    outer = outline.word(index + 2) == "OUTER"
    function = index + (3 if outer else 2)
    opening = _opening(outline, function)
    if opening is None:
        return
    join = "LEFT JOIN LATERAL" if outer else "INNER JOIN LATERAL"
    first = outline.closing(opening) + 1
    table, behind = "", first
    if _is_name(outline, behind):
        table, behind = tokens[behind].text, behind + 1
    names: list[str] = []
    if outline.word(behind) == "AS":
        behind += 1
    while _is_name(outline, behind):
        names.append(tokens[behind].text)
        behind += 1
        if outline.word(behind) != ",":
            break
        behind += 1
    yield Edit(tokens[index].start, tokens[function - 1].end, join)
    if behind > first:
        table = table or f"`__millpond_lateral_{index}`"
        columns = f"({', '.join(names)})" if names else ""
        yield Edit(tokens[first].start, tokens[behind - 1].end, f"AS {table}{columns}")


def _relation_edits(outline: Outline, index: int) -> Iterator[Edit]:
    """`, LATERAL f(..)` and `CROSS JOIN` of it as `INNER JOIN`; `ON true` left out."""
    tokens = outline.tokens
    before = outline.word(index - 1)
    if before == ",":
        yield Edit(tokens[index - 1].start, tokens[index].end, " INNER JOIN LATERAL")
    elif before == "JOIN" and outline.word(index - 2) == "CROSS":
        yield Edit(tokens[index - 2].start, tokens[index - 2].end, "INNER")
    opening = _opening(outline, index + 1)
    if before != "JOIN" or opening is None:
        return
    behind = outline.closing(opening) + 1
    if outline.word(behind) == "AS":
        behind += 1
    if _is_name(outline, behind):
        behind += 1
    if outline.word(behind) == "(":
        behind = outline.closing(behind) + 1
    is_last = outline.word(behind + 2) not in {"AND", "OR", "=", "==", "<", ">", "!", "IS", "IN"}
    if (outline.word(behind), outline.word(behind + 1)) == ("ON", "TRUE") and is_last:
        yield Edit(tokens[behind].start, tokens[behind + 1].end, "")


def _opening(outline: Outline, function: int) -> int | None:
    """The parenthesis behind a function's name, which may have several parts."""
    at = function + 1
    while outline.word(at) == ".":
        at += 2
    return at if outline.word(at) == "(" else None


def _is_name(outline: Outline, index: int) -> bool:
    kind, word = outline.kind(index), outline.word(index)
    is_word = kind is TokenKind.WORD and word != "AS" and word not in _NO_ALIAS
    return kind is TokenKind.QUOTED or is_word
