"""`millpond tables`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from millpond.cli.grid import Column, natural_width, print_grid, screen_width
from millpond.cli.options import (
    engine_option,
    format_option,
    open_project,
    prints_aside,
    spec_option,
)
from millpond.cli.rows import print_json
from millpond.cli.settings import ReportedError

if TYPE_CHECKING:
    from millpond.runner import TableInfo


@click.command()
@spec_option
@engine_option
@format_option("table", "json")
def tables(spec: Path | None, engine: str | None, output_format: str) -> None:
    """List the pipeline's datasets with their rows and versions.

    Rows and version are those of the newest commit, and empty before a table's first update. As
    JSON: an array of objects with name (three parts), kind, flow (the kind of its flows), rows,
    version (of the Delta table) and location.
    """
    project = open_project(spec, engine=engine)
    from millpond import runner

    with prints_aside():
        found, problems = runner.list_tables(project)
    if output_format == "json":
        print_json(
            {
                "name": table.name,
                "kind": str(table.kind),
                "flow": table.flow,
                "rows": table.rows,
                "version": table.version,
                "location": table.location,
            }
            for table in found
        )
    elif found:
        _print_table(found)
    elif not problems:
        click.echo("The pipeline defines no datasets.")
    if problems:
        raise ReportedError(problems)


def _print_table(found: Sequence[TableInfo]) -> None:
    columns = [
        Column("Name"),
        Column("Kind"),
        Column("Flow"),
        Column("Rows", is_number=True),
        Column("Version", is_number=True),
        Column("Location"),
    ]
    rows = [
        [
            table.name,
            table.kind.lower().replace("_", " "),
            table.flow.lower().replace("_", " "),
            "" if table.rows is None else f"{table.rows:,}",
            "" if table.version is None else str(table.version),
            "" if table.location is None else _short_path(Path(table.location)),
        ]
        for table in found
    ]
    if natural_width(columns, rows) > screen_width():
        # Half a path helps nobody; the names are what is needed.
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    print_grid(columns, rows)


def _short_path(path: Path) -> str:
    """The path from the current folder where it lies inside, else whole."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
