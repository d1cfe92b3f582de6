"""A table of text for a terminal: aligned, no wider than the screen, safe to print."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

import click

GAP = "  "
PIPE_WIDTH = 100
MIN_COLUMN_WIDTH = 8

# Control characters could move the cursor, and direction marks reorder what is shown.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Column:
    """A heading; numbers stand at the right."""

    heading: str
    is_number: bool = False


def print_grid(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of text under their headings, as wide as the terminal allows."""
    for line in render_grid(columns, rows, width=screen_width()):
        click.echo(line)


def screen_width() -> int:
    return shutil.get_terminal_size((PIPE_WIDTH, 24)).columns


def natural_width(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """How wide a table is with nothing shortened."""
    cells = [[column.heading for column in columns], *rows]
    widths = [max(map(_cell_width, column)) for column in zip(*cells, strict=True)]
    return sum(widths) + len(GAP) * (len(widths) - 1)


def render_grid(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], *, width: int
) -> list[str]:
    """The lines of a table. Cells that don't fit are shortened, columns that don't are left out."""
    cells = [[safe(cell) for cell in row] for row in rows]
    headings = [safe(column.heading) for column in columns]
    natural = [
        max((_cell_width(row[index]) for row in [headings, *cells]), default=0)
        for index in range(len(columns))
    ]
    widths = fit_widths(natural, available=width)
    shown = len(widths)
    lines = [
        _line(headings, columns, widths),
        GAP.join("-" * column_width for column_width in widths),
        *(_line(row, columns, widths) for row in cells),
    ]
    if shown < len(columns):
        lines.append(
            f"({len(columns) - shown} of {len(columns)} columns left out for want of room: "
            "--format json shows all)"
        )
    return lines


def fit_widths(natural: Sequence[int], *, available: int) -> list[int]:
    """Widths for as many columns as fit. The widest columns give way first.

    >>> fit_widths([10, 50, 20], available=64)
    [10, 30, 20]
    """
    widths = list(natural)
    while widths:
        excess = sum(widths) + len(GAP) * (len(widths) - 1) - available
        if excess <= 0:
            break
        widest = max(widths)
        if widest <= MIN_COLUMN_WIDTH:
            if len(widths) == 1:
                break
            widths = list(natural[: len(widths) - 1])
            continue
        second = max((width for width in widths if width < widest), default=0)
        floor = max(second, MIN_COLUMN_WIDTH)
        wide = [index for index, width in enumerate(widths) if width == widest]
        # Lower all of the widest alike, to the next width or as far as is needed.
        step = min(widest - floor, -(-excess // len(wide)))
        for index in wide:
            widths[index] = widest - step
    return widths


def safe(text: str) -> str:
    r"""`text` on one line, with control characters written out.

    >>> safe("a\nb\x1b[0m")
    'a\\nb\\x1b[0m'
    """
    return _UNSAFE.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    placed = [
        _place(cell, width, right=column.is_number)
        for cell, column, width in zip(cells, columns, widths, strict=False)
    ]
    return GAP.join(placed).rstrip()


def _place(cell: str, width: int, *, right: bool) -> str:
    from rich.cells import set_cell_size

    size = _cell_width(cell)
    if size > width:
        return set_cell_size(cell, width - 1) + "…"
    space = " " * (width - size)
    return space + cell if right else cell + space


def _cell_width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
