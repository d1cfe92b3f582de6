"""Prints rows of plain values as JSON, CSV or a table. `values` makes plain values of Arrow's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from millpond.cli.grid import Column, print_grid
from millpond.cli.wording import plural

TABLE_LIMIT = 100
_CSV_QUOTED = frozenset(',"\n\r')


def print_json(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print an array of objects, one a line."""
    empty = True
    for row in rows:
        click.echo("[" if empty else ",")
        click.echo(" " + json_text(row), nl=False)
        empty = False
    click.echo("[]" if empty else "\n]")


def print_csv(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a heading line and a line for each row. Null is an empty field, `""` an empty text."""
    click.echo(",".join(_csv_field(heading) for heading in headings))
    for row in rows:
        click.echo(",".join("" if cell is None else _csv_field(text_of(cell)) for cell in row))


def print_table(
    columns: Sequence[Column], rows: Iterable[Sequence[Any]], *, total: int, hint: str
) -> None:
    """Print rows as a table, then how many there are; `hint` says how to see the rest."""
    shown = [["NULL" if cell is None else text_of(cell) for cell in row] for row in rows]
    print_grid(columns, shown)
    if len(shown) < total:
        click.echo(f"({len(shown):,} of {plural(total, 'row')}; {hint})")
    else:
        click.echo(f"({plural(total, 'row')})")


def row_limit(limit: int | None, *, output_format: str) -> int | None:
    """How many rows to print at most; `None` for all."""
    if limit is None:
        return TABLE_LIMIT if output_format == "table" else None
    return limit or None


def json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def text_of(value: Any) -> str:
    """A plain value as text; arrays and objects as JSON."""
    return value if isinstance(value, str) else json_text(value)


def _csv_field(text: str) -> str:
    if text and _CSV_QUOTED.isdisjoint(text):
        return text
    return '"' + text.replace('"', '""') + '"'
