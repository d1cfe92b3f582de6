"""Rows come out when the watermark passes the end of their window; later ones never do."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millpond.state import due_windows, observe
from tests.state.stream import (
    TIME,
    WINDOW,
    Batch,
    Watermark,
    at,
    batches,
    new_folder,
    read,
    run,
    same,
)

DELAY_MS = 3
WIDTH = 8
SCHEMA = pa.schema([("c0", TIME), ("c1", WINDOW), ("c2", pa.int32())])


def row(ticks: int | None, number: int) -> tuple:
    if ticks is None:
        return (None, None, number)
    start = ticks // WIDTH * WIDTH
    return (at(ticks), {"start": at(start), "end": at(start + WIDTH)}, number)


# Grouped by the window, or by the event time itself.
columns = st.sampled_from(["c1", "c0"])
some_batches = batches(row, st.integers(0, 3))


def due_us(one: tuple, by: str) -> int | None:
    if by == "c0" or one[1] is None:
        return one[0]
    return one[1]["end"]


def plain(one: tuple) -> tuple:
    bounds = (None, None) if one[1] is None else (one[1]["start"], one[1]["end"])
    return (one[0], bounds, one[2])


def expected(by, given_batches):
    watermark, waiting, came_out = Watermark(DELAY_MS), [], []
    for batch in given_batches:
        late_us, now_us = watermark.next_batch([one[0] for one in batch.rows["in"]])
        dues = [(one, due_us(one, by)) for one in batch.rows["in"]]
        waiting += [(one, due) for one, due in dues if due is not None and due > late_us]
        came_out.append({"out": [plain(one) for one, due in waiting if due <= now_us]})
        waiting = [(one, due) for one, due in waiting if due > now_us]
    return came_out


def actual(by, given_batches):
    def operator(state, files, folder):
        observe(state, "w", files["in"], event_time="c0", delay_us=DELAY_MS * 1000)
        out = due_windows(state, "a", files["in"], window=by, folder=folder / "out")
        return {"out": read(out, SCHEMA.names)}

    with new_folder() as folder:
        return run(operator, given_batches, schemas={"in": SCHEMA}, folder=folder)


def check(by, given_batches):
    for one, other in zip(expected(by, given_batches), actual(by, given_batches), strict=True):
        assert same(one, other)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(by=columns, given_batches=some_batches)
def test_a_window_comes_out_once_when_the_watermark_passes_its_end(by, given_batches):
    check(by, given_batches)


def test_a_batch_without_data_lets_windows_out():
    first, newer, nothing = [row(1, 1)], [row(14, 2)], []
    came_out = actual("c1", [Batch({"in": part}) for part in (first, newer, nothing)])
    # The watermark of the third batch is at 7 ms - 3 ms: just the end of the first window.
    assert [out["out"] for out in came_out] == [[], [], [plain(row(1, 1))]]
