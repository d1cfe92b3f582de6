"""Made-up rows: which rows an update reads, and that a range gives the same rows again."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest

from millpond.engine.protocol import EmptyInput, TableRead
from millpond.errors import SourceLocation
from millpond.errors.sources import (
    InvalidSourceOptionError,
    SourceNeedsStreamingError,
    UnknownSourceOptionError,
    UnsupportedSourceOptionError,
)
from millpond.storage import LocalStore
from millpond.streaming import Checkpoint, run_batches
from millpond.streaming import rate_source as module
from millpond.streaming.rate_source import (
    RateMicroBatchOptions,
    RateMicroBatchSource,
    RateOptions,
    RateSource,
    rate_source,
)

START_S = 1_767_225_600  # 2026-01-01T00:00:00Z


class Clock:
    def __init__(self):
        self.time_s = START_S + 0.7

    def __call__(self):
        return self.time_s


def rows(given):
    if isinstance(given, EmptyInput):
        return []
    return [
        (row["timestamp"], row["value"])
        for file in given.files
        for row in pq.read_table(file).to_pylist()
    ]


def update(tmp_path, rate, committed):
    """Run one update as the runner does; give the rows of each batch."""
    done: list[tuple[int, list]] = []

    def apply(batch):
        found = rows(batch.input("rate", folder=tmp_path / f"batch-{batch.number}"))
        committed.append(batch.number)
        done.append((batch.number, found))

    checkpoint = Checkpoint(tmp_path / "checkpoint", LocalStore())
    for _ in run_batches(
        checkpoint=checkpoint,
        sources={"rate": rate},
        committed=lambda: committed[-1] if committed else None,
        apply=apply,
    ):
        pass
    return done


def test_the_first_update_records_the_start_and_later_ones_read_what_is_due(tmp_path):
    clock, committed = Clock(), []
    rate = RateSource(RateOptions(rows_per_second=2), now=clock)
    assert update(tmp_path, rate, committed) == [(0, [])]
    clock.time_s += 3
    at = [datetime.fromtimestamp(START_S + half / 2, UTC) for half in range(6)]
    assert update(tmp_path, rate, committed) == [(1, [(at[n], n) for n in range(6)])]
    assert update(tmp_path, rate, committed) == []
    clock.time_s += 1
    [(_, found)] = update(tmp_path, RateSource(RateOptions(2), now=clock), committed)
    assert [value for _, value in found] == [6, 7]


def test_a_clock_that_goes_back_gives_no_rows(tmp_path):
    clock, committed = Clock(), []
    rate = RateSource(RateOptions(1), now=clock)
    update(tmp_path, rate, committed)
    clock.time_s -= 100
    assert update(tmp_path, rate, committed) == []


def test_however_the_rows_fall_into_batches_they_are_the_same(tmp_path, monkeypatch):
    rate = RateSource(RateOptions(rows_per_second=7, ramp_up_s=5))
    start = {"started": START_S, "reached": START_S}
    end = {"started": START_S, "reached": START_S + 40}
    whole = rows(rate.input(start, end, folder=tmp_path / "whole"))
    monkeypatch.setattr(module, "ROWS_PER_BATCH", 20)
    monkeypatch.setattr(module, "ROWS_PER_CHUNK", 3)
    pieces, position = [], start
    while (following := rate.next_offset(position, {"reached": START_S + 40})) is not None:
        piece = rows(rate.input(position, following, folder=tmp_path / str(len(pieces))))
        assert len(piece) <= 20
        pieces += piece
        position = following
    assert position == end
    assert pieces == whole
    assert [value for _, value in whole] == list(range(len(whole)))


def test_the_rate_grows_over_the_ramp_up_time():
    options = RateOptions(rows_per_second=10, ramp_up_s=4)
    assert [options.rows_until(second) for second in range(8)] == [0, 2, 6, 12, 20, 30, 40, 50]


def test_a_batch_is_bounded_and_holds_at_least_a_second():
    start = {"started": START_S, "reached": START_S}
    end = {"reached": START_S + 10_000}
    slow, fast = RateSource(RateOptions(1000)), RateSource(RateOptions(5_000_000))
    assert slow.next_offset(start, end)["reached"] == START_S + 1000
    assert fast.next_offset(start, end)["reached"] == START_S + 1


def test_each_update_reads_one_batch_of_rate_micro_batch(tmp_path):
    read = TableRead(
        format="rate-micro-batch",
        options={"rowsperbatch": "2", "starttimestamp": "5000", "advancemillisperbatch": "500"},
        streaming=True,
    )
    committed = []
    at = [datetime.fromtimestamp(5 + half / 2, UTC) for half in range(2)]
    first = update(tmp_path, rate_source(read), committed)
    assert first == [(0, [(at[0], 0), (at[0], 1)])]
    assert update(tmp_path, rate_source(read), committed) == [(1, [(at[1], 2), (at[1], 3)])]


def test_a_batch_of_rate_micro_batch_that_was_not_applied_runs_again_and_then_one_more(tmp_path):
    rate = RateMicroBatchSource(RateMicroBatchOptions(rows=1))
    committed: list[int] = []
    update(tmp_path, rate, committed)
    committed.clear()
    assert [number for number, _ in update(tmp_path, rate, committed)] == [0, 1]


@pytest.mark.parametrize(
    ("text", "seconds"), [("5s", 5), ("1500ms", 1), ("2m", 120), ("1 h", 3600), ("7", 7)]
)
def test_the_ramp_up_time_is_cut_to_whole_seconds(text, seconds):
    assert RateOptions.parse({"rampuptime": text}).ramp_up_s == seconds


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("rowsPerSecond", "0"),
        ("rowsPerSecond", "x"),
        ("rowsPerSecond", "1000000001"),
        ("rampUpTime", "soon"),
        ("rampUpTime", "999999999d"),
        ("numPartitions", "0"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(option, value):
    where = SourceLocation("a.py", 3)
    with pytest.raises(InvalidSourceOptionError, match=option) as caught:
        RateOptions.parse({option.lower(): value}, where=where)
    assert caught.value.where == where


def test_a_misspelt_option_is_refused_with_the_one_meant():
    with pytest.raises(UnknownSourceOptionError) as caught:
        RateOptions.parse({"rowspersec": "1"})
    assert caught.value.hint == "did you mean rowsPerSecond?"


def test_a_source_has_no_checkpoint_of_its_own():
    with pytest.raises(UnsupportedSourceOptionError, match="checkpointLocation") as caught:
        RateOptions.parse({"checkpointlocation": "/x"})
    assert "each flow has a checkpoint of its own" in caught.value.hint


def test_rate_micro_batch_needs_the_size_of_a_batch():
    with pytest.raises(InvalidSourceOptionError, match="rowsPerBatch"):
        RateMicroBatchOptions.parse({})


def test_another_rate_is_another_stream():
    assert RateSource(RateOptions(1)).identity != RateSource(RateOptions(2)).identity
    read = TableRead(format="rate", streaming=True)
    assert rate_source(read).identity == RateSource(RateOptions(1)).identity


def test_the_columns_never_change():
    for rate in (RateSource(RateOptions()), RateMicroBatchSource(RateMicroBatchOptions(1))):
        assert [field["name"] for field in rate.columns()["fields"]] == ["timestamp", "value"]
        rate.check_columns(rate.columns())


@pytest.mark.parametrize("name", ["rate", "rate-micro-batch"])
def test_rows_without_end_are_no_table(name):
    where = SourceLocation("a.py", 3)
    with pytest.raises(SourceNeedsStreamingError, match=name) as caught:
        rate_source(TableRead(format=name, location=where))
    assert caught.value.where == where
