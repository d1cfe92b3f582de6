"""`withWatermark`: hands its rows on, and observes the newest event time among them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql.types import StructField, StructType, TimestampNTZType, TimestampType

from millpond import state
from millpond.engine.connect.cuts import Cut
from millpond.engine.connect.intervals import watermark_delay_us
from millpond.engine.embedded.stateful.event_time import EVENT_TIME, without_event_time
from millpond.engine.embedded.stateful.execution import Execution
from millpond.names import split_name


def watermark(execution: Execution, cut: Cut, relation: Any) -> Any:
    node = relation.with_watermark
    delay_us = watermark_delay_us(node.delay_threshold, where=cut.place.where)
    rows = execution.cut(cut, node.input)
    column = _event_time(cut, node.event_time, rows.schema)
    # The newest watermark of the rows is the one that counts, as in Spark.
    fields = list(without_event_time(rows.schema).fields)
    field = fields[column]
    fields[column] = StructField(
        field.name, field.dataType, field.nullable, {**field.metadata, **EVENT_TIME}
    )
    if execution.batch is not None:
        state.observe(
            execution.batch.state,
            cut.operator,
            rows.files,
            event_time=rows.names[column],
            delay_us=delay_us,
        )
    execution.delays_us.append(delay_us)
    # How long the watermark lags may change from update to update: it never goes back.
    execution.describe(cut, operator="watermark", column=field.name.lower())
    tagged = replace(rows, schema=StructType(fields))
    return execution.rows(tagged, rows.files)


def _event_time(cut: Cut, text: str, schema: StructType) -> int:
    parts = split_name(text, where=cut.place.where)
    name = parts[-1]
    found = [i for i, field in enumerate(schema.fields) if field.name.lower() == name.lower()]
    if len(found) != 1:
        problem = "is in the query more than once" if found else "is not there"
        known = ", ".join(schema.names)
        raise cut.refused(
            f"its column {name} {problem}", instead=f"name one column of these: {known}"
        )
    data_type = schema.fields[found[0]].dataType
    if not isinstance(data_type, TimestampType | TimestampNTZType):
        raise cut.refused(
            f"its column {name} has the type {data_type.simpleString()}",
            instead="give a column of type TIMESTAMP, such as CAST(.. AS TIMESTAMP)",
        )
    return found[0]
