"""Errors for what Delta Lake on Spark says went wrong with a source or a table of a flow."""

from __future__ import annotations

import re

from millpond.engine.spark import SparkEngine
from millpond.errors import MillpondError
from millpond.errors.delta import NotNullViolatedError
from millpond.errors.streaming import StreamSourceChangedError
from millpond.graph import StreamRead
from millpond.runner.schedule import Task
from millpond.runner.spark.tables import SparkTable

_CHANGED = re.compile(
    r"DELTA_SOURCE_(TABLE_IGNORE_CHANGES|IGNORE_DELETE)\b.*?\bversion (\d+)", re.DOTALL
)
_NULL = re.compile(r"DELTA_NOT_NULL_CONSTRAINT_VIOLATED\b.*?\bcolumn: (.+?)\.?$", re.MULTILINE)


def delta_failure(text: str, task: Task, engine: SparkEngine) -> MillpondError | None:
    """The error for a message of Spark's, where Delta is behind it."""
    null = _NULL.search(text)
    if null is not None:
        return NotNullViolatedError.in_column(null[1])
    changed = _CHANGED.search(text)
    stream = None if changed is None else _source_in(text, task)
    if changed is not None and stream is not None:
        version = int(changed[2])
        return StreamSourceChangedError.from_commit(
            stream.source,
            version,
            operation=_operation(stream, version, engine),
            only_removes=changed[1] == "IGNORE_DELETE",
        )
    return None


def _source_in(text: str, task: Task) -> StreamRead | None:
    """The stream over the table whose location a message tells; `None` where none is one's own."""
    streams = [stream for stream in task.flow.streams if isinstance(stream.table, SparkTable)]
    if len(streams) > 1:
        places = {stream.source: _table(stream).detail() for stream in streams}
        told = [
            stream
            for stream in streams
            if (place := places[stream.source]) is not None
            and place.location.removeprefix("file:") in text
        ]
        streams = told or streams
    return streams[0] if streams else None


def _table(stream: StreamRead) -> SparkTable:
    assert isinstance(stream.table, SparkTable)
    return stream.table


def _operation(stream: StreamRead, version: int, engine: SparkEngine) -> str:
    """What the table's history calls a commit."""
    history = engine.rows(f"DESCRIBE HISTORY {_table(stream).sql}")
    return next((row["operation"] for row in history if row["version"] == version), "a commit")
