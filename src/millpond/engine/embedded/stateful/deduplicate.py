"""`DISTINCT` and `dropDuplicates`: each row once over the whole life of the stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql.types import MapType, StructType

from millpond import state
from millpond.engine.connect.cuts import Cut
from millpond.engine.embedded.stateful.descriptions import columns_of
from millpond.engine.embedded.stateful.event_time import behind_us, is_event_time
from millpond.engine.embedded.stateful.execution import Execution, column_names


def deduplicate(execution: Execution, cut: Cut, relation: Any) -> Any:
    node = relation.deduplicate

    def naming(schema: StructType) -> list[str]:
        return _names(schema, _keys(cut, node, schema))

    rows = execution.cut(cut, node.input, naming=naming)
    keys = _keys(cut, node, rows.schema)
    fields = rows.schema.fields
    event_times = [index for index, field in enumerate(fields) if is_event_time(field)]
    # By the event time in the key, a key can be forgotten; by any other, rows are still late.
    event_times.sort(key=lambda index: index not in keys)
    if node.within_watermark and not event_times:
        raise cut.refused(
            "no column has a watermark", instead="call withWatermark() on a timestamp column first"
        )
    event_time = event_times[0] if event_times else None
    within_us = _within_us(execution, cut) if node.within_watermark else None
    execution.describe(
        cut,
        operator="deduplicate",
        keys=columns_of(StructType([fields[key] for key in keys])),
        event_time=None if event_time is None else fields[event_time].name.lower(),
        within_watermark=node.within_watermark,
    )
    files = rows.files
    if execution.batch is not None:
        files = state.deduplicate(
            execution.batch.state.behind(behind_us(rows.schema)),
            cut.operator,
            rows.files,
            keys=[rows.names[key] for key in keys],
            event_time=None if event_time is None else rows.names[event_time],
            within_us=within_us,
            folder=execution.folder(cut) / "output",
        )
    return execution.rows(rows, files)


def _within_us(execution: Execution, cut: Cut) -> int:
    delays = set(execution.delays_below_us)
    if len(delays) != 1:
        raise cut.refused(
            "its rows come from streams whose watermarks have different delays",
            instead="give them the same delay",
        )
    return delays.pop()


def _names(schema: StructType, keys: Sequence[int]) -> list[str]:
    """What columns are called in files: keys are found again wherever they stand in the query."""
    names = list(column_names(schema))
    for number, key in enumerate(keys):
        names[key] = f"key{number}"
    return names


def _keys(cut: Cut, node: Any, schema: StructType) -> list[int]:
    """The places of the columns to compare, by their names."""
    wanted = {name.lower() for name in node.column_names}
    known = {field.name.lower() for field in schema.fields}
    missing = sorted(wanted - known)
    if missing:
        raise cut.refused(
            f"there is no column {', '.join(missing)}",
            instead=f"name columns of these: {', '.join(schema.names)}",
        )
    keys = [
        index
        for index, field in enumerate(schema.fields)
        if node.all_columns_as_keys or not wanted or field.name.lower() in wanted
    ]
    for key in keys:
        if _holds_map(schema.fields[key].dataType):
            raise cut.refused(
                f"maps can't be compared, and the column {schema.fields[key].name} holds one",
                instead="name the columns to compare with dropDuplicates(), or take the map apart",
            )
    return sorted(keys, key=lambda key: schema.fields[key].name.lower())


def _holds_map(data_type: Any) -> bool:
    if isinstance(data_type, MapType):
        return True
    if isinstance(data_type, StructType):
        return any(_holds_map(field.dataType) for field in data_type.fields)
    element = getattr(data_type, "elementType", None)
    return element is not None and _holds_map(element)
