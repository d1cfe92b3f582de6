"""Turns what user code raised into an error that names the line to look at."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable
from pathlib import Path

from millpond.errors import MillpondError, SourceLocation
from millpond.errors.project import PythonSyntaxError, SourceFileFailedError
from millpond.project.source_files import SourceFile, display_name


def explain(
    error: BaseException, *, file: SourceFile, owns: Callable[[str | None], bool], root: Path
) -> MillpondError:
    """The error to report for an exception that came out of running `file`.

    Args:
        error: What was raised. It becomes the `__cause__`.
        file: The source file that was run.
        owns: Whether a file is the user's code.
        root: Project folder; files inside are named relative to it.
    """
    place, source_line = _innermost(error, owns=owns, root=root)
    place = place or SourceLocation(file.name)
    detail = source_line or None
    if isinstance(error, MillpondError):
        error.where = error.where or place
        return error
    explained: MillpondError
    if isinstance(error, SyntaxError) and owns(error.filename):
        explained = _syntax_error(error, root=root)
    elif isinstance(error, SyntaxError | ValueError) and place.line is None:
        # No line of the file ran: its text can't be compiled, as with null characters in it.
        explained = PythonSyntaxError.from_reason(str(error), where=place, detail=None)
    elif isinstance(error, SystemExit):
        explained = SourceFileFailedError.from_exit(where=place, detail=detail)
    else:
        explained = SourceFileFailedError.from_exception(error, where=place, detail=detail)
    explained.__cause__ = error
    return explained


def _innermost(
    error: BaseException, *, owns: Callable[[str | None], bool], root: Path
) -> tuple[SourceLocation | None, str]:
    """The last line of the user's own code that was running, with its text."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        name = frame.f_code.co_filename
        if owns(name):
            linecache.checkcache(name)
            where = SourceLocation(display_name(Path(name), root=root), line)
            return where, linecache.getline(name, line).strip()
    return None, ""


def _syntax_error(error: SyntaxError, *, root: Path) -> PythonSyntaxError:
    where = SourceLocation(
        display_name(Path(error.filename or ""), root=root), error.lineno, error.offset or None
    )
    return PythonSyntaxError.from_reason(error.msg, where=where, detail=_with_caret(error))


def _with_caret(error: SyntaxError) -> str | None:
    if not error.text or not error.offset:
        return None
    text = error.text.rstrip("\n")
    before = "".join(char if char == "\t" else " " for char in text[: error.offset - 1])
    width = 1
    if error.end_lineno == error.lineno and error.end_offset:
        width = max(1, error.end_offset - error.offset)
    return f"{text}\n{before}{'^' * width}"
