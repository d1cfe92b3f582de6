"""Remembers the line of user code that built each part of a plan.

PySpark gives a call site to expressions only. Each part of a plan has a number, drawn when it is
built; here the number's drawing is watched.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType

import pyspark
from pyspark.sql.connect.plan import LogicalPlan

import millpond
from millpond.errors import SourceLocation
from millpond.pipelines.registry import file_location

_LIBRARIES = (
    *(str(Path(str(module.__file__)).parent) + os.sep for module in (pyspark, millpond)),
    sysconfig.get_path("stdlib") + os.sep,
    "<frozen ",
)


# Names under which PySpark has a method a second time.
_OTHER_NAMES = {"sort": "orderBy", "dropDuplicates": "drop_duplicates"}


@dataclass(frozen=True)
class CallSite:
    """A line of user code.

    Attributes:
        function: What it called there: a method of a DataFrame or session.
        folder: The current folder at that time, to which relative paths belong.
    """

    location: SourceLocation
    function: str
    folder: str


_SITES: dict[int, CallSite] = {}


@cache
def watch() -> None:
    """Remember call sites from now on. Watching twice is as good as once."""
    draw = LogicalPlan._fresh_plan_id  # noqa: SLF001 - the only place that all plans come through

    def watched() -> int:
        number: int = draw()
        site = call_site()
        if site is not None:
            _SITES[number] = site
        return number

    LogicalPlan._fresh_plan_id = staticmethod(watched)  # noqa: SLF001 - see above


def site_of(plan_id: int) -> CallSite | None:
    """Where the part of a plan with this number was built."""
    return _SITES.get(plan_id)


def call_site() -> CallSite | None:
    """The innermost line of user code that is running, or `None`."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.stack() reads every file
    function = ""
    while frame is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        if not frame.f_code.co_name.startswith(("_", "<")):
            function = frame.f_code.co_name
        frame = frame.f_back
    if frame is None:
        return None
    location = file_location(frame.f_code.co_filename, frame.f_lineno)
    names = frame.f_code.co_names
    other = _OTHER_NAMES.get(function)
    if other in names and function not in names:
        function = other or function
    return CallSite(location, function, str(Path.cwd()))


def user_line(traceback: TracebackType | None) -> SourceLocation | None:
    """The innermost line of user code in a traceback."""
    found: SourceLocation | None = None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith(_LIBRARIES):
            found = file_location(file, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found
