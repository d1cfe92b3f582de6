"""Overwrite replaces all rows, and commits nothing where they are the same."""

from __future__ import annotations

import pytest
from pyspark.sql.types import DoubleType, StringType

from millpond.flows import overwrite
from tests.flows.conftest import as_row
from tests.flows.target import Target, columns
from tests.flows.values import NAN, NESTED
from tests.oracle import multiset

FIRST, SECOND = ("east", "ann", 1, 1), ("west", "bob", 2, None)


def refresh(sales, *rows):
    return overwrite(sales.stage([as_row(row) for row in rows]), sales.context(0))


def test_new_rows_take_the_place_of_the_old(sales):
    refresh(sales, FIRST, SECOND)
    result = refresh(sales, ("north", "cid", 3, 3))
    assert (result.rows_inserted, result.rows_deleted, result.committed) == (1, 2, True)
    assert sales.holds(("north", "cid", 3, 3))


def test_no_rows_empty_the_table(sales):
    refresh(sales, FIRST)
    assert refresh(sales).rows_deleted == 1
    assert sales.holds()


def test_the_same_rows_in_another_order_commit_nothing(sales):
    version = refresh(sales, FIRST, SECOND, FIRST).version
    result = refresh(sales, SECOND, FIRST, FIRST)
    assert (result.version, result.committed) == (version, False)
    assert (result.rows_read, result.rows_inserted, result.rows_deleted) == (3, 0, 0)
    assert sales.table.snapshot().version == version


@pytest.mark.parametrize(
    "rows", [(FIRST, SECOND, SECOND), (FIRST, FIRST), (FIRST, FIRST, FIRST), ()]
)
def test_other_rows_or_another_number_of_them_commit(sales, rows):
    version = refresh(sales, FIRST, SECOND, FIRST).version
    assert refresh(sales, *rows).version == version + 1
    assert sales.holds(*rows)


def test_the_same_rows_again_after_others_commit_again(sales):
    refresh(sales, FIRST)
    refresh(sales, SECOND)
    assert refresh(sales, FIRST).committed
    assert sales.holds(FIRST)


VALUES = [
    {"x": NAN, "n": None},
    {"x": -0.0, "n": {"s": None, "l": [None, "a"]}},
    {"x": None, "n": {"s": {"a": None, "b c": NAN}, "l": None}},
]


def test_nan_and_nested_nulls_are_the_same_rows_and_null_is_not_a_struct_of_nulls(tmp_path):
    schema = columns(x=DoubleType(), n=NESTED)
    target = Target(folder=tmp_path, schema=schema, keys=(), sequence=None)
    assert overwrite(target.stage(VALUES), target.context(0)).committed
    assert not overwrite(target.stage(VALUES[::-1]), target.context(0)).committed
    others = [{"x": NAN, "n": {"s": None, "l": None}}, *VALUES[1:]]
    assert overwrite(target.stage(others), target.context(0)).committed
    assert multiset(target.rows(), columns=["x", "n"]) == multiset(others, columns=["x", "n"])


def test_a_partitioned_view_is_replaced_in_all_partitions(tmp_path):
    schema = columns(part=StringType(), x=DoubleType())
    target = Target(
        folder=tmp_path, schema=schema, keys=(), sequence=None, partition_columns=("part",)
    )
    overwrite(target.stage([{"part": "a", "x": 1.0}, {"part": "b", "x": 2.0}]), target.context(0))
    overwrite(target.stage([{"part": None, "x": 3.0}]), target.context(0))
    assert [(row["part"], row["x"]) for row in target.rows()] == [(None, 3.0)]


def test_an_empty_partition_value_is_the_null_that_is_stored(tmp_path):
    schema = columns(part=StringType(), x=DoubleType())
    target = Target(
        folder=tmp_path, schema=schema, keys=(), sequence=None, partition_columns=("part",)
    )
    rows = [{"part": "", "x": 1.0}]
    assert overwrite(target.stage(rows), target.context(0)).committed
    assert not overwrite(target.stage(rows), target.context(0)).committed
