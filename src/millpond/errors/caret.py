"""Shows a place in a source file: its line, and a caret under the place."""

import re
import unicodedata
from itertools import islice

WIDTH = 90
BEFORE = 60
TAB = "    "
ELLIPSIS = "..."
ELLIPSIS_WIDTH = len(ELLIPSIS)

_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")


def line_of(text: str, line: int) -> str:
    """The text of a line, counted from 1, without its end; empty where there is none."""
    match = next(islice(_LINE.finditer(text), line - 1, None), None)
    return match[1] if match else ""


def point_at(line_text: str, *, line: int, column: int, length: int = 1) -> str:
    """The line with carets below `length` characters from `column` on, as two lines of text.

    Tabs become four spaces, characters that would disturb the terminal a replacement character,
    and a long line is shortened around the place. Wide characters count as two columns.

    >>> print(point_at("CREATE STREMING TABLE t", line=3, column=8, length=8))
    3 | CREATE STREMING TABLE t
      |        ^^^^^^^^
    """
    at = min(max(column - 1, 0), len(line_text))
    # Only the neighbourhood is looked at, so that a file of one huge line costs no more.
    before = [_shown(char) for char in line_text[max(0, at - WIDTH) : at]]
    marked = [_shown(char) for char in line_text[at : at + max(1, min(length, WIDTH))]]
    after = [_shown(char) for char in line_text[at + len(marked) : at + len(marked) + WIDTH]]

    marked = _cut(marked, WIDTH - ELLIPSIS_WIDTH)
    room = WIDTH - _width(marked)
    cut_before = at > len(before) or _width(before) > room
    if cut_before or _width(before) + _width(after) > room:
        before_room = min(room, max(BEFORE, room - _width(after)))
        kept = _cut(before[::-1], max(0, before_room - ELLIPSIS_WIDTH))[::-1]
        cut_before = at > len(kept)
        before = [*ELLIPSIS, *kept] if cut_before else kept
        room -= _width(before)
        kept = _cut(after, max(0, room - ELLIPSIS_WIDTH))
        rest_is_cut = len(line_text) > at + len(marked) + len(kept)
        after = [*kept, *ELLIPSIS] if rest_is_cut else kept

    number = str(line)
    shown = "".join([*before, *marked, *after])
    carets = " " * _width(before) + "^" * max(1, _width(marked))
    return f"{number} | {shown}\n{' ' * len(number)} | {carets}"


def _shown(char: str) -> str:
    if char == "\t":
        return TAB
    if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return "\N{REPLACEMENT CHARACTER}"
    return char


def _width(cells: list[str]) -> int:
    return sum(_cell_width(cell) for cell in cells)


def _cell_width(cell: str) -> int:
    if len(cell) > 1:
        return len(cell)
    if unicodedata.combining(cell):
        return 0
    return 2 if unicodedata.east_asian_width(cell) in {"W", "F"} else 1


def _cut(cells: list[str], width: int) -> list[str]:
    """The cells from the start that fit into `width`."""
    used = 0
    for index, cell in enumerate(cells):
        used += _cell_width(cell)
        if used > width:
            return cells[:index]
    return cells
