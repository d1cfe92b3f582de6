"""The expectation decorators: rules that each row of a dataset is held against."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from millpond.definitions import Expectation, ExpectationAction
from millpond.errors.pipelines import ExpectationPlacementError
from millpond.pipelines.arguments import Arguments, is_function
from millpond.pipelines.query import CheckedFunction, QueryFunction
from millpond.pipelines.registry import caller_location

Decorator = Callable[[QueryFunction], QueryFunction]


def expect(description: str, constraint: str) -> Decorator:
    """Count the rows that don't meet a rule, and keep them.

    It stands below `@dp.table`, `@dp.materialized_view` or `@dp.temporary_view` and above the
    function. Several may be stacked. Rows are checked before they are written; for a REPLACE
    USING flow, before the highest sequence of a key is chosen.

    Example:
        ```python
        @dp.table
        @dp.expect("positive amount", "amount > 0")
        def payments():
            return spark.readStream.table("samples.wanderbricks.payments")
        ```

    Args:
        description: Name of the rule, unique in its dataset; metrics are counted by it.
        constraint: A Spark SQL boolean over the dataset's columns. A null counts as not met.

    Raises:
        ArgumentTypeError: The name or the rule is not a string.
        ArgumentValueError: The name or the rule is empty.
        ExpectationPlacementError: It decorates something that is no query function, such as what
            `@dp.table` leaves.
        DuplicateExpectationError: The dataset has another rule of that name.
    """
    return _decorator("dp.expect", {description: constraint}, ExpectationAction.WARN)


def expect_or_drop(description: str, constraint: str) -> Decorator:
    """Drop the rows that don't meet a rule, and count them.

    A dropped row is never written. In a REPLACE USING flow it takes no part at all: it neither
    lands nor replaces other rows of its key.

    Example:
        ```python
        @dp.table(replace_using=["booking_id"], sequence_by="updated_at")
        @dp.expect_or_drop("has a status", "status IS NOT NULL")
        def current_bookings():
            return spark.readStream.table("samples.wanderbricks.booking_updates")
        ```

    Args:
        description: Name of the rule, unique in its dataset; metrics are counted by it.
        constraint: A Spark SQL boolean over the dataset's columns. A null counts as not met.

    Raises:
        MillpondError: As for `expect`.
    """
    return _decorator("dp.expect_or_drop", {description: constraint}, ExpectationAction.DROP)


def expect_or_fail(description: str, constraint: str) -> Decorator:
    """Stop the flow when a row does not meet a rule; nothing of its micro-batch is written.

    Example:
        ```python
        @dp.materialized_view
        @dp.expect_or_fail("known currency", "currency IN ('EUR', 'USD')")
        def prices():
            return spark.sql("SELECT 'EUR' AS currency, 1.5 AS price")
        ```

    Args:
        description: Name of the rule, unique in its dataset.
        constraint: A Spark SQL boolean over the dataset's columns. A null counts as not met.

    Raises:
        MillpondError: As for `expect`.
    """
    return _decorator("dp.expect_or_fail", {description: constraint}, ExpectationAction.FAIL)


def expect_all(expectations: Mapping[str, str]) -> Decorator:
    """Count, for each of several rules, the rows that don't meet it, and keep them.

    Example:
        ```python
        rules = {"has id": "payment_id IS NOT NULL", "positive amount": "amount > 0"}


        @dp.table
        @dp.expect_all(rules)
        def payments():
            return spark.readStream.table("samples.wanderbricks.payments")
        ```

    Args:
        expectations: Constraint by name, each as for `expect`.

    Raises:
        MillpondError: As for `expect`.
    """
    return _decorator("dp.expect_all", expectations, ExpectationAction.WARN)


def expect_all_or_drop(expectations: Mapping[str, str]) -> Decorator:
    """Drop the rows that don't meet every one of several rules. Each rule is counted by itself.

    Args:
        expectations: Constraint by name, each as for `expect_or_drop`.

    Raises:
        MillpondError: As for `expect`.
    """
    return _decorator("dp.expect_all_or_drop", expectations, ExpectationAction.DROP)


def expect_all_or_fail(expectations: Mapping[str, str]) -> Decorator:
    """Stop the flow when a row does not meet every one of several rules.

    Args:
        expectations: Constraint by name, each as for `expect_or_fail`.

    Raises:
        MillpondError: As for `expect`.
    """
    return _decorator("dp.expect_all_or_fail", expectations, ExpectationAction.FAIL)


def rules(
    call: Arguments, argument: str, constraints: Any, action: ExpectationAction
) -> tuple[Expectation, ...]:
    """Build the expectations of one dict of constraints by name."""
    checked = call.mapping(argument, constraints)
    return tuple(
        Expectation(
            name=call.text("the name of an expectation", name),
            constraint=call.text(f"the constraint of {name!r}", constraint),
            action=action,
            location=call.where,
        )
        for name, constraint in checked.items()
    )


def _decorator(api: str, constraints: Mapping[str, str], action: ExpectationAction) -> Decorator:
    call = Arguments(api, caller_location())
    expectations = rules(call, "expectations", constraints, action)

    def decorate(function: QueryFunction) -> QueryFunction:
        if not isinstance(function, CheckedFunction) and not is_function(function):
            raise ExpectationPlacementError.from_decorated(
                api, _names(expectations), value=function, where=call.where
            )
        return CheckedFunction(function, expectations)

    return decorate


def _names(expectations: Iterable[Expectation]) -> str:
    return ", ".join(expectation.name for expectation in expectations)
