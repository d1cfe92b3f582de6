"""Aggregation by windows of time: a window comes out once, when the watermark passes its end.

Until then the rows of a window are kept as they are, so that the engine aggregates them in one go,
with whatever aggregate functions the query has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.connect import proto
from pyspark.sql.types import StringType, StructType

from millpond import state
from millpond.engine.connect.cuts import Cut
from millpond.engine.connect.expressions import called, cast, fingerprint, literal, named
from millpond.engine.connect.intervals import duration_us
from millpond.engine.connect.windows import TimeWindow, replace_windows, window_of
from millpond.engine.embedded.stateful.descriptions import columns_of, hidden_expressions
from millpond.engine.embedded.stateful.event_time import (
    WINDOW,
    Marks,
    behind_us,
    mark_columns,
    marks_of,
    with_event_time,
)
from millpond.engine.embedded.stateful.execution import Carried, CutRows, Execution, Files
from millpond.engine.shapes.aggregation import NEEDS_WINDOW

_WINDOW = "window"
_KEY = "g{index}"


@dataclass(frozen=True)
class _Grouping:
    """By which time an aggregation groups.

    Attributes:
        window: The window, or `None` where it groups by the event time itself.
        index: Its place among the grouping expressions.
        helpers: Further columns that the rows need, by name.
        marks: Those of the time.
        form: What the window is computed by, as JSON.
        keys: Those of the helpers that tell sessions apart.
    """

    window: TimeWindow | None
    index: int
    helpers: Mapping[str, Any]
    marks: Marks
    form: Any
    keys: tuple[str, ...] = ()


def aggregate(execution: Execution, cut: Cut, relation: Any) -> Any:
    node = relation.aggregate
    grouping = _grouping(execution, cut, node)
    rows = execution.cut(cut, node.input, helpers=grouping.helpers, is_kept=True)
    execution.describe(
        cut,
        operator="aggregate",
        window=grouping.form,
        session_keys=[fingerprint(grouping.helpers[key]) for key in grouping.keys],
        columns=columns_of(rows.schema),
        computed=hidden_expressions(node.input),
        event_time=True,
    )
    files = rows.files if execution.batch is None else _due(execution, cut, rows, grouping)
    found = proto.Relation()
    found.CopyFrom(relation)
    if grouping.window is None:
        found.aggregate.input.CopyFrom(execution.rows(rows, files))
        return _marked(execution, found, grouping)
    name = _free_name(grouping.window.function, rows.schema)
    window = Carried(_WINDOW, name, rows.helpers[_WINDOW])
    found.aggregate.input.CopyFrom(execution.rows(rows, files, carried=[window]))
    for expression in found.aggregate.aggregate_expressions:
        replace_windows(expression, grouping.window, name)
    mark_columns(found.aggregate.aggregate_expressions, name, grouping.marks)
    for expression in found.aggregate.grouping_expressions:
        is_alias = expression.WhichOneof("expr_type") == "alias"
        is_window = window_of(expression) is not None
        replace_windows(expression, grouping.window, name)
        if is_window and not is_alias and name != grouping.window.function:
            expression.CopyFrom(named(expression, grouping.window.function))
    return _marked(execution, found, grouping)


def _marked(execution: Execution, aggregation: Any, grouping: _Grouping) -> Any:
    """The groups, with what they are grouped by marked as their event time."""
    schema = execution.schema(aggregation)
    column = schema.names[grouping.index]
    names = [name.lower() for name in schema.names]
    if names.count(column.lower()) > 1:
        return aggregation
    return with_event_time(aggregation, column, grouping.marks)


def _due(execution: Execution, cut: Cut, rows: CutRows, grouping: _Grouping) -> Files:
    """The rows of windows that the watermark passed in this batch."""
    assert execution.batch is not None
    kept = execution.batch.state.behind(behind_us(rows.schema))
    folder = execution.folder(cut) / "output"
    if grouping.window is not None and grouping.window.is_session:
        return state.due_sessions(
            kept,
            cut.operator,
            rows.files,
            window=_WINDOW,
            keys=grouping.keys,
            folder=folder,
        )
    return state.due_windows(kept, cut.operator, rows.files, window=_WINDOW, folder=folder)


def _grouping(execution: Execution, cut: Cut, node: Any) -> _Grouping:
    if node.group_type != proto.Aggregate.GROUP_TYPE_GROUPBY:
        raise cut.refused(**NEEDS_WINDOW)
    expressions = list(node.grouping_expressions)
    windows = [window_of(expression) for expression in expressions]
    calls = [(index, window) for index, window in enumerate(windows) if window is not None]
    if len(calls) > 1:
        raise cut.refused("it groups by two windows of time", instead="group by one of them")
    if not calls:
        return _by_event_time(execution, cut, node)
    index, window = calls[0]
    found = _marks(execution, cut, node.input, window)
    if not window.is_session:
        return _Grouping(window, index, {_WINDOW: window.call}, found, _text(window))
    others = [e for position, e in enumerate(expressions) if position != index]
    keys = {_KEY.format(index=number): _unnamed(e) for number, e in enumerate(others)}
    return _Grouping(
        window,
        index,
        {_WINDOW: _session(execution, cut, node.input, window), **keys},
        found,
        _text(window),
        tuple(keys),
    )


def _text(window: TimeWindow) -> str:
    function, *arguments = window.form
    return f"{function}({' '.join(arguments)})"


def _by_event_time(execution: Execution, cut: Cut, node: Any) -> _Grouping:
    """Grouping by a column of event time: a moment, or a window that was computed before."""
    for index, expression in enumerate(node.grouping_expressions):
        time = _unnamed(expression)
        found = marks_of(time, node.input, execution.column)
        if found:
            form = {"column": fingerprint(time), "window": found.get(WINDOW)}
            return _Grouping(None, index, {_WINDOW: time}, found, form)
    raise cut.refused(**NEEDS_WINDOW)


def _marks(execution: Execution, cut: Cut, relation: Any, window: TimeWindow) -> Marks:
    """The marks of the column that a window is over."""
    found: Marks = {}
    if window.arguments:
        found = marks_of(window.arguments[0], relation, execution.column)
    if not found:
        raise cut.refused(
            f"the time that {window.function}() is given has no watermark",
            instead="give the column that WATERMARK or withWatermark() names, as it is",
        )
    return found


def _session(execution: Execution, cut: Cut, relation: Any, window: TimeWindow) -> Any:
    """What one row alone would cover: the time from its event on, for as long as the gap."""
    if len(window.arguments) != 2:
        raise cut.refused(
            "session_window() takes a time and a gap",
            instead="write session_window(ts, '5 minutes')",
        )
    time, gap = window.arguments
    if gap.WhichOneof("expr_type") == "literal" and gap.literal.HasField("string"):
        length = proto.Expression()
        length.literal.day_time_interval = duration_us(gap.literal.string, where=cut.place.where)
    elif isinstance(execution.column(relation, gap).dataType, StringType):
        length = cast(gap, "interval")
    else:
        length = gap
    end = called("+", time, length)
    return called("named_struct", literal("start"), time, literal("end"), end)


def _unnamed(expression: Any) -> Any:
    is_alias = expression.WhichOneof("expr_type") == "alias"
    return expression.alias.expr if is_alias else expression


def _free_name(name: str, schema: StructType) -> str:
    taken = {column.lower() for column in schema.names}
    return name if name not in taken else f"__millpond_{name}"
