"""Options and argument types that several commands share."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from millpond.cli.settings import ExitCode, ReportedError, Settings
from millpond.errors import MillpondError
from millpond.options import ENGINE
from millpond.redaction import without_credentials

if TYPE_CHECKING:
    from millpond.runner import Project

Command = TypeVar("Command", bound=Callable[..., object])

# Commas between names, not those inside of backticks.
_NAMES = re.compile(r"(?:`(?:[^`]|``)*`|[^`,])+")


class NameList(click.ParamType[tuple[str, ...]]):
    """Names of datasets with commas between them."""

    name = "name,.."

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        names = tuple(name.strip() for name in _NAMES.findall(str(value)))
        if not names or not all(names):
            self.fail(f"{value!r} is not a list of names with commas between them", param, ctx)
        return names


class ConfigurationValues(click.ParamType[Mapping[str, str]]):
    """One configuration value, `key=value`, or all those of a file, `@file`."""

    name = "key=value|@file"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Mapping[str, str]:
        text = str(value)
        if text.startswith("@"):
            return self._of_file(Path(text[1:]), param, ctx)
        key, equals, setting = text.partition("=")
        if not equals or not key.strip():
            shown = without_credentials(repr(text))
            self.fail(f"{shown} is not of the form key=value or @file", param, ctx)
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            self.fail(f"the setting {key.strip()!r} is no UTF-8", param, ctx)
        return {key.strip(): setting}

    def _of_file(
        self, path: Path, param: click.Parameter | None, ctx: click.Context | None
    ) -> Mapping[str, str]:
        from millpond.project import load_configuration

        if not path.exists():
            self.fail(f"there is no file {path}", param, ctx)
        try:
            return load_configuration(path)
        except MillpondError as error:
            raise ReportedError([error], code=ExitCode.WRONG_CALL) from error


def spec_option(command: Command) -> Command:
    """`--spec`, for every command that works on a pipeline."""
    return click.option(
        "--spec",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The pipeline's spec. Default: spark-pipeline.yml in this folder or above it.",
    )(command)


def conf_option(command: Command) -> Command:
    """`--conf`, for commands that evaluate the pipeline's source files."""
    return click.option(
        "--conf",
        type=ConfigurationValues(),
        multiple=True,
        callback=_merged,
        help="Set a configuration value, over the spec's own, or those of a YAML file: @FILE. May "
        "be given several times.",
    )(command)


def _merged(
    _ctx: click.Context, _param: click.Parameter, values: Sequence[Mapping[str, str]]
) -> dict[str, str]:
    """One configuration of all that was given; what comes later goes first."""
    return {key: value for configuration in values for key, value in configuration.items()}


def engine_option(command: Command) -> Command:
    """`--engine`, for commands that need one."""
    return click.option(
        "--engine",
        metavar="ENGINE",
        help="What queries run on: embedded, or a Spark Connect server, sc://host:port. Default: "
        f"{ENGINE.key} of the spec, then the variable SPARK_REMOTE, then embedded.",
    )(command)


def format_option(*formats: str) -> Callable[[Command], Command]:
    """`--format`, the first of `formats` being the default."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="How to print the result.",
    )


def limit_option(command: Command) -> Command:
    """`--limit`, for commands whose result may be long."""
    return click.option(
        "--limit",
        type=click.IntRange(min=0),
        metavar="N",
        help="Print at most N rows; 0 for all. Default: 100 in a table, all otherwise.",
    )(command)


def prints_aside() -> AbstractContextManager[object]:
    """What source files print goes to the error stream: the output is the result alone."""
    return redirect_stdout(sys.stderr)


def open_project(
    spec: Path | None, conf: Mapping[str, str] | None = None, *, engine: str | None = None
) -> Project:
    """Open the pipeline that the options name; a spec that is wrong is a wrong call."""
    from millpond.runner import Project

    chosen = dict(conf or {})
    if engine is not None:
        chosen[ENGINE.key] = engine
    settings = click.get_current_context().ensure_object(Settings)
    settings.redactor.learn(chosen)
    try:
        project = Project.open(spec, conf=chosen)
    except MillpondError as error:
        raise ReportedError([error], code=ExitCode.WRONG_CALL) from error
    settings.redactor.learn(project.spec.configuration)
    return project
