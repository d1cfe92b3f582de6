"""Runs an operator over batches as an engine would: from files, with restarts and second attempts."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from millpond.state import BatchState, FlowState
from millpond.storage import LocalStore

Row = tuple[Any, ...]
Files = tuple[Path, ...]
# A batch's rows by input; the operator's folder; what comes out, by output.
Operator = Callable[[BatchState, Mapping[str, Files], Path], Mapping[str, Sequence[Row]]]

# Event times are told in half milliseconds from here: a watermark counts whole ones.
BASE_US = 1_700_000_000_000_000
TICK_US = 500
TICKS_A_BATCH = 8

TIME = pa.timestamp("us", tz="UTC")
WINDOW = pa.struct([("start", TIME), ("end", TIME)])


def at(ticks: int | None) -> int | None:
    return None if ticks is None else BASE_US + ticks * TICK_US


@dataclass(frozen=True)
class Batch:
    """The rows of a batch, by input, and how it goes: `fails` before or after it is committed."""

    rows: Mapping[str, Sequence[Row]]
    fails: str | None = None
    split: int = 0


@dataclass
class Watermark:
    """What the watermark of each batch is, told by the rule itself."""

    delay_ms: int
    now_us: int = 0
    late_us: int = 0
    reached_us: int = field(default=0)

    def next_batch(self, times_us: Sequence[int | None]) -> tuple[int, int]:
        """The watermark by which rows of the batch are late, and that by which state goes."""
        self.late_us, self.now_us = self.now_us, max(self.now_us, self.reached_us)
        newest = max((time for time in times_us if time is not None), default=0)
        self.reached_us = max(self.reached_us, newest // 1000 * 1000 - self.delay_ms * 1000)
        return self.late_us, self.now_us


def batches(
    row: Callable[..., Row], *values: st.SearchStrategy[Any], names: Sequence[str] = ("in",)
) -> st.SearchStrategy[list[Batch]]:
    """Batches of rows of which each is later than the one before, by less than they overlap.

    Args:
        row: Makes a row of a time in ticks, now and then null, and of further values.
        values: What those are.
        names: The inputs that get rows.
    """
    arguments = st.tuples(st.integers(-1, 45), *values)
    some = st.just([]) | st.lists(arguments, min_size=4, max_size=12)
    parts = st.fixed_dictionaries(dict.fromkeys(names, some))
    fails = st.sampled_from([None, None, "before", "after"])

    def batch(number: int, part: Mapping[str, Sequence[Row]], fails: str, split: int) -> Batch:
        rows = {
            name: [
                row(None if ticks < 0 else ticks + number * TICKS_A_BATCH, *others)
                for ticks, *others in given
            ]
            for name, given in part.items()
        }
        return Batch(rows, fails, split)

    def together(given: Sequence[tuple[Any, ...]]) -> list[Batch]:
        return [batch(number, *one) for number, one in enumerate(given)]

    one = st.tuples(parts, fails, st.integers(0, 4))
    return st.lists(one, min_size=3, max_size=6).map(together)


@contextmanager
def new_folder() -> Iterator[Path]:
    """A folder for one example: Hypothesis runs many in one test."""
    folder = Path(tempfile.mkdtemp(prefix="millpond-state-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(
    operator: Operator, given: Sequence[Batch], *, schemas: Mapping[str, pa.Schema], folder: Path
) -> list[dict[str, list[Row]]]:
    """What comes out of each batch. Every batch is run by a process of its own, so to speak."""
    came_out = []
    for number, batch in enumerate(given):
        attempts = []
        for attempt in range(2 if batch.fails else 1):
            scratch = folder / f"batch-{number}-{attempt}"
            files = {
                name: write(batch.rows[name], schema, folder=scratch / name, split=batch.split)
                for name, schema in schemas.items()
            }
            flow = FlowState(folder / "state", LocalStore())
            state = flow.begin(number)
            attempts.append(
                {name: list(rows) for name, rows in operator(state, files, scratch).items()}
            )
            if attempt or batch.fails != "before":
                state.commit({})
        assert all(same(attempt, attempts[0]) for attempt in attempts)
        flow.prune(committed=number)
        came_out.append(attempts[0])
    return came_out


def same(left: Mapping[str, Sequence[Row]], right: Mapping[str, Sequence[Row]]) -> bool:
    return {name: in_order(rows) for name, rows in left.items()} == {
        name: in_order(rows) for name, rows in right.items()
    }


def in_order(rows: Sequence[Row]) -> list[str]:
    """Rows as a multiset of texts: NaN is NaN then, and -0.0 is 0.0."""
    return sorted(repr(tuple(normal(value) for value in row)) for row in rows)


def normal(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def write(rows: Sequence[Row], schema: pa.Schema, *, folder: Path, split: int) -> Files:
    """Files of rows, none for no rows; the first so many are in a file of their own."""
    folder.mkdir(parents=True)
    paths = []
    for part in (rows[:split], rows[split:]):
        if part:
            columns = [
                pa.array([row[index] for row in part], type=column.type)
                for index, column in enumerate(schema)
            ]
            path = folder / f"{len(paths)}.parquet"
            pq.write_table(pa.table(columns, schema=schema), path)
            paths.append(path)
    return tuple(paths)


def read(files: Sequence[Path], columns: Sequence[str]) -> list[Row]:
    """Rows of files, with times as microseconds."""
    rows: list[Row] = []
    for file in files:
        table = pq.read_table(file)
        rows += zip(*(_values(table.column(name)) for name in columns), strict=True)
    return rows


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_struct(column.type):
        fields = [_values(part) for part in column.combine_chunks().flatten()]
        return list(zip(*fields, strict=True))
    return column.to_pylist()


# Keys of which some are the same without looking so.
KEYS = st.sampled_from([math.nan, 0.0, -0.0, None])
