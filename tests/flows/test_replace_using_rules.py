"""The row rules of REPLACE USING, one by one, on tables with deletion vectors and without."""

import pytest

from millpond.definitions import ExpectationAction
from millpond.errors.replace_using import ReplaceUsingNullSequenceError
from tests.flows.target import Rule
from tests.readers import READERS

positive = Rule("positive", lambda row: row["amount"] > 0, ExpectationAction.DROP)


def test_a_higher_sequence_replaces_all_rows_of_the_key_whatever_their_number(sales):
    sales.send(("east", "ann", 1, 1), ("east", "bob", 2, 1), ("east", "cid", 3, 1))
    result = sales.send(("east", "dan", 9, 2))
    assert sales.holds(("east", "dan", 9, 2))
    assert (result.rows_inserted, result.rows_deleted, result.rows_late) == (1, 3, 0)


def test_a_key_that_the_batch_lacks_keeps_its_rows(sales):
    sales.send(("east", "ann", 1, 1), ("west", "bob", 2, 1))
    sales.send(("east", "ann", 5, 2))
    assert sales.holds(("east", "ann", 5, 2), ("west", "bob", 2, 1))


def test_of_several_sequences_in_a_batch_only_the_highest_of_the_key_lands(sales):
    result = sales.send(("east", "ann", 1, 1), ("east", "bob", 2, 2), ("west", "cid", 3, 1))
    assert sales.holds(("east", "bob", 2, 2), ("west", "cid", 3, 1))
    assert (result.rows_read, result.rows_inserted, result.rows_late) == (3, 2, 1)


def test_a_lower_sequence_than_the_stored_one_is_late_and_ignored(sales):
    sales.send(("east", "ann", 1, 5))
    result = sales.send(("east", "bob", 2, 4), ("west", "cid", 3, 1))
    assert sales.holds(("east", "ann", 1, 5), ("west", "cid", 3, 1))
    assert (result.rows_inserted, result.rows_deleted, result.rows_late) == (1, 0, 1)


def test_the_stored_sequence_again_appends_and_removes_nothing(sales):
    sales.send(("east", "ann", 1, 5))
    result = sales.send(("east", "ann", 1, 5), ("east", "bob", 2, 5))
    assert sales.holds(("east", "ann", 1, 5), ("east", "ann", 1, 5), ("east", "bob", 2, 5))
    assert (result.rows_inserted, result.rows_deleted) == (2, 0)


def test_rows_of_equal_key_and_sequence_in_one_batch_are_all_kept(sales):
    sales.send(("east", "ann", 1, 1), ("east", "ann", 1, 1), ("east", "bob", 2, 1))
    assert sales.holds(("east", "ann", 1, 1), ("east", "ann", 1, 1), ("east", "bob", 2, 1))


def test_a_null_key_is_a_key_like_any_other(sales):
    sales.send((None, "ann", 1, 1), ("east", "bob", 2, 1))
    sales.send((None, "cid", 3, 2))
    assert sales.holds((None, "cid", 3, 2), ("east", "bob", 2, 1))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
def test_the_order_of_arrival_does_not_matter(sales, order):
    batches = [
        [("east", "ann", 1, 1), ("west", "bob", 2, 3)],
        [("east", "ann", 5, 2), ("east", "eve", 6, 2)],
        [("west", "cid", 7, 2), ("east", "fay", 8, 2)],
    ]
    for index in order:
        sales.send(*batches[index])
    assert sales.holds(
        ("east", "ann", 5, 2), ("east", "eve", 6, 2), ("east", "fay", 8, 2), ("west", "bob", 2, 3)
    )


def test_with_several_key_columns_the_combination_counts(make_sales):
    sales = make_sales(keys=("region", "customer"))
    sales.send(("east", "ann", 1, 1), ("east", "bob", 2, 1), (None, "ann", 3, 1))
    sales.send(("east", "ann", 4, 2), (None, "ann", 5, 2))
    assert sales.holds(("east", "ann", 4, 2), ("east", "bob", 2, 1), (None, "ann", 5, 2))


def test_a_null_sequence_stops_the_batch_with_nothing_applied(sales):
    sales.send(("east", "ann", 1, 1))
    version = sales.table.snapshot().version
    with pytest.raises(ReplaceUsingNullSequenceError) as caught:
        sales.send(("east", "bob", 2, 2), ("west", "cid", 3, None), ("west", "dan", 3, None))
    assert "2 rows of batch 1" in str(caught.value)
    assert "main.sales.target" in str(caught.value)
    assert "a null sequence (seq)." in str(caught.value)
    assert sales.holds(("east", "ann", 1, 1))
    assert sales.table.snapshot().version == version


def test_a_null_sequence_is_shown_with_one_of_the_rows_keys_first(make_sales):
    sales = make_sales(keys=("customer", "region"))
    with pytest.raises(ReplaceUsingNullSequenceError) as caught:
        sales.send(("east", "ann", 1, 1), ("west", "o'dan", 3, None))
    error = caught.value
    assert error.row_json == '{"customer":"o\'dan","region":"west","amount":3,"seq":null}'
    assert f"one of them: {error.row_json}" in str(error)


def test_a_long_row_without_a_sequence_is_cut_in_the_message(sales):
    with pytest.raises(ReplaceUsingNullSequenceError) as caught:
        sales.send(("east", "a" * 10_000, 1, None))
    assert len(str(caught.value)) < 2_000
    assert len(caught.value.row_json) > 10_000


def test_a_null_sequence_of_a_dropped_row_stops_nothing(make_sales):
    sales = make_sales(rules=(positive,))
    sales.send(("east", "ann", 1, 1), ("east", "bob", -1, None))
    assert sales.holds(("east", "ann", 1, 1))


def test_two_regions_send_partial_snapshots_that_overlap_and_come_late(sales):
    """The worked example of REPLACE USING: each region's newest snapshot stands as a whole."""
    sales.send(("east", "ann", 10, 1), ("east", "bob", 20, 1), ("west", "cid", 30, 1))
    sales.send(
        ("east", "ann", 11, 2),
        ("west", "cid", 31, 1),
        ("north", "eve", 5, 2),
        ("north", "fay", 6, 1),
    )
    sales.send(("east", "zoe", 99, 1), ("west", "dan", 40, 3), ("west", "dora", 41, 3))
    for reader in READERS:
        assert sales.holds(
            ("east", "ann", 11, 2),
            ("north", "eve", 5, 2),
            ("west", "dan", 40, 3),
            ("west", "dora", 41, 3),
            reader=reader,
        )


def test_a_dropped_row_neither_replaces_nor_counts(make_sales):
    sales = make_sales(rules=(positive,))
    sales.send(("east", "ann", 1, 1))
    result = sales.send(("east", "bob", -5, 2))
    assert sales.holds(("east", "ann", 1, 1))
    assert (result.rows_dropped, result.rows_inserted, result.rows_deleted) == (1, 0, 0)


def test_rows_drop_before_the_highest_sequence_is_chosen(make_sales):
    sales = make_sales(rules=(positive,))
    sales.send(("east", "ann", 1, 1))
    sales.send(("east", "bob", 2, 2), ("east", "cid", -3, 3))
    assert sales.holds(("east", "bob", 2, 2))


def test_a_dropped_row_sets_no_floor_for_later_ones(make_sales):
    sales = make_sales(rules=(positive,))
    sales.send(("east", "ann", 1, 1))
    sales.send(("east", "bob", -1, 9))
    sales.send(("east", "cid", 3, 2))
    assert sales.holds(("east", "cid", 3, 2))


def test_of_a_snapshot_with_dropped_rows_the_others_replace_the_key(make_sales):
    sales = make_sales(rules=(positive,))
    sales.send(("east", "ann", 1, 1), ("east", "bob", 2, 1))
    sales.send(("east", "ann", 5, 2), ("east", "bob", -6, 2))
    assert sales.holds(("east", "ann", 5, 2))


def test_the_highest_sequence_of_rows_inserted_by_hand_is_the_floor(sales):
    sales.send(("east", "ann", 1, 1), ("west", "wim", 1, 1))
    sales.insert(("east", "hand", 7, 5), ("east", "old", 8, 0))
    sales.send(("east", "bob", 2, 4))
    assert sales.holds(
        ("east", "ann", 1, 1), ("east", "hand", 7, 5), ("east", "old", 8, 0), ("west", "wim", 1, 1)
    )
    sales.send(("east", "cid", 3, 5))
    sales.send(("east", "dan", 4, 6))
    assert sales.holds(("east", "dan", 4, 6), ("west", "wim", 1, 1))


def test_the_floor_appends_rows_at_it_and_keeps_those_below(sales):
    sales.insert(("east", "hand", 7, 5), ("east", "old", 8, 0))
    sales.send(("east", "cid", 3, 5))
    assert sales.holds(("east", "hand", 7, 5), ("east", "old", 8, 0), ("east", "cid", 3, 5))


def test_a_stored_null_sequence_is_below_all_others(sales):
    sales.insert(("east", "hand", 7, None))
    sales.send(("east", "ann", 1, -100))
    assert sales.holds(("east", "ann", 1, -100))
