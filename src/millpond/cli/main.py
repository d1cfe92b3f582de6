"""The command `millpond`: its commands, and what becomes of their errors.

Modules that a quick command does not need are imported where they are used: `--help` must not
wait for an engine.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from millpond import __version__
from millpond.cli.dry_run import dry_run
from millpond.cli.events import events
from millpond.cli.init import init
from millpond.cli.interrupts import StopSignals, stoppable
from millpond.cli.maintain import maintain
from millpond.cli.problems import print_bug, print_note, print_problems
from millpond.cli.query import query
from millpond.cli.run import run
from millpond.cli.settings import ExitCode, ReportedError, Settings
from millpond.cli.tables import tables
from millpond.errors import MillpondError
from millpond.errors.runner import StorageNotWritableError

HELP_WIDTH = 100
_FORESEEN = (MillpondError, ReportedError, click.ClickException)
# Python looks for garbage in cycles after each 700 new objects, which takes a program that imports
# 1,000 modules and may list 100,000 files a tenth of its time.
_OBJECTS_BETWEEN_COLLECTIONS = 100_000


class StoppedError(Exception):
    """`KeyboardInterrupt`, for which click would print an empty line."""


class ReaderGoneError(Exception):
    """`BrokenPipeError`, for which click would exit with 1."""


class Commands(click.Group):
    """Lists the commands in the order in which people need them, and leaves their ends to us."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise StoppedError from error
        except BrokenPipeError as error:
            raise ReaderGoneError from error

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 click's API
        return list(self.commands)


@click.group(
    cls=Commands,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": HELP_WIDTH,
    },
)
@click.version_option(__version__, message="millpond %(version)s")
@click.option("--debug", is_flag=True, help="Show tracebacks. Also: MILLPOND_DEBUG=1.")
@click.pass_obj
def millpond(settings: Settings, *, debug: bool) -> None:
    """Run Lakeflow-style pipelines over Delta tables, on one machine.

    Exit codes: 0 success, 1 something failed, 2 a wrong call or spec, 130 stopped by Ctrl-C.
    """
    settings.debug = settings.debug or debug


for command in (init, run, dry_run, tables, query, events, maintain):
    millpond.add_command(command)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    for stream in (sys.stdout, sys.stderr):
        # Data may hold characters that the terminal's encoding lacks.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    code = _call(arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _leave_broken_pipe()
    if code > ExitCode.of_signal(0):
        # Python would wait for threads of PySpark's, whose engine may give no answer any more.
        sys.stderr.flush()
        os._exit(code)
    # What is alive goes with the process: Python need not look through all of it for garbage first.
    gc.freeze()
    sys.exit(code)


def _call(arguments: Sequence[str] | None) -> int:
    settings = Settings()
    signals = settings.signals
    try:
        with stoppable(signals):
            return _invoke(arguments, settings)
    except KeyboardInterrupt:
        # It came while the handling of signals began or ended, or an error was handled.
        return _stopped(signals)


def _invoke(arguments: Sequence[str] | None, settings: Settings) -> int:
    signals = settings.signals
    try:
        millpond.main(
            None if arguments is None else list(arguments),
            prog_name="millpond",
            obj=settings,
            standalone_mode=False,
        )
    except (StoppedError, KeyboardInterrupt, click.Abort):
        return _stopped(signals)
    except Exception as error:  # noqa: BLE001 nothing may reach the user as a bare traceback
        if signals.received is not None and not isinstance(error, _FORESEEN):
            # Libraries raise errors of their own then, and an engine that starts stops as well.
            return _stopped(signals)
        return _failed(error, settings)
    return ExitCode.SUCCESS


def _stopped(signals: StopSignals) -> int:
    if not signals.is_heeded:
        signals.is_heeded = True
        if signals.announcement is None:
            print_note("stopped")
    return ExitCode.of_signal(signals.received or signal.SIGINT)


def _failed(error: Exception, settings: Settings) -> int:
    """Say what went wrong, and return the exit code for it."""
    debug, redactor = settings.debug, settings.redactor
    match error:
        case ReportedError():
            print_problems(error.problems, redactor=redactor, debug=debug)
            return error.code
        case MillpondError():
            print_problems([error], redactor=redactor, debug=debug)
            return ExitCode.FAILURE
        case click.ClickException():
            error.show()
            return error.exit_code
        case ReaderGoneError() | BrokenPipeError():
            return _leave_broken_pipe()
        case OSError() if error.filename is not None:
            problem = StorageNotWritableError.from_command(error)
            problem.__cause__ = error
            print_problems([problem], redactor=redactor, debug=debug)
            return ExitCode.FAILURE
        case _:
            print_bug(error, redactor=redactor, debug=debug)
            return ExitCode.FAILURE


def _leave_broken_pipe() -> int:
    """Let nothing complain at exit about a reader that has gone, as after `| head`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.BROKEN_PIPE
