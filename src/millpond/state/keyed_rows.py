"""Rows that an operator keeps and finds by their key."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.delta import quote
from millpond.errors.state import StateIncompatibleError
from millpond.names import path_segment
from millpond.state.compaction import compact, rehash
from millpond.state.row_files import (
    HASH_COLUMN,
    ROW_ID_COLUMN,
    ROWS_OF_PAGE,
    hash_sql,
    rows_sql,
    write_row_files,
)
from millpond.state.version import RowFile, StoredRows

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# So many hashes can be listed, which tells DuckDB the pages to read.
_FEW_KEYS = 2000


class KeyedRows:
    """The rows of one part of an operator, as of a batch that is under way.

    What `matching`, `live` and `due` return is text of a query over the rows stored at the time of
    the call, those added in this batch among them, and stays good until the version after this
    batch is pruned. It gives the columns that were added, in their order, and last `row_id`.

    A part that no batch has declared or added to has no columns: it gives no rows of only `row_id`.
    """

    def __init__(
        self, folder: Path, *, operator: str, part: str, stored: StoredRows | None
    ) -> None:
        self._folder = folder
        self._stem = folder / path_segment(part)
        self._operator = operator
        self._stored = stored
        self._expires_us: int | None = None

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self._folder

    def declare(
        self,
        connection: DuckDBPyConnection,
        select: str,
        *,
        keys: Sequence[str],
        due: str | None = None,
    ) -> None:
        """Say which columns the rows have, as `add` does, without adding any.

        Raises:
            StateIncompatibleError: Rows of other columns are stored.
        """
        import duckdb

        described = connection.execute(f"DESCRIBE SELECT * FROM ({select}) AS given").fetchall()
        columns = tuple((str(name), str(kind)) for name, kind, *_ in described)
        if {HASH_COLUMN, ROW_ID_COLUMN} & {name.lower() for name, _ in columns}:
            raise ValueError(f"{HASH_COLUMN} and {ROW_ID_COLUMN} are no names for stored columns")
        stored = self._stored
        if stored is None:
            self._stored = StoredRows(
                columns=columns, keys=tuple(keys), due=due, hashed_by=duckdb.__version__
            )
            return
        for what, before, now in (
            ("the columns", stored.columns, columns),
            ("the keys", stored.keys, tuple(keys)),
            ("the time to live", stored.due, due),
        ):
            if before != now:
                raise StateIncompatibleError.from_change(
                    self._operator, what=what, before=before, now=now
                )

    def add(
        self,
        connection: DuckDBPyConnection,
        select: str,
        *,
        keys: Sequence[str],
        due: str | None = None,
    ) -> str:
        """Store rows. Each gets a `row_id`, unique for ever within the part.

        Args:
            connection: Sorts the rows by the hash of their key, and spills what does not fit.
            select: Gives the rows; is run again if they outgrow the memory. Its columns must be
                the same in every batch.
            keys: The columns that make the key; may be none.
            due: A BIGINT column, in microseconds: the row is dead once `expire` reaches it; where
                it is null, never.

        Returns:
            A SELECT of just these rows, with their `row_id`.

        Raises:
            StateIncompatibleError: Rows of other columns are stored.
        """
        self.declare(connection, select, keys=keys, due=due)
        stored = self._hashed(connection)
        hashed = hash_sql(quote(key) for key in keys)
        written = write_row_files(
            connection,
            f"SELECT {hashed} AS {HASH_COLUMN}, *, "
            f"{stored.next_row_id - 1} + row_number() OVER () AS {ROW_ID_COLUMN} "
            f"FROM ({select}) AS rows",
            stored=stored,
            stem=self._stem,
        )
        added = rows_sql(replace(stored, floor_us=None), written, folder=self._folder)
        stored = replace(
            stored,
            next_row_id=stored.next_row_id + sum(file.rows for file in written),
            runs=stored.runs + tuple((file,) for file in written),
        )
        self._stored = compact(connection, stored, stem=self._stem)
        return added

    def matching(self, connection: DuckDBPyConnection, other: str, *, keys: Sequence[str]) -> str:
        """A SELECT of the live rows whose key equals that of a row of another query.

        Null equals null, NaN equals NaN, and -0.0 equals 0.0.

        Args:
            connection: Looks at the keys to find.
            other: The other query. It is run more than once.
            keys: Its columns that make the key, in the order of the keys that were added.
        """
        if self._stored is None:
            return _NO_COLUMNS
        stored = self._hashed(connection)
        kinds = dict(stored.columns)
        values = [
            f"CAST({quote(name)} AS {kinds[key]})"
            for key, name in zip(stored.keys, keys, strict=True)
        ]
        candidates = self._candidates(
            connection,
            stored,
            f"SELECT {hash_sql(values)} AS {HASH_COLUMN} FROM ({other}) AS other",
        )
        wanted = ", ".join(f"{value} AS k{index}" for index, value in enumerate(values))
        same = " AND ".join(
            f"stored.{quote(key)} IS NOT DISTINCT FROM wanted.k{index}"
            for index, key in enumerate(stored.keys)
        )
        return (
            f"SELECT stored.* FROM ({candidates}) AS stored "
            f"SEMI JOIN (SELECT {wanted or '1'} FROM ({other}) AS other) AS wanted "
            f"ON {same or 'true'}"
        )

    def live(self) -> str:
        """A SELECT of all live rows."""
        if self._stored is None:
            return _NO_COLUMNS
        return rows_sql(self._stored, self._stored.files, folder=self._folder)

    def due(self, until_us: int) -> str:
        """A SELECT of the live rows that are due by a time."""
        stored = self._stored
        if stored is None:
            return _NO_COLUMNS
        files = [f for f in stored.files if f.due_min is not None and f.due_min <= until_us]
        rows = rows_sql(stored, files, folder=self._folder)
        if not files or stored.due is None:
            return rows
        return f"SELECT * FROM ({rows}) AS live WHERE {quote(stored.due)} <= {until_us}"

    def expire(self, until_us: int) -> None:
        """Let the rows that are due by a time be gone in the next batch.

        In this one they are still given. A time before an earlier one changes nothing.
        """
        self._expires_us = max(until_us, until_us if self._expires_us is None else self._expires_us)

    def after_batch(self) -> StoredRows | None:
        """What is stored once the batch is over."""
        return None if self._stored is None else self._stored.expired(self._expires_us)

    def _hashed(self, connection: DuckDBPyConnection) -> StoredRows:
        """What is stored, with hashes as the DuckDB of this process computes them."""
        import duckdb

        assert self._stored is not None
        if self._stored.hashed_by != duckdb.__version__:
            self._stored = rehash(connection, self._stored, stem=self._stem)
        return self._stored

    def _candidates(self, connection: DuckDBPyConnection, stored: StoredRows, wanted: str) -> str:
        """A SELECT of live rows, all those among them whose `HASH_COLUMN` is in another SELECT."""
        files = stored.files
        few = min(_FEW_KEYS, sum(file.rows for file in files) // (2 * ROWS_OF_PAGE))
        found = []
        if few:
            select = f"SELECT DISTINCT {HASH_COLUMN} FROM ({wanted}) AS wanted LIMIT {few + 1}"
            found = connection.execute(select).fetchall()
        if not 0 < len(found) <= few:
            # Many keys are in all pages, and a join reads these faster without the hashes.
            return rows_sql(stored, files, folder=self._folder)
        hashes = sorted(value for (value,) in found)
        files = [file for file in files if _may_hold(file, hashes)]
        if not files:
            return rows_sql(stored, files, folder=self._folder)
        rows = rows_sql(stored, files, folder=self._folder, with_hash=True)
        listed = ", ".join(map(str, hashes))
        return (
            f"SELECT * EXCLUDE ({HASH_COLUMN}) FROM ({rows}) AS stored "
            f"WHERE {HASH_COLUMN} IN ({listed})"
        )


def _may_hold(file: RowFile, hashes: Sequence[int]) -> bool:
    """Whether any of the hashes, in order, is within the bounds of a file."""
    place = bisect_left(hashes, file.hash_min)
    return place < len(hashes) and hashes[place] <= file.hash_max


_NO_COLUMNS = f"SELECT CAST(NULL AS BIGINT) AS {ROW_ID_COLUMN} WHERE false"
