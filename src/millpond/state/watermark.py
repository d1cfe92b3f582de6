"""Watermarks: the newest event time of a batch's rows, which brings a watermark forward."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from millpond.delta.shared_connection import cursor
from millpond.state.batch_rows import column_types, event_us_sql, files_sql
from millpond.state.flow_state import BatchState


def observe(
    state: BatchState, operator: str, rows: Sequence[Path], *, event_time: str, delay_us: int
) -> None:
    """Observe the newest event time among rows: later batches' watermark lags behind it.

    A null event time moves nothing. (Spark counts it as 1970, where every watermark starts.)

    Args:
        state: The batch's.
        operator: Whose watermark it is.
        rows: Parquet files.
        event_time: The column of event time.
        delay_us: By how much the watermark lags.
    """
    newest_us = None
    if rows:
        with cursor(rows) as connection:
            select = f"SELECT * FROM {files_sql(rows)}"
            time_us = event_us_sql(event_time, column_types(connection, select))
            found = connection.execute(f"SELECT max({time_us}) FROM ({select})").fetchall()
            newest_us = found[0][0]
    state.observe(operator, newest_us=newest_us, delay_us=delay_us)
