"""Append adds a batch's rows once, and shapes them as the target's."""

from __future__ import annotations

from pyspark.sql.types import LongType, StringType

from millpond.flows import append
from tests.flows.conftest import as_row
from tests.flows.target import columns

FIRST = ("east", "ann", 1, 1)


def test_rows_come_on_top_once(sales):
    batch = sales.stage([as_row(FIRST), as_row(FIRST)])
    assert append(batch, sales.context(0)).rows_inserted == 2
    assert not append(batch, sales.context(0)).committed
    append(sales.stage([as_row(("west", "bob", 2, 1))]), sales.context(1))
    assert sales.holds(FIRST, FIRST, ("west", "bob", 2, 1))


def test_columns_match_by_name_without_case_in_any_order_and_a_missing_one_is_null(sales):
    schema = columns(AMOUNT=LongType(), Region=StringType(), seq=LongType())
    rows = [{"AMOUNT": 1, "Region": "east", "seq": 7}]
    batch = sales.stage(rows, schema=schema)
    append(batch, sales.context(0))
    assert sales.holds(("east", None, 1, 7))
