"""Expectation decorators: what they attach, where they may stand, how they may be named."""

import functools

import pytest

from millpond import pipelines as dp
from millpond.definitions import ExpectationAction
from millpond.errors.pipelines import (
    ArgumentTypeError,
    ArgumentValueError,
    DuplicateExpectationError,
    ExpectationPlacementError,
)

WARN, DROP, FAIL = ExpectationAction.WARN, ExpectationAction.DROP, ExpectationAction.FAIL


def rules_of(dataset):
    return [(rule.name, rule.constraint, rule.action) for rule in dataset.expectations]


@pytest.mark.parametrize("decorator", [dp.table, dp.materialized_view, dp.temporary_view])
def test_stacked_expectations_are_kept_in_the_order_of_the_text(registry, decorator):
    @decorator
    @dp.expect("warned", "a > 0")
    @dp.expect_or_drop("dropped", "b > 0")
    @dp.expect_or_fail("failing", "c > 0")
    @dp.expect_all({"one": "d", "two": "e"})
    @dp.expect_all_or_drop({"three": "f"})
    @dp.expect_all_or_fail({"four": "g"})
    def orders(): ...

    assert rules_of(registry.datasets[0]) == [
        ("warned", "a > 0", WARN),
        ("dropped", "b > 0", DROP),
        ("failing", "c > 0", FAIL),
        ("one", "d", WARN),
        ("two", "e", WARN),
        ("three", "f", DROP),
        ("four", "g", FAIL),
    ]


def test_expectations_stay_with_the_dataset_that_they_were_put_on(registry):
    def rows(): ...

    dp.table(name="checked")(dp.expect("a", "b")(rows))
    dp.table(name="unchecked")(rows)
    assert [len(dataset.expectations) for dataset in registry.datasets] == [1, 0]


def test_a_name_stands_once_in_a_dataset(registry):
    with pytest.raises(DuplicateExpectationError) as caught:

        @dp.table
        @dp.expect("has id", "id IS NOT NULL")
        @dp.expect_all_or_drop({"has id": "id > 0"})
        def orders(): ...

    error = caught.value
    assert "main.sales.orders" in error.what
    assert f"first at test_expectations.py:{error.where.line - 1}" in error.what
    assert registry.datasets == []


def test_a_name_stands_once_in_a_created_table(registry):
    with pytest.raises(DuplicateExpectationError):
        dp.create_streaming_table("t", expect_all={"a": "b"}, expect_all_or_fail={"a": "c"})


def test_other_datasets_may_use_the_name_again(registry):
    dp.create_streaming_table("first", expect_all={"a": "b"})
    dp.create_streaming_table("second", expect_all={"a": "b"})
    assert len(registry.datasets) == 2


@pytest.mark.parametrize("decorated", [None, "orders", int], ids=str)
def test_an_expectation_above_the_dataset_is_refused(registry, decorated):
    with pytest.raises(ExpectationPlacementError, match=r"dp.expect \(has id\)"):
        dp.expect("has id", "id IS NOT NULL")(decorated)


def test_an_expectation_above_table_is_refused(registry):
    with pytest.raises(ExpectationPlacementError) as caught:

        @dp.expect("has id", "id IS NOT NULL")
        @dp.table
        def orders(): ...

    assert "below @dp.table" in caught.value.hint


@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        (ArgumentTypeError, ("name", 1)),
        (ArgumentTypeError, (1, "a > 0")),
        (ArgumentTypeError, ("name", None)),
        (ArgumentValueError, ("name", " ")),
        (ArgumentValueError, ("", "a > 0")),
    ],
)
def test_names_and_rules_are_text(registry, error, arguments):
    with pytest.raises(error):
        dp.expect(*arguments)


def test_rules_are_given_as_a_dict(registry):
    with pytest.raises(ArgumentTypeError, match="expectations of dp"):
        dp.expect_all_or_drop(["a > 0"])


def test_a_decorator_of_the_users_own_does_not_hide_expectations(registry):
    def logged(function):
        @functools.wraps(function)
        def inner():
            return [function()]

        return inner

    @dp.table
    @dp.expect("above", "a")
    @logged
    @dp.expect_or_drop("below", "b")
    def orders():
        return "the frame"

    assert registry.datasets[0].name.table == "orders"
    assert rules_of(registry.datasets[0]) == [("above", "a", WARN), ("below", "b", DROP)]
    assert registry.flows[0].query.function() == ["the frame"]
