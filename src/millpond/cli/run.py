"""`millpond run`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from millpond.cli.options import NameList, conf_option, engine_option, open_project, spec_option
from millpond.cli.problems import print_problems
from millpond.cli.profile_table import profiled
from millpond.cli.settings import ExitCode, ReportedError, Settings
from millpond.cli.short_names import ShortNames
from millpond.errors.graph import UnknownDatasetError
from millpond.errors.runner import ConflictingSelectionError
from millpond.events.event import Event, EventType, Level

if TYPE_CHECKING:
    from millpond.cli.live_progress import LiveProgress
    from millpond.cli.plain_progress import PlainProgress
    from millpond.runner import UpdateResult

STOPPING = "Stopping. What is being committed is finished. Ctrl-C again stops at once."


@click.command()
@spec_option
@click.option(
    "--refresh",
    type=NameList(),
    multiple=True,
    help="Update only these datasets. Names with commas between them.",
)
@click.option(
    "--full-refresh",
    type=NameList(),
    multiple=True,
    help="Reset these datasets and compute them anew from all of their sources.",
)
@click.option("--full-refresh-all", is_flag=True, help="Reset all datasets and compute them anew.")
@click.option("--profile", is_flag=True, help="Say where the time went, by flow and phase.")
@engine_option
@conf_option
@click.pass_obj
def run(
    settings: Settings,
    *,
    spec: Path | None,
    refresh: tuple[tuple[str, ...], ...],
    full_refresh: tuple[tuple[str, ...], ...],
    full_refresh_all: bool,
    profile: bool,
    engine: str | None,
    conf: Mapping[str, str],
) -> None:
    """Run one update of the pipeline.

    What is new in the sources goes into the tables. Without options every dataset is updated. Where
    one flow fails, those that don't depend on it still finish.
    """
    refreshed = _flat(refresh)
    reset = _flat(full_refresh)
    for option, names in (("--refresh", refreshed), ("--full-refresh", reset)):
        if full_refresh_all and names:
            error = ConflictingSelectionError.from_all(option)
            raise ReportedError([error], code=ExitCode.WRONG_CALL)
    project = open_project(spec, conf, engine=engine)
    from millpond import runner

    shorten = ShortNames(project.spec.catalog, project.spec.schema)
    progress = _progress(shorten)
    settings.signals.announcement = STOPPING
    with profiled(shorten) if profile else nullcontext():
        try:
            with progress:
                result = runner.run_update(
                    project,
                    refresh=refreshed,
                    full_refresh=reset,
                    full_refresh_all=full_refresh_all,
                    listeners=[progress.listen, _warn],
                )
        except (ConflictingSelectionError, UnknownDatasetError) as error:
            raise ReportedError([error], code=ExitCode.WRONG_CALL) from error
        except KeyboardInterrupt:
            progress.say(progress.view.summary())
            raise
        _report(result, progress, settings)


# What a warning about a flow tells of.
_WARNINGS = {"passed_over", "without_values", "not_cleaned", "not_counted"}


def _warn(event: Event) -> None:
    is_definition = event.event_type is EventType.DATASET_DEFINITION
    progress = event.details.get(str(EventType.FLOW_PROGRESS), {})
    if event.level is Level.WARN and (is_definition or not progress.keys().isdisjoint(_WARNINGS)):
        click.echo(f"warning: {event.message}", err=True)


def _flat(lists: Sequence[Sequence[str]]) -> list[str]:
    return [name for names in lists for name in names]


def _progress(shorten: Callable[[str], str]) -> LiveProgress | PlainProgress:
    if sys.stdout.isatty() and os.environ.get("TERM", "") not in {"", "dumb"}:
        from millpond.cli.live_progress import LiveProgress

        return LiveProgress(shorten)
    from millpond.cli.plain_progress import PlainProgress

    return PlainProgress(shorten)


def _report(
    result: UpdateResult, progress: LiveProgress | PlainProgress, settings: Settings
) -> None:
    """Print what went wrong or seems so, then how the update ended."""
    for warning in progress.view.warnings():
        click.echo(f"warning: {warning}", err=True)
    problems: list[BaseException] = [*result.problems]
    problems += [flow.error for flow in result.flows if flow.error is not None]
    if problems:
        print_problems(problems, redactor=settings.redactor, debug=settings.debug)
        click.echo("", err=True)
    progress.say(progress.view.summary())
    if result.state is not result.state.COMPLETED:
        raise ReportedError
