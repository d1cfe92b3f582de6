"""Stored rows behave as a list of rows in memory would, over batches, attempts and restarts."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.delta import connect
from millpond.state import FlowState
from millpond.storage import LocalStore

KEYS = st.one_of(st.none(), st.integers(0, 12))
DUE = st.one_of(st.none(), st.integers(0, 30))
COLUMNS = "k INTEGER, d BIGINT"


@dataclass(frozen=True)
class Batch:
    rows: list[tuple[int | None, int | None]]
    asked: list[int | None]
    until: int
    is_repeated: bool


BATCHES = st.lists(
    st.builds(
        Batch,
        rows=st.lists(st.tuples(KEYS, DUE), max_size=6),
        asked=st.lists(KEYS, max_size=4),
        until=st.integers(0, 30),
        is_repeated=st.booleans(),
    ),
    min_size=3,
    max_size=8,
)


@contextmanager
def new_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="millpond-rows-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def in_order(rows):
    return sorted(rows, key=repr)


def values(columns, rows):
    names = ", ".join(column.split()[0] for column in columns.split(", "))
    kinds = [column.split()[1] for column in columns.split(", ")]
    listed = ", ".join(
        "("
        + ", ".join(
            f"{'NULL' if v is None else v}::{kind}" for v, kind in zip(row, kinds, strict=True)
        )
        + ")"
        for row in rows
    )
    nothing = ", ".join(f"NULL::{kind}" for kind in kinds)
    return f"SELECT * FROM (VALUES {listed or f'({nothing})'}) AS t ({names})" + (
        "" if rows else " WHERE false"
    )


# So that few rows are looked up, merged and written again as many are.
@mock.patch("millpond.state.keyed_rows.ROWS_OF_PAGE", 1)
@mock.patch("millpond.state.compaction.RUNS_MERGED", 3)
@mock.patch("millpond.state.compaction._FILE_BYTES", 500)
@mock.patch("millpond.state.row_files._ROWS_WORTH_HALVING", 4)
@settings(max_examples=40, deadline=None)
@given(batches=BATCHES)
def test_any_batches_give_what_a_list_of_rows_would(batches):
    kept, floor = [], -1
    with new_folder() as folder, closing(connect()) as connection:
        for number, batch in enumerate(batches):
            state = FlowState(folder / "state", LocalStore())
            for attempt in range(2 if batch.is_repeated else 1):
                begun = state.begin(number)
                stored = begun.rows("o")
                select = values(COLUMNS, batch.rows)
                stored.declare(connection, select, keys=["k"], due="d")
                asked = values("a INTEGER", [(key,) for key in batch.asked])
                found = connection.execute(stored.matching(connection, asked, keys=["a"]))
                live = [row for row in kept if row[1] is None or row[1] > floor]
                assert in_order(row[:2] for row in found.fetchall()) == in_order(
                    row for row in live if row[0] in batch.asked
                )
                added = connection.execute(
                    stored.add(connection, select, keys=["k"], due="d")
                ).fetchall()
                assert in_order(row[:2] for row in added) == in_order(batch.rows)
                arrived = [row for row in batch.rows if row[1] is None or row[1] > floor]
                found = connection.execute(stored.live()).fetchall()
                assert in_order(row[:2] for row in found) == in_order(live + arrived)
                assert len({row[2] for row in found}) == len(found)
                found = connection.execute(stored.due(batch.until)).fetchall()
                assert in_order(row[:2] for row in found) == in_order(
                    row for row in live + arrived if row[1] is not None and row[1] <= batch.until
                )
                stored.expire(batch.until)
                if attempt or number % 2 or not batch.is_repeated:
                    begun.commit({})
            kept += batch.rows
            floor = max(floor, batch.until)
            state.prune(committed=number)
