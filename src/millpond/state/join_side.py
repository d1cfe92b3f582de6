"""One side of a join of two streams, in one batch: its rows, those kept, and which of them met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.delta import quote
from millpond.state.batch_rows import (
    Files,
    column_types,
    columns_sql,
    event_us_sql,
    files_sql,
    write_file,
)
from millpond.state.flow_state import BatchState
from millpond.state.row_files import ROW_ID_COLUMN

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_DUE = "__due"
_MET_ID = "met_id"


@dataclass(frozen=True)
class Due:
    """A row is dead once the watermark reaches the time in `column` and `shift_us` more.

    Where the column is null, it never is.
    """

    column: str
    shift_us: int = 0


@dataclass(frozen=True)
class Side:
    """The rows of one side of a join in one batch.

    Attributes:
        rows: Parquet files.
        keys: The columns that must equal the other side's, in the same order and of the same types.
            A row with a null among them matches nothing.
        event_time: The column of event time, where the side has a watermark: late rows are dropped.
        due: When no row of the other side that is yet to come can match; `None` where that is never
            known: rows are kept for ever.
        matchable: A BOOLEAN column, what the join's condition asks of this side alone. Where it is
            not true, the row matches nothing: it is not kept, and where the side is outer it comes
            out at once.
    """

    rows: Files
    keys: Sequence[str]
    event_time: str | None = None
    due: Due | None = None
    matchable: str | None = None


class JoinSide:
    """One side at work. First its rows are read; then `look_up`, `store`, and last `unmatched`.

    Attributes:
        new: Files of the rows of the batch that could match.
        old: Files of the rows of earlier batches that could match a new row of the other side.
    """

    def __init__(
        self,
        connection: DuckDBPyConnection,
        state: BatchState,
        operator: str,
        side: Side,
        *,
        name: str,
        is_outer: bool,
        folder: Path,
    ) -> None:
        self.new: Files = ()
        self.old: Files = ()
        self._state = state
        self._side = side
        self._name = name
        self._is_outer = is_outer
        self._folder = folder
        self._kept = state.rows(operator, name)
        # The ids of kept rows that met a partner, which are dead when those rows are.
        self._met = state.rows(operator, f"{name} met")
        self._table = quote(f"{name} rows")
        self._has_keys = " AND ".join(f"{quote(key)} IS NOT NULL" for key in side.keys) or "true"
        self._dead: Files = ()
        self._hopeless: Files = ()
        if is_outer:
            nobody = f"SELECT CAST(NULL AS BIGINT) AS {_MET_ID}, CAST(NULL AS BIGINT) AS {_DUE}"
            self._met.declare(connection, nobody, keys=[_MET_ID], due=_DUE)
        if side.rows:
            self._read(connection)
        self._columns = self._columns_of(connection)

    def _read(self, connection: DuckDBPyConnection) -> None:
        """Put the rows that are to be kept into a table, and those that can't match into a file."""
        side, rows = self._side, files_sql(self._side.rows)
        types = column_types(connection, f"SELECT * FROM {rows}")
        in_time = "true"
        if side.event_time is not None:
            time_us = event_us_sql(side.event_time, types)
            in_time = f"coalesce({time_us} > {self._state.late_watermark_us}, true)"
        can_match = "true" if side.matchable is None else f"{quote(side.matchable)} IS TRUE"
        columns = columns_sql([*types])
        if self._is_outer:
            self._hopeless = write_file(
                connection,
                f"SELECT {columns}, -row_number() OVER () AS {ROW_ID_COLUMN} FROM {rows} "
                f"WHERE {in_time} AND NOT ({can_match})",
                self._path("hopeless"),
            )
        kept = "true" if self._is_outer else self._has_keys
        connection.execute(
            f"CREATE TEMP TABLE {self._table} AS SELECT {columns}, {self._due_us(types)} AS {_DUE} "
            f"FROM {rows} WHERE {in_time} AND {can_match} AND {kept}"
        )
        self._kept.declare(
            connection, f"SELECT * FROM {self._table}", keys=self._side.keys, due=_DUE
        )

    def look_up(self, connection: DuckDBPyConnection, other: JoinSide) -> None:
        """Find the rows of earlier batches whose key is that of a new row of the other side."""
        if not (other._side.rows and self._columns):
            return
        wanted = (
            f"SELECT DISTINCT {columns_sql(other._side.keys)} FROM {other._table} "
            f"WHERE {other._has_keys}"
        )
        found = self._kept.matching(connection, wanted, keys=other._side.keys)
        self.old = write_file(connection, self._with_id(found), self._path("old"))

    def store(self, connection: DuckDBPyConnection) -> None:
        """Keep the new rows, and let go of those that no row to come can match."""
        if self._side.rows:
            added = self._kept.add(
                connection, f"SELECT * FROM {self._table}", keys=self._side.keys, due=_DUE
            )
            could_match = f"{self._with_id(added)} WHERE {self._has_keys}"
            self.new = write_file(connection, could_match, self._path("new"))
            connection.execute(f"DROP TABLE {self._table}")
        if self._side.due is None:
            return
        if self._is_outer and self._columns:
            dead = self._with_id(self._kept.due(self._state.watermark_us))
            self._dead = write_file(connection, dead, self._path("dead"))
        self._kept.expire(self._state.watermark_us)

    def unmatched(
        self, connection: DuckDBPyConnection, met_pairs: Sequence[Path], *, id_column: str
    ) -> Files:
        """Note which rows met a partner; give those that are dead and never did.

        Args:
            met_pairs: Files of pairs, with this side's row in `id_column`.
        """
        if not self._is_outer:
            return ()
        meeting = f"SELECT CAST(NULL AS BIGINT) AS {_MET_ID}"
        if met_pairs:
            meeting = f"SELECT {quote(id_column)} AS {_MET_ID} FROM {files_sql(met_pairs)}"
        lonely: Files = ()
        if self._dead:
            met = self._met.due(self._state.watermark_us)
            lonely = write_file(
                connection,
                f"SELECT dead.* FROM {files_sql(self._dead)} AS dead "
                f"ANTI JOIN ({meeting} UNION ALL SELECT {_MET_ID} FROM ({met}) AS before) AS met "
                f"ON dead.{ROW_ID_COLUMN} = met.{_MET_ID}",
                self._path("lonely"),
            )
        if met_pairs and self._side.due is not None and (self.old or self.new):
            joined = f"SELECT * FROM {files_sql(self.old + self.new)}"
            due = self._due_us(column_types(connection, joined))
            self._met.add(
                connection,
                f"SELECT {ROW_ID_COLUMN} AS {_MET_ID}, {due} AS {_DUE} FROM ({joined}) AS joined "
                f"SEMI JOIN ({meeting}) AS met ON joined.{ROW_ID_COLUMN} = met.{_MET_ID} "
                # A row that is never due never comes out, and nobody asks whether it met another.
                f"WHERE {due} > {self._state.watermark_us}",
                keys=[_MET_ID],
                due=_DUE,
            )
        self._met.expire(self._state.watermark_us)
        return self._hopeless + lonely

    def _columns_of(self, connection: DuckDBPyConnection) -> list[str]:
        """The side's own columns; none where there never was a row."""
        names = column_types(connection, self._kept.live())
        return [name for name in names if name not in {_DUE, ROW_ID_COLUMN}]

    def _with_id(self, rows: str) -> str:
        return f"SELECT {columns_sql([*self._columns, ROW_ID_COLUMN])} FROM ({rows}) AS kept"

    def _due_us(self, types: dict[str, str]) -> str:
        due = self._side.due
        if due is None:
            return "CAST(NULL AS BIGINT)"
        return f"({event_us_sql(due.column, types)} + {due.shift_us})"

    def _path(self, what: str) -> Path:
        return self._folder / f"{self._name}-{what}.parquet"
