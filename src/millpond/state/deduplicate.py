"""`DISTINCT` and `dropDuplicates`: one row of each key, over the whole life of a stream.

The keys that were seen are kept: for ever, or until the watermark shows that no row of the key is
to come (or that the user does not care).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from millpond.state.batch_rows import (
    POSITION,
    Files,
    column_types,
    columns_sql,
    equal_sql,
    event_us_sql,
    files_sql,
    working_in,
    write_file,
)
from millpond.state.flow_state import BatchState

_DUE = "__due"


def deduplicate(
    state: BatchState,
    operator: str,
    rows: Sequence[Path],
    *,
    keys: Sequence[str],
    event_time: str | None,
    within_us: int | None,
    folder: Path,
) -> Files:
    """The rows of a batch whose key is new: of each key the first, by the order of files and rows.

    Values are the same as in Spark's DISTINCT: null is null, NaN is NaN, -0.0 is 0.0.

    Args:
        state: The batch's.
        operator: Whose keys they are.
        rows: Parquet files.
        keys: The columns that make the key.
        event_time: The column of event time, where there is a watermark. Late rows are dropped. If
            it is in the key, a key is forgotten when the watermark has reached its event time.
        within_us: A key is forgotten when the watermark is so far past the event time of the row
            that came out. A null event time then counts as 1970, as in Spark.
        folder: For files that live as long as the batch.
    """
    seen = state.rows(operator)
    forgets = event_time is not None and (event_time in keys or within_us is not None)
    fresh: Files = ()
    if rows:
        with working_in(folder, rows) as connection:
            types = column_types(connection, f"SELECT * FROM {files_sql(rows)}")
            time_us = "NULL::BIGINT" if event_time is None else event_us_sql(event_time, types)
            due = "NULL::BIGINT"
            if within_us is not None:
                due = f"coalesce({time_us}, 0) + {within_us}"
            elif forgets:
                due = time_us
            in_time = "true"
            if event_time is not None:
                in_time = f"coalesce({time_us} > {state.late_watermark_us}, true)"
            connection.execute(
                f"CREATE TEMP TABLE firsts AS SELECT {columns_sql(keys)}, "
                f"min({POSITION}) AS __position, arg_min({due}, {POSITION}) AS {_DUE} "
                f"FROM {files_sql(rows)} WHERE {in_time} GROUP BY {columns_sql(keys)}"
            )
            kept = f"SELECT {columns_sql(keys)}, {_DUE}"
            seen.declare(connection, f"{kept} FROM firsts", keys=keys, due=_DUE)
            known = seen.matching(connection, f"SELECT {columns_sql(keys)} FROM firsts", keys=keys)
            connection.execute(
                "CREATE TEMP TABLE fresh AS SELECT firsts.* FROM firsts "
                f"ANTI JOIN ({known}) AS known ON {equal_sql(keys, 'firsts', 'known')}"
            )
            fresh = write_file(
                connection,
                f"SELECT {columns_sql([*types])} FROM {files_sql(rows)} "
                f"WHERE {POSITION} IN (SELECT __position FROM fresh)",
                folder / "first.parquet",
            )
            seen.add(
                connection,
                f"{kept} FROM fresh WHERE {_DUE} IS NULL OR {_DUE} > {state.watermark_us}",
                keys=keys,
                due=_DUE,
            )
    if forgets:
        seen.expire(state.watermark_us)
    return fresh
