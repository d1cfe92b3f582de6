"""`millpond init`."""

from __future__ import annotations

from pathlib import Path

import click

from millpond.cli.settings import ExitCode, ReportedError
from millpond.errors import MillpondError


@click.command()
@click.argument("name", required=False)
@click.option("--name", "name_option", metavar="NAME", help="The same, as spark-pipelines has it.")
def init(name: str | None, name_option: str | None) -> None:
    """Make a project folder NAME with a spec and two examples.

    The examples, one in SQL and one in Python, use REPLACE USING and run as they are.
    """
    if name is None and name_option is None:
        raise click.UsageError("Missing argument 'NAME'.")
    if name is not None and name_option is not None:
        raise click.UsageError("Give NAME as an argument or by --name, not both.")
    chosen = name or name_option or ""
    from millpond.project import init_project

    try:
        # Of a path, the last part is the pipeline's name.
        folder = init_project(Path(chosen).parent, Path(chosen).name)
    except MillpondError as error:
        raise ReportedError([error], code=ExitCode.WRONG_CALL) from error
    click.echo(f"Made {folder}. Next:\n  cd {folder}\n  millpond run\n  millpond tables")
