"""Shows errors to people: what happened, where, and what to do, on the standard error stream."""

from __future__ import annotations

import sys
import textwrap
import traceback
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from millpond.errors import MillpondError
from millpond.redaction import Redactor

if TYPE_CHECKING:
    from rich.console import Console

MAX_WIDTH = 100


def print_problems(
    problems: Sequence[BaseException], *, redactor: Redactor, debug: bool = False
) -> None:
    """Print every problem, an empty line between two, each text once."""
    console = _console()
    for number, problem in enumerate(_distinct(problems)):
        if number:
            console.print()
        _print(console, problem, redactor=redactor, debug=debug)


def print_bug(error: BaseException, *, redactor: Redactor, debug: bool) -> None:
    """Print an error that millpond did not raise on purpose."""
    console = _console()
    _print(console, error, redactor=redactor, debug=debug)
    if not debug:
        console.out("  This is a bug in millpond, or in a library that it uses.", highlight=False)
        console.out(
            "  hint: run again with MILLPOND_DEBUG=1 for the traceback, and report it with that",
            highlight=False,
        )


def print_note(text: str) -> None:
    """Print one line for the person who runs the command, out of the way of its output."""
    _console().out(text, highlight=False)


def describe(error: BaseException) -> str:
    """The text of an error: millpond's own as it is, others with their class."""
    if isinstance(error, MillpondError):
        return str(error)
    text = str(error).strip()
    name = type(error).__name__
    return f"[{name}] {text}" if text else f"[{name}]"


def wrapped(error: BaseException, *, width: int) -> str:
    """The text of an error with its sentences broken to fit; places and details stay whole."""
    text = describe(error)
    kept: set[str] = set()
    if isinstance(error, MillpondError) and error.detail:
        kept = {f"  {line}" for line in error.detail.splitlines()}
    lines: list[str] = []
    for line in text.splitlines():
        if len(line) <= width or line in kept or line.startswith("  at "):
            lines.append(line)
        else:
            lines += textwrap.wrap(
                line,
                width,
                subsequent_indent=" " * 8 if line.startswith("  hint: ") else "  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
    return "\n".join(lines)


def _distinct(problems: Iterable[BaseException]) -> Iterator[BaseException]:
    seen: set[str] = set()
    for problem in problems:
        text = describe(problem)
        if text not in seen:
            seen.add(text)
            yield problem


def _print(console: Console, error: BaseException, *, redactor: Redactor, debug: bool) -> None:
    from rich.text import Text

    # A log keeps lines whole, so that they can be searched.
    shown = wrapped(error, width=min(console.width, MAX_WIDTH)) if console.is_terminal else None
    text = Text(redactor.text(describe(error) if shown is None else shown))
    text.highlight_regex(r"\A\[[^\]\n]*\]", "bold red")
    text.highlight_regex(r"(?m)^  at .*$", "cyan")
    text.highlight_regex(r"(?m)^  hint:", "bold")
    console.print(text, soft_wrap=True)
    if debug:
        trace = redactor.text("".join(traceback.format_exception(error)))
        console.out(trace, highlight=False, end="")


def _console() -> Console:
    from rich.console import Console

    sys.stdout.flush()
    return Console(stderr=True, highlight=False)
