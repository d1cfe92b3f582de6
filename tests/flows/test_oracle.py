"""Whatever happens to a target, it holds what the oracle says. And the suite can fail."""

from __future__ import annotations

import sys

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.flows.machine import ReplaceUsingMachine
from tests.readers import READERS

# The package gives the function by this name, so the module is looked up.
rule_module = sys.modules["millpond.flows.replace_using"]
commits_module = sys.modules["millpond.flows.commits"]

CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
BOUNDED = settings(
    max_examples=40, stateful_step_count=12, deadline=None, suppress_health_check=CHECKS
)
# Enough for each canary to be caught many times over; what fails need not be made small.
CANARY = settings(
    BOUNDED,
    max_examples=60,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
)


class WithAllReaders(ReplaceUsingMachine):
    """Compares the table at the end with the eyes of every reader."""

    readers = tuple(READERS)


def test_the_table_equals_the_oracle_after_every_step():
    run_state_machine_as_test(ReplaceUsingMachine, settings=BOUNDED)


def test_every_reader_sees_what_the_oracle_says():
    run_state_machine_as_test(WithAllReaders, settings=settings(BOUNDED, max_examples=10))


def canary_keys_by_plain_equality(monkeypatch):
    monkeypatch.setattr(rule_module, "is_same", lambda left, right, **_: f"{left} = {right}")


def canary_late_rows_land(monkeypatch):
    monkeypatch.setattr(rule_module, "LANDS", "newest >= floor OR newest < floor")


def canary_late_rows_replace(monkeypatch):
    monkeypatch.setattr(rule_module, "LANDS", "true")
    monkeypatch.setattr(rule_module, "REPLACES", "newest <> floor")


def canary_ties_replace(monkeypatch):
    monkeypatch.setattr(rule_module, "REPLACES", "newest >= floor")


def canary_duckdb_orders_structs(monkeypatch):
    monkeypatch.setattr(rule_module, "rank", lambda value, _: value)


def canary_no_batch_number_is_looked_up(monkeypatch):
    monkeypatch.setattr(commits_module, "holds_batch", lambda *_: False)


@pytest.mark.parametrize(
    "break_a_rule",
    [
        canary_keys_by_plain_equality,
        canary_late_rows_land,
        canary_late_rows_replace,
        canary_ties_replace,
        canary_duckdb_orders_structs,
        canary_no_batch_number_is_looked_up,
    ],
    ids=lambda function: function.__name__,
)
def test_a_broken_rule_is_noticed(break_a_rule, monkeypatch):
    break_a_rule(monkeypatch)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(ReplaceUsingMachine, settings=CANARY)
