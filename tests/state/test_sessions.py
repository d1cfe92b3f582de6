"""Rows of a key that overlap or touch are one session; it comes out once, when it is over."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millpond.state import due_sessions, observe
from tests.state.stream import (
    TIME,
    WINDOW,
    Batch,
    Watermark,
    at,
    batches,
    new_folder,
    normal,
    read,
    run,
    same,
)

DELAY_MS = 5
GAP = 6
SCHEMA = pa.schema([("c0", pa.float64()), ("c1", TIME), ("w", WINDOW), ("c2", pa.int32())])
COLUMNS = SCHEMA.names


def row(ticks: int | None, key: float | None, number: int, gap: int | None = GAP) -> tuple:
    end = None if ticks is None or gap is None else ticks + gap
    return (key, at(ticks), {"start": at(ticks), "end": at(end)}, number)


some_batches = batches(
    row,
    st.sampled_from([None, 0.0, -0.0]),
    st.integers(0, 2),
    st.sampled_from([GAP, GAP, GAP, 1, 14, 0, None]),
)


def expected(given_batches):
    """Told session by session, as Spark merges them: sorted by start, `start <= end` joins."""
    watermark = Watermark(DELAY_MS)
    open_sessions: dict[object, list[tuple[int, int, list]]] = defaultdict(list)
    came_out = []
    for batch in given_batches:
        late_us, now_us = watermark.next_batch([one[1] for one in batch.rows["in"]])
        for one in batch.rows["in"]:
            start, end = one[2]["start"], one[2]["end"]
            if start is not None and end is not None and end > start and end > late_us:
                open_sessions[normal(one[0])].append((start, end, [one]))
        out = []
        for key, sessions in open_sessions.items():
            merged: list[tuple[int, int, list]] = []
            for start, end, members in sorted(sessions, key=lambda session: session[:2]):
                if merged and start <= merged[-1][1]:
                    first, last, before = merged[-1]
                    merged[-1] = (first, max(last, end), before + members)
                else:
                    merged.append((start, end, members))
            out += [
                (one[0], one[1], (start, end), one[3])
                for start, end, members in merged
                if end <= now_us
                for one in members
            ]
            open_sessions[key] = [session for session in merged if session[1] > now_us]
        came_out.append({"out": out})
    return came_out


def actual(given_batches):
    def operator(state, files, folder):
        observe(state, "w", files["in"], event_time="c1", delay_us=DELAY_MS * 1000)
        out = due_sessions(state, "a", files["in"], window="w", keys=["c0"], folder=folder / "out")
        return {"out": read(out, COLUMNS)}

    with new_folder() as folder:
        return run(operator, given_batches, schemas={"in": SCHEMA}, folder=folder)


def check(given_batches):
    for one, other in zip(expected(given_batches), actual(given_batches), strict=True):
        assert same(one, other)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(given_batches=some_batches)
def test_a_session_comes_out_once_when_the_watermark_passes_its_end(given_batches):
    check(given_batches)


def in_batches(*parts):
    return [batch["out"] for batch in actual([Batch({"in": part}) for part in parts])]


def test_rows_that_touch_are_one_session_and_rows_a_tick_apart_are_two():
    late = [row(60, 9.0, 0)]
    touching = in_batches([row(0, 1.0, 1), row(GAP, 1.0, 2)], late, [])[2]
    assert {one[2] for one in touching} == {(at(0), at(2 * GAP))}
    apart = in_batches([row(0, 1.0, 1), row(GAP + 1, 1.0, 2)], late, [])[2]
    assert {one[2] for one in apart} == {(at(0), at(GAP)), (at(GAP + 1), at(2 * GAP + 1))}


def test_a_row_between_joins_two_sessions_of_earlier_batches():
    first, second, between = row(0, 1.0, 1), row(10, 1.0, 2), row(5, 1.0, 3)
    found = in_batches([first, second], [between, row(60, 9.0, 0)], [])[2]
    assert {one[2] for one in found} == {(at(0), at(16))}
    assert len(found) == 3


def test_a_session_that_goes_on_is_not_given_away_with_its_first_end():
    """Each batch brings the watermark past the end that the session had one batch before."""
    parts = [[row(tick, 1.0, tick)] for tick in range(0, 60, 5)]
    found = in_batches(*parts, [row(99, 9.0, 0)], [])
    assert [len(rows) for rows in found] == [0] * 13 + [12]
    assert {one[2] for one in found[-1]} == {(at(0), at(61))}


def test_without_keys_all_rows_are_of_one_key():
    def operator(state, files, folder):
        observe(state, "w", files["in"], event_time="c1", delay_us=DELAY_MS * 1000)
        return {
            "out": read(
                due_sessions(state, "a", files["in"], window="w", keys=[], folder=folder), ["w"]
            )
        }

    parts = [[row(0, 1.0, 1), row(4, 2.0, 2)], [row(9, 3.0, 3)], [row(60, 9.0, 0)], []]
    with new_folder() as folder:
        found = run(
            operator,
            [Batch({"in": part}) for part in parts],
            schemas={"in": SCHEMA},
            folder=folder,
        )
    assert [out["out"] for out in found] == [[], [], [], [((at(0), at(15)),)] * 3]
