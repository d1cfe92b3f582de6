"""`millpond maintain`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from millpond.cli.grid import Column, print_grid
from millpond.cli.options import (
    NameList,
    engine_option,
    format_option,
    open_project,
    prints_aside,
    spec_option,
)
from millpond.cli.rows import print_json
from millpond.cli.settings import ExitCode, ReportedError
from millpond.cli.wording import size
from millpond.errors.graph import UnknownDatasetError

if TYPE_CHECKING:
    from millpond.runner import MaintainedTable


@click.command()
@spec_option
@click.option(
    "--tables",
    type=NameList(),
    multiple=True,
    help="Only these tables. Names with commas between them; event_log is one.",
)
@click.option("--dry-run", is_flag=True, help="Say what there is to do, and change nothing.")
@engine_option
@format_option("table", "json")
def maintain(
    spec: Path | None,
    *,
    tables: tuple[tuple[str, ...], ...],
    dry_run: bool,
    engine: str | None,
    output_format: str,
) -> None:
    """Tidy tables: put small files together, remove old ones.

    An update does most of this by itself. Rows stay as they are, and readers, streams and a running
    update see no change. As JSON: an array of objects with name, files_before, files_after,
    bytes_before, bytes_after, vectors_purged, files_removed, bytes_removed, log_files_removed,
    checkpoints_written and given_up (rewrites that other writers came in the way of).
    """
    project = open_project(spec, engine=engine)
    from millpond import runner

    try:
        with prints_aside():
            found, problems = runner.maintain(
                project, tables=[name for names in tables for name in names], dry_run=dry_run
            )
    except UnknownDatasetError as error:
        raise ReportedError([error], code=ExitCode.WRONG_CALL) from error
    if output_format == "json":
        print_json(map(_as_json, found))
    elif found:
        _print_table(found, dry_run=dry_run)
    elif not problems:
        click.echo("There are no tables yet.")
    failed = [table.problem for table in found if table.problem is not None]
    if problems or failed:
        raise ReportedError([*problems, *failed])


def _as_json(table: MaintainedTable) -> dict[str, object]:
    report = table.report
    return {
        "name": table.name,
        "files_before": table.files_before,
        "files_after": table.files_after,
        "bytes_before": table.bytes_before,
        "bytes_after": table.bytes_after,
        "vectors_purged": report.vectors_purged,
        "files_removed": report.files_removed,
        "bytes_removed": report.bytes_removed,
        "log_files_removed": report.log_files_removed,
        "checkpoints_written": report.checkpoints_written,
        "given_up": report.given_up,
    }


def _print_table(found: Sequence[MaintainedTable], *, dry_run: bool) -> None:
    columns = [
        Column("Name"),
        Column("Files", is_number=True),
        Column("Size", is_number=True),
        Column("Vectors purged", is_number=True),
        Column("Old files removed", is_number=True),
        Column("Of the log", is_number=True),
    ]
    rows = [
        [
            table.name,
            _change(f"{table.files_before:,}", f"{table.files_after:,}"),
            _change(size(table.bytes_before), size(table.bytes_after)),
            f"{table.report.vectors_purged:,}",
            _removed(table),
            f"{table.report.log_files_removed:,}",
        ]
        for table in found
    ]
    print_grid(columns, rows)
    if dry_run:
        click.echo("\nNothing was changed: this is what millpond maintain would do.")


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} -> {after}"


def _removed(table: MaintainedTable) -> str:
    count = f"{table.report.files_removed:,}"
    return f"{count} ({size(table.report.bytes_removed)})" if table.report.bytes_removed else count
