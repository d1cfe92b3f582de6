"""What `append_flow` and `replace_flow` define."""

import pytest

from millpond import pipelines as dp
from millpond.definitions import FlowKind
from millpond.errors.pipelines import (
    ArgumentTypeError,
    ArgumentValueError,
    ExpectationPlacementError,
)


def test_an_append_flow_is_named_after_its_function(registry):
    @dp.append_flow(target="other.orders", comment="From the shops", spark_conf={"a": "b"})
    def shop_orders(): ...

    (flow,) = registry.flows
    assert flow.name == "main.sales.shop_orders"
    assert flow.target.parts == ("main", "other", "orders")
    assert (flow.kind, flow.once) == (FlowKind.APPEND, False)
    assert (flow.comment, flow.spark_conf) == ("From the shops", {"a": "b"})
    assert registry.datasets == []
    assert shop_orders is None


def test_a_flow_can_run_once(registry):
    dp.append_flow(target="orders", name="backfill", once=True)(lambda: None)
    assert registry.flows[0].once
    assert registry.flows[0].name == "main.sales.backfill"


def test_a_replace_flow_has_keys_and_a_sequence(registry):
    @dp.replace_flow(
        target="orders", replace_using=["region"], sequence_by="version", comment="Whole regions"
    )
    def regions(): ...

    (flow,) = registry.flows
    assert flow.kind is FlowKind.REPLACE_USING
    assert (flow.replace_using, flow.sequence_by) == (("region",), "version")
    assert (flow.comment, flow.once, flow.by_name) == ("Whole regions", False, True)


@pytest.mark.parametrize("target", [None, 1, ["orders"]])
def test_a_target_is_a_string(registry, target):
    with pytest.raises(ArgumentTypeError, match="target of dp"):
        dp.append_flow(target=target)


def test_a_target_is_not_empty(registry):
    with pytest.raises(ArgumentValueError, match="target"):
        dp.append_flow(target="")


def test_once_is_true_or_false(registry):
    with pytest.raises(ArgumentTypeError, match="once"):
        dp.append_flow(target="orders", once="yes")


@pytest.mark.parametrize(
    "decorator",
    [
        lambda: dp.append_flow(target="orders"),
        lambda: dp.replace_flow(target="orders", replace_using=["a"], sequence_by="b"),
    ],
)
def test_expectations_belong_to_the_target_of_a_flow(registry, decorator):
    with pytest.raises(ExpectationPlacementError) as caught:

        @decorator()
        @dp.expect_or_drop("has id", "id IS NOT NULL")
        def shop_orders(): ...

    assert "main.sales.orders" in caught.value.what
    assert "create_streaming_table" in caught.value.hint
    assert registry.flows == []
