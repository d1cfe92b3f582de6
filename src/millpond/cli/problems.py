"""Shows errors to people: what happened, where, and what to do, on the standard error stream."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from millpond.errors import MillpondError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def print_problems(problems: Sequence[BaseException], *, debug: bool = False) -> None:
    """Print every problem, an empty line between two, each text once."""
    console = _console()
    for number, problem in enumerate(_distinct(problems)):
        if number:
            console.print()
        console.print(_text(problem), soft_wrap=True)
        if debug:
            console.out("".join(traceback.format_exception(problem)), highlight=False, end="")


def print_bug(error: BaseException, *, debug: bool) -> None:
    """Print an error that millpond did not raise on purpose."""
    console = _console()
    console.print(_text(error), soft_wrap=True)
    if debug:
        console.out("".join(traceback.format_exception(error)), highlight=False, end="")
        return
    console.print(
        "  This is a bug in millpond, or in a library that it uses.\n"
        "  hint: run again with MILLPOND_DEBUG=1 for the traceback, and report it with that",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )


def print_note(text: str) -> None:
    """Print one line for the person who runs the command, out of the way of its output."""
    _console().print(text, soft_wrap=True, highlight=False, markup=False)


def describe(error: BaseException) -> str:
    """The text of an error: millpond's own as it is, others with their class."""
    if isinstance(error, MillpondError):
        return str(error)
    text = str(error).strip()
    name = type(error).__name__
    return f"[{name}] {text}" if text else f"[{name}]"


def _distinct(problems: Iterable[BaseException]) -> Iterator[BaseException]:
    seen: set[str] = set()
    for problem in problems:
        text = describe(problem)
        if text not in seen:
            seen.add(text)
            yield problem


def _text(error: BaseException) -> Text:
    from rich.text import Text

    text = Text(describe(error))
    text.highlight_regex(r"\A\[[^\]\n]*\]", "bold red")
    text.highlight_regex(r"(?m)^  at .*$", "cyan")
    text.highlight_regex(r"(?m)^  hint:", "bold")
    return text


def _console() -> Console:
    from rich.console import Console

    sys.stdout.flush()
    return Console(stderr=True, highlight=False)
