"""`millpond events`."""

from __future__ import annotations

from pathlib import Path

import click

from millpond.cli.grid import Column
from millpond.cli.options import format_option, limit_option, open_project, spec_option
from millpond.cli.rows import print_json, print_table, row_limit
from millpond.cli.settings import ExitCode, ReportedError
from millpond.cli.short_names import ShortNames
from millpond.errors.events import UpdateNotFoundError


@click.command()
@spec_option
@click.option(
    "--update",
    default="all",
    show_default=True,
    metavar="ID|latest|all",
    help="Only the events of one update; the beginning of its id is enough.",
)
@format_option("table", "json")
@limit_option
def events(spec: Path | None, update: str, output_format: str, limit: int | None) -> None:
    """Print the event log of the pipeline's updates.

    Events of an update that is running are among them. With a limit, the newest are printed. As
    JSON: an array of objects with id, sequence, origin, timestamp, message, level, maturity_level,
    error, details (JSON text) and event_type.
    """
    project = open_project(spec)
    from millpond import runner

    try:
        found = runner.read_events(project, update)
    except UpdateNotFoundError as error:
        raise ReportedError([error], code=ExitCode.WRONG_CALL) from error
    total = len(found)
    most = row_limit(limit, output_format=output_format)
    if most is not None:
        found = found[-most:]
    if output_format == "json":
        print_json(event.to_record() for event in found)
        return
    if not found:
        click.echo("No events: no update has run yet.")
        return
    shorten = ShortNames(project.spec.catalog, project.spec.schema)
    print_table(
        [Column("Time (UTC)"), Column("Update"), Column("Level"), Column("Message")],
        (
            [
                f"{event.timestamp:%Y-%m-%d %H:%M:%S}",
                event.origin.update_id[:8],
                str(event.level),
                shorten(event.message).replace(event.origin.update_id, event.origin.update_id[:8]),
            ]
            for event in found
        ),
        total=total,
        hint="the newest; --limit 0 shows all",
    )
