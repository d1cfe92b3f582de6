"""The tests of operators can fail: each notices when a rule of it is broken."""

from __future__ import annotations

import sys

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from millpond.state import FlowState, KeyedRows, StreamJoin
from tests.state import test_deduplicate, test_sessions, test_stream_join, test_windows

# The package gives the function by this name, so the module is looked up.
deduplicate_module = sys.modules["millpond.state.deduplicate"]

# What fails need not be made small.
UNTIL_ONE_FAILS = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


def deduplicates(kind):
    @UNTIL_ONE_FAILS
    @given(given_batches=test_deduplicate.some_batches)
    def check(given_batches):
        test_deduplicate.check(kind, given_batches)

    return check


def joins(outer):
    @UNTIL_ONE_FAILS
    @given(given_batches=test_stream_join.some_batches)
    def check(given_batches):
        test_stream_join.check(outer, given_batches)

    return check


@UNTIL_ONE_FAILS
@given(given_batches=test_windows.some_batches)
def windows(given_batches):
    test_windows.check("c1", given_batches)


@UNTIL_ONE_FAILS
@given(given_batches=test_sessions.some_batches)
def sessions(given_batches):
    test_sessions.check(given_batches)


def late_rows_count(monkeypatch):
    begin = FlowState.begin

    def broken(self, batch):
        state = begin(self, batch)
        state.late_watermark_us = 0
        return state

    monkeypatch.setattr(FlowState, "begin", broken)


def rows_are_late_by_this_batchs_watermark(monkeypatch):
    begin = FlowState.begin

    def broken(self, batch):
        state = begin(self, batch)
        state.late_watermark_us = state.watermark_us
        return state

    monkeypatch.setattr(FlowState, "begin", broken)


def nothing_is_let_go(monkeypatch):
    monkeypatch.setattr(KeyedRows, "expire", lambda *_: None)


def null_is_not_null(monkeypatch):
    monkeypatch.setattr(
        deduplicate_module,
        "equal_sql",
        lambda keys, left, right: " AND ".join(f"{left}.{key} = {right}.{key}" for key in keys),
    )


def pairs_of_a_batch_are_made_twice(monkeypatch):
    def broken(self):
        left, right = self._left, self._right
        return (left.new, right.old + right.new), (left.old + left.new, right.new)

    monkeypatch.setattr(StreamJoin, "terms", property(broken))


def old_rows_are_not_joined(monkeypatch):
    monkeypatch.setattr(
        KeyedRows, "matching", lambda self, *_, **__: f"SELECT * FROM ({self.live()}) WHERE false"
    )


def who_met_is_forgotten(monkeypatch):
    add = KeyedRows.add

    def broken(self, connection, select, *, keys, **options):
        if keys == ["met_id"]:
            select = f"SELECT * FROM ({select}) WHERE false"
        return add(self, connection, select, keys=keys, **options)

    monkeypatch.setattr(KeyedRows, "add", broken)


@pytest.mark.parametrize(
    ("break_a_rule", "check"),
    [
        (late_rows_count, deduplicates("for ever, with a watermark")),
        (rows_are_late_by_this_batchs_watermark, deduplicates("for ever, with a watermark")),
        (nothing_is_let_go, deduplicates("within the watermark")),
        (null_is_not_null, deduplicates("for ever")),
        (old_rows_are_not_joined, deduplicates("for ever")),
        (late_rows_count, windows),
        (rows_are_late_by_this_batchs_watermark, windows),
        (nothing_is_let_go, windows),
        (late_rows_count, sessions),
        (rows_are_late_by_this_batchs_watermark, sessions),
        (nothing_is_let_go, sessions),
        (old_rows_are_not_joined, sessions),
        (late_rows_count, joins(frozenset())),
        (nothing_is_let_go, joins(frozenset({"left"}))),
        (pairs_of_a_batch_are_made_twice, joins(frozenset())),
        (old_rows_are_not_joined, joins(frozenset())),
        (who_met_is_forgotten, joins(frozenset({"left", "right"}))),
    ],
)
def test_a_broken_rule_is_noticed(break_a_rule, check, monkeypatch):
    break_a_rule(monkeypatch)
    with pytest.raises(AssertionError):
        check()
