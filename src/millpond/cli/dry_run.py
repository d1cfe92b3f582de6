"""`millpond dry-run`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from millpond.cli.options import (
    conf_option,
    engine_option,
    format_option,
    open_project,
    prints_aside,
    spec_option,
)
from millpond.cli.problems import print_note
from millpond.cli.settings import ReportedError, Settings
from millpond.cli.wording import plural
from millpond.errors import MillpondError


@click.command("dry-run")
@spec_option
@engine_option
@conf_option
@format_option("text", "json")
@click.pass_obj
def dry_run(
    settings: Settings,
    *,
    spec: Path | None,
    engine: str | None,
    conf: Mapping[str, str],
    output_format: str,
) -> None:
    """Find every problem that shows without reading data.

    All problems are reported in one go, each with its file and line. No table is written. As JSON:
    an array of objects with error_class, sqlstate, message, hint, detail (the line, marked), file,
    line and column.
    """
    project = open_project(spec, conf, engine=engine)
    from millpond import runner

    with prints_aside():
        problems = runner.dry_run(project)
    if output_format == "json":
        shown = settings.redactor.value([_as_json(problem) for problem in problems])
        click.echo(json.dumps(shown, indent=2))
        if problems:
            raise ReportedError
        return
    if problems:
        print_note(f"{plural(len(problems), 'problem')} found.\n")
        raise ReportedError(problems)
    click.echo("No problems found.")


def _as_json(problem: MillpondError) -> dict[str, Any]:
    where = problem.where
    return {
        "error_class": problem.error_class,
        "sqlstate": problem.sqlstate,
        "message": problem.what,
        "hint": problem.hint,
        "detail": problem.detail,
        "file": where.file if where else None,
        "line": where.line if where else None,
        "column": where.column if where else None,
    }
