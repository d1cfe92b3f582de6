"""Aggregation by sessions: rows of a key that follow each other closely, until they are over.

A row covers the time from its event to an end of its own, and rows of a key that overlap or touch
are one session. A session can grow at both ends, and join another, until the watermark has reached
its end. Rows wait with the end that their session has so far. When the watermark reaches that and
the session has grown meanwhile, the row is stored anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.delta import quote
from millpond.state.batch_rows import (
    Files,
    column_types,
    columns_sql,
    files_sql,
    working_in,
    write_file,
)
from millpond.state.flow_state import BatchState
from millpond.state.keyed_rows import KeyedRows
from millpond.state.row_files import ROW_ID_COLUMN

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_DUE = "__due"
# A column of the table of sessions: the struct that the row's window becomes.
_SESSION = "__session"


def due_sessions(
    state: BatchState,
    operator: str,
    rows: Sequence[Path],
    *,
    window: str,
    keys: Sequence[str],
    folder: Path,
) -> Files:
    """The rows of the sessions that the watermark has passed; the others are kept for later.

    Late is a row whose own end the watermark had reached before this batch, even where the session
    that it would belong to is still open, as in Spark. It is dropped, and so is one whose end is
    not after its start, or that lacks either.

    Args:
        state: The batch's.
        operator: Whose rows they are.
        rows: Parquet files.
        window: A column with a struct of `start` and `end`: what a row covers by itself. It comes
            out as what the row's session covers.
        keys: Columns: a session is of one key.
        folder: For files that live as long as the batch.

    Returns:
        Files with the columns of the rows and, last, `row_id`, another number in each row.
    """
    waiting = state.rows(operator)
    with working_in(folder, rows) as connection:
        if rows:
            start_us, end_us = _bound_us(window, "start"), _bound_us(window, "end")
            fresh = (
                f"SELECT *, {end_us} AS {_DUE} FROM {files_sql(rows)} "
                f"WHERE {end_us} > {start_us} AND {end_us} > {state.late_watermark_us}"
            )
            waiting.declare(connection, fresh, keys=keys, due=_DUE)
        else:
            fresh = f"SELECT * EXCLUDE ({ROW_ID_COLUMN}) FROM ({waiting.live()}) WHERE false"
        known = column_types(connection, waiting.live())
        columns = [name for name in known if name not in {_DUE, ROW_ID_COLUMN}]
        if not columns:
            return ()
        _find_sessions(connection, state, waiting, fresh=fresh, window=window, keys=keys)
        end_us = _bound_us(_SESSION, "end")
        closed = write_file(
            connection,
            f"SELECT {columns_sql(columns)}, row_number() OVER () AS {ROW_ID_COLUMN} "
            f"FROM (SELECT * REPLACE ({_SESSION} AS {quote(window)}) "
            f"FROM sessions WHERE {end_us} <= {state.watermark_us})",
            folder / "closed.parquet",
        )
        waiting.add(
            connection,
            f"SELECT {columns_sql(columns)}, {end_us} AS {_DUE} FROM sessions "
            f"WHERE {end_us} > {state.watermark_us} AND "
            # The others are stored already, with a time that is yet to come.
            f"({ROW_ID_COLUMN} IS NULL OR {_DUE} <= {state.watermark_us})",
            keys=keys,
            due=_DUE,
        )
        waiting.expire(state.watermark_us)
        return closed


def _find_sessions(
    connection: DuckDBPyConnection,
    state: BatchState,
    waiting: KeyedRows,
    *,
    fresh: str,
    window: str,
    keys: Sequence[str],
) -> None:
    """Make a table `sessions` of all new rows, and of the stored rows of keys that are touched.

    Touched is a key of which something is due. The sessions of other keys are looked for among the
    new rows alone: where one is longer than it looks, it is found out when it is due.
    """
    listed = columns_sql(keys) or "1"
    start, end = (f"struct_extract({quote(window)}, '{bound}')" for bound in ("start", "end"))
    connection.execute(
        f"CREATE TEMP TABLE touched AS SELECT DISTINCT {listed} FROM ("
        f"SELECT * FROM ({fresh}) AS fresh UNION ALL BY NAME "
        f"SELECT * FROM ({waiting.due(state.watermark_us)}) AS due"
        f") AS rows WHERE {_DUE} <= {state.watermark_us}"
    )
    stored = waiting.matching(connection, "SELECT * FROM touched", keys=keys)
    connection.execute(
        f"CREATE TEMP TABLE sessions AS WITH rows AS ({stored} UNION ALL BY NAME {fresh}), "
        f"opening AS (SELECT *, coalesce({start} > max({end}) OVER (PARTITION BY {listed} "
        f"ORDER BY {start} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), true) AS __opens "
        f"FROM rows), "
        # RANGE: rows that start at the same time have the same number, whichever opens the session.
        f"numbered AS (SELECT * EXCLUDE (__opens), sum(__opens::BIGINT) OVER (PARTITION BY "
        f"{listed} ORDER BY {start} RANGE UNBOUNDED PRECEDING) AS __number FROM opening) "
        f"SELECT * EXCLUDE (__number), {{'start': min({start}) OVER same, "
        f"'end': max({end}) OVER same}} AS {_SESSION} "
        f"FROM numbered WINDOW same AS (PARTITION BY {listed}, __number)"
    )


def _bound_us(window: str, bound: str) -> str:
    return f"epoch_us(struct_extract({quote(window)}, '{bound}'))"
