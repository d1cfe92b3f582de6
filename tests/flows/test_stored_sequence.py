"""A sequence that is no column of the query is kept beside the table's columns, unseen by readers."""

from __future__ import annotations

import pytest
from pyspark.sql.types import LongType

from millpond.errors.replace_using import (
    ReplaceUsingNullSequenceError,
    ReplaceUsingSequenceUnknownError,
)
from tests.flows.machine import HIDDEN_TYPE, hidden_sequence
from tests.flows.target import columns, write_parquet
from tests.readers import READERS

SCHEMA = columns(region=LongType(), v=LongType(), seq=LongType())


@pytest.fixture
def by_expression(make_sales):
    """The sequence is the negated column: what is lower is newer."""

    def negated(row):
        return None if row["seq"] is None else -row["seq"]

    return make_sales(
        sequence=None, hidden_sequence=negated, sequence_type=LongType(), recompute=recomputed
    )


def recomputed(path):
    """What an engine does with stored rows: it may give a folder, and its files in any number."""
    import pyarrow.parquet as pq

    from millpond.engine.protocol import SEQUENCE_COLUMN
    from millpond.flows import POSITION_COLUMN

    folder = path.with_suffix(".sequences")
    folder.mkdir()
    rows = pq.read_table(path).to_pylist()
    assert set(rows[0]) == {"region", "customer", "amount", "seq", POSITION_COLUMN}
    found = [
        {POSITION_COLUMN: row[POSITION_COLUMN], SEQUENCE_COLUMN: -row["seq"]} for row in rows[::-1]
    ]
    schema = columns(**{POSITION_COLUMN: LongType(), SEQUENCE_COLUMN: LongType()})
    write_parquet(folder / "part-0.parquet", found[:1], schema)
    write_parquet(folder / "part-1.parquet", found[1:], schema)
    return folder


def test_later_batches_compare_with_it(by_expression):
    sales = by_expression
    sales.send(("east", "ann", 1, 5), ("west", "bob", 2, 5))
    sales.restart()
    result = sales.send(("east", "late", 2, 6), ("west", "new", 3, 4), ("west", "old", 3, 6))
    assert sales.holds(("east", "ann", 1, 5), ("west", "new", 3, 4))
    assert (result.rows_inserted, result.rows_deleted, result.rows_late) == (1, 1, 2)


@pytest.mark.parametrize("reader", READERS)
def test_readers_do_not_see_it(by_expression, reader):
    by_expression.send(("east", "ann", 1, 5))
    by_expression.send(("east", "bob", 2, 4))
    assert by_expression.rows(reader=reader) == [
        {"region": "east", "customer": "bob", "amount": 2, "seq": 4}
    ]


def test_rows_that_another_program_rewrote_or_inserted_get_theirs_computed_anew(by_expression):
    sales = by_expression
    sales.send(("east", "ann", 1, 5))
    sales.send(("west", "bob", 2, 5))
    sales.insert(("east", "hand", 1, 3), ("north", "nia", 1, 9))
    sales.optimize()
    sales.send(("east", "late", 2, 4), ("west", "tie", 3, 5), ("north", "new", 4, 8))
    assert sales.holds(
        ("east", "ann", 1, 5),
        ("east", "hand", 1, 3),
        ("west", "bob", 2, 5),
        ("west", "tie", 3, 5),
        ("north", "new", 4, 8),
    )
    sales.send(("east", "newest", 2, 2))
    assert sales.holds(
        ("east", "newest", 2, 2),
        ("west", "bob", 2, 5),
        ("west", "tie", 3, 5),
        ("north", "new", 4, 8),
    )


def test_without_a_way_to_compute_it_such_rows_are_an_error_with_nothing_applied(by_expression):
    sales = by_expression
    sales.recompute = None
    sales.send(("east", "ann", 1, 5))
    sales.insert(("west", "hand", 1, 3))
    sales.send(("east", "bob", 2, 4))
    with pytest.raises(ReplaceUsingSequenceUnknownError, match=r"1 file of main\.sales\.target"):
        sales.send(("east", "cid", 2, 3), ("west", "dan", 2, 2))
    assert sales.holds(("east", "bob", 2, 4), ("west", "hand", 1, 3))


def test_a_null_one_stops_the_batch(by_expression):
    with pytest.raises(ReplaceUsingNullSequenceError, match="1 row of batch 0"):
        by_expression.send(("east", "ann", 1, None), ("east", "bob", 1, 2))


def test_a_struct_orders_by_its_fields_in_turn_with_null_the_least(make_sales):
    sales = make_sales(
        keys=("region",),
        schema=SCHEMA,
        sequence=None,
        hidden_sequence=hidden_sequence,
        sequence_type=HIDDEN_TYPE,
    )

    def send(*rows):
        sales.apply([dict(zip(SCHEMA.names, row, strict=True)) for row in rows])
        return sorted(row["v"] for row in sales.rows())

    # The sequences: (1, null), (1, 0), (1, 1), (2, null), then (1, 1) again.
    assert send((1, 3, 1)) == [3]
    assert send((1, 2, 1)) == [2]
    assert send((1, 1, 1)) == [1]
    assert send((1, 6, 2)) == [6]
    assert send((1, 7, 1)) == [6]
