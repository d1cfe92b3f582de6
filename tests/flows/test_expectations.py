"""Expectations are counted over all rows of a batch, by name, and act before anything else."""

from __future__ import annotations

import json

import pytest

from millpond.definitions import ExpectationAction
from millpond.errors.flows import ExpectationViolationError
from millpond.flows import ExpectationCount, append, overwrite
from tests.flows.target import Rule

positive = ("positive amount", lambda row: row["amount"] > 0)
known = ("known region", lambda row: row["region"] is not None)
WARN, DROP, FAIL = ExpectationAction.WARN, ExpectationAction.DROP, ExpectationAction.FAIL


def test_warn_keeps_the_rows_and_counts_them(make_sales):
    sales = make_sales(rules=(Rule(*positive, WARN),))
    result = sales.send(("east", "ann", -1, 1), ("east", "bob", 2, 1), ("west", "cid", 3, 1))
    assert result.expectations == (ExpectationCount("positive amount", WARN, 2, 1),)
    assert result.rows_dropped == 0
    assert sales.holds(("east", "ann", -1, 1), ("east", "bob", 2, 1), ("west", "cid", 3, 1))


def test_each_expectation_counts_all_rows_whatever_the_others_drop_or_the_sequence_leaves_out(
    make_sales,
):
    sales = make_sales(rules=(Rule(*positive, DROP), Rule(*known, WARN), Rule(*known, DROP)))
    result = sales.send(
        ("east", "ann", -1, 1), (None, "bob", -2, 1), (None, "cid", 3, 1), ("east", "dan", 4, 0)
    )
    assert result.expectations == (
        ExpectationCount("positive amount", DROP, 2, 2),
        ExpectationCount("known region", WARN, 2, 2),
        ExpectationCount("known region", DROP, 2, 2),
    )
    assert (result.rows_read, result.rows_dropped, result.rows_inserted) == (4, 3, 1)
    assert sales.holds(("east", "dan", 4, 0))


def test_fail_stops_the_batch_and_shows_one_of_the_rows(make_sales):
    sales = make_sales(rules=(Rule(*positive, FAIL),))
    sales.send(("east", "ann", 1, 1))
    version = sales.table.snapshot().version
    with pytest.raises(ExpectationViolationError) as caught:
        sales.send(("east", "bob", 2, 2), ("west", "o'dan", -3, 2))
    error = caught.value
    assert (error.expectation, error.flow, error.failed_rows) == ("positive amount", "flow", 1)
    assert json.loads(error.row_json) == {
        "region": "west",
        "customer": "o'dan",
        "amount": -3,
        "seq": 2,
    }
    assert "batch 1" in str(error)
    assert error.row_json in str(error)
    assert sales.holds(("east", "ann", 1, 1))
    assert sales.table.snapshot().version == version


def test_fail_looks_at_dropped_rows_too(make_sales):
    sales = make_sales(rules=(Rule(*known, DROP), Rule(*positive, FAIL)))
    with pytest.raises(ExpectationViolationError):
        sales.send((None, "ann", -1, 1))


def test_an_empty_batch_counts_nothing(make_sales):
    sales = make_sales(rules=(Rule(*positive, FAIL),))
    result = sales.send()
    assert result.expectations == (ExpectationCount("positive amount", FAIL, 0, 0),)


@pytest.mark.parametrize("flow", [append, overwrite])
def test_other_kinds_of_flow_apply_them_too(make_sales, flow):
    sales = make_sales(rules=(Rule(*positive, DROP),))
    batch = sales.stage(
        [
            {"region": "east", "customer": "ann", "amount": 1, "seq": 1},
            {"region": "east", "customer": "bob", "amount": -1, "seq": 1},
        ]
    )
    result = flow(batch, sales.context(0))
    assert (result.rows_read, result.rows_inserted, result.rows_dropped) == (2, 1, 1)
    assert result.expectations == (ExpectationCount("positive amount", DROP, 1, 1),)
    assert sales.holds(("east", "ann", 1, 1))
