"""Aggregation by time windows: rows wait until the watermark passes the end of their window."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from millpond.state.batch_rows import (
    Files,
    column_types,
    columns_sql,
    event_us_sql,
    files_sql,
    working_in,
    write_file,
)
from millpond.state.flow_state import BatchState
from millpond.state.row_files import ROW_ID_COLUMN

_DUE = "__due"


def due_windows(
    state: BatchState, operator: str, rows: Sequence[Path], *, window: str, folder: Path
) -> Files:
    """The rows of the windows that the watermark has passed; the others are kept for later.

    Rows of windows that an earlier batch gave away are late, and dropped. So are rows without a
    window: nothing could ever close it.

    Args:
        state: The batch's.
        operator: Whose rows they are.
        rows: Parquet files, with a row for each window that an event is in.
        window: A column with a struct of `start` and `end`; or a timestamp, where rows are grouped
            by the event time itself.
        folder: For files that live as long as the batch.

    Returns:
        Files with the columns of the rows and, last, `row_id`, another number in each row.
    """
    waiting = state.rows(operator)
    passed = [waiting.due(state.watermark_us)]
    with working_in(folder, rows) as connection:
        if rows:
            types = column_types(connection, f"SELECT * FROM {files_sql(rows)}")
            end_us = event_us_sql(window, types)
            batch = (
                f"SELECT {columns_sql([*types])}, {end_us} AS {_DUE} "
                f"FROM {files_sql(rows)} WHERE {end_us} > {state.late_watermark_us}"
            )
            closed = f"{_DUE} <= {state.watermark_us}"
            waiting.add(
                connection,
                f"SELECT * FROM ({batch}) AS batch WHERE NOT {closed}",
                # Nobody looks for rows by key: this lays those of a window side by side.
                keys=[_DUE],
                due=_DUE,
            )
            passed.append(f"SELECT * FROM ({batch}) AS batch WHERE {closed}")
        waiting.expire(state.watermark_us)
        together = " UNION ALL BY NAME ".join(passed)
        columns = [c for c in column_types(connection, together) if c not in {_DUE, ROW_ID_COLUMN}]
        if not columns:
            return ()
        select = (
            f"SELECT {columns_sql(columns)}, row_number() OVER () AS {ROW_ID_COLUMN} "
            f"FROM ({together}) AS passed"
        )
        return write_file(connection, select, folder / "closed.parquet")
