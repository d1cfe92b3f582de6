"""What moves a watermark: the newest event time, in whole milliseconds; null moves nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from millpond.state import FlowState, observe
from millpond.storage import LocalStore
from tests.state.stream import BASE_US, TIME, WINDOW, write

NTZ = pa.timestamp("us")


def watermark_after(kind, values, *, delay_us, folder):
    schema = pa.schema([("c0", kind)])
    files = write([(value,) for value in values], schema, folder=folder / "in", split=1)
    flow = FlowState(folder / "state", LocalStore())
    state = flow.begin(0)
    observe(state, "w", files, event_time="c0", delay_us=delay_us)
    state.commit({})
    moves = flow.watermark_moves_after(0)
    after = flow.begin(1)
    assert after.late_watermark_us == 0
    assert moves == (after.watermark_us > 0)
    return after.watermark_us


@pytest.mark.parametrize("kind", [TIME, NTZ])
def test_the_watermark_lags_behind_the_newest_event(kind, tmp_path):
    values = [BASE_US + 7_654, None, BASE_US + 1]
    assert watermark_after(kind, values, delay_us=2_000, folder=tmp_path) == BASE_US + 5_000


def test_of_a_window_the_end_counts(tmp_path):
    window = {"start": BASE_US, "end": BASE_US + 60_000_000}
    found = watermark_after(WINDOW, [window, None], delay_us=0, folder=tmp_path)
    assert found == BASE_US + 60_000_000


@pytest.mark.parametrize("values", [[], [None, None], [-1], [1_999]])
def test_it_never_falls_below_1970(values, tmp_path):
    assert watermark_after(TIME, values, delay_us=2_000, folder=tmp_path) == 0
