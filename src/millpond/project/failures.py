"""Turns what user code raised into an error that names the line to look at."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable
from pathlib import Path

from millpond.errors import MillpondError, SourceLocation
from millpond.errors.caret import point_at
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
    frame = _innermost(error, owns=owns)
    place = SourceLocation(file.name)
    detail = None
    if frame is not None:
        place = SourceLocation(display_name(Path(frame.filename), root=root), frame.lineno)
        detail = _with_carets(frame)
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
    error: BaseException, *, owns: Callable[[str | None], bool]
) -> traceback.FrameSummary | None:
    """The last line of the user's own code that was running."""
    linecache.checkcache()
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return next((frame for frame in frames if owns(frame.filename)), None)


def _with_carets(frame: traceback.FrameSummary) -> str | None:
    """The line that was running, with carets below the call in it that failed."""
    line = linecache.getline(frame.filename, frame.lineno or 0).rstrip("\r\n")
    if not line.strip():
        return None
    # Python counts in bytes here.
    data = line.encode()
    ends_here = frame.end_lineno == frame.lineno
    start = len(data[: frame.colno or 0].decode(errors="ignore"))
    end = len(data[: frame.end_colno if ends_here else None].decode(errors="ignore"))
    return point_at(line, line=frame.lineno or 0, column=start + 1, length=end - start)


def _syntax_error(error: SyntaxError, *, root: Path) -> PythonSyntaxError:
    where = SourceLocation(
        display_name(Path(error.filename or ""), root=root), error.lineno, error.offset or None
    )
    detail = None
    if error.text and error.lineno and error.offset:
        ends_here = error.end_lineno == error.lineno
        detail = point_at(
            error.text.rstrip("\r\n"),
            line=error.lineno,
            column=error.offset,
            length=(error.end_offset or 0) - error.offset if ends_here else 1,
        )
    return PythonSyntaxError.from_reason(error.msg, where=where, detail=detail)
