"""What `table`, `materialized_view` and `create_streaming_table` define."""

import functools

import pytest

from millpond import pipelines as dp
from millpond.definitions import DatasetKind, ExpectationAction, FlowKind, Language
from millpond.errors.names import InvalidNameError
from millpond.errors.pipelines import (
    ArgumentTypeError,
    ArgumentValueError,
    FeatureNotSupportedError,
)


def test_a_bare_decorator_defines_a_table_and_its_flow_named_after_the_function(registry):
    @dp.table
    def orders(): ...

    (dataset,), (flow,) = registry.datasets, registry.flows
    assert dataset.name.parts == ("main", "sales", "orders")
    assert dataset.kind is DatasetKind.STREAMING_TABLE
    assert (flow.name, flow.target) == ("main.sales.orders", dataset.name)
    assert (flow.kind, flow.language) == (FlowKind.APPEND, Language.PYTHON)
    assert (flow.query.catalog, flow.query.schema) == ("main", "sales")
    assert orders is None  # as in Apache Spark


def test_parentheses_without_arguments_make_no_difference(registry):
    @dp.table()
    def first(): ...

    @dp.materialized_view()
    def second(): ...

    @dp.temporary_view()
    def third(): ...

    assert [dataset.name.table for dataset in registry.datasets] == ["first", "second", "third"]


def test_the_query_calls_the_decorated_function(registry):
    @dp.table
    @dp.expect("a", "b")
    def orders():
        return "the frame"

    assert registry.flows[0].query.function() == "the frame"


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ("t", ("main", "sales", "t")),
        ("other.t", ("main", "other", "t")),
        ("lake.other.t", ("lake", "other", "t")),
        ("`odd name`", ("main", "sales", "odd name")),
    ],
)
def test_a_given_name_is_filled_up_with_catalog_and_schema(registry, given, parts):
    dp.table(name=given)(lambda: None)
    assert registry.datasets[0].name.parts == parts


def test_a_function_name_in_any_script_is_a_name(registry):
    def sizes(): ...

    sizes.__name__ = "größen"
    dp.table(sizes)

    assert registry.datasets[0].name.table == "größen"
    assert registry.flows[0].name == "main.sales.`größen`"


def test_a_name_of_four_parts_is_refused(registry):
    with pytest.raises(InvalidNameError) as caught:
        dp.table(name="a.b.c.d")(lambda: None)
    assert caught.value.where.file == "test_tables.py"


def test_all_arguments_reach_the_definition(registry):
    @dp.table(
        name="t",
        comment="All of it",
        spark_conf={"spark.sql.shuffle.partitions": "2"},
        table_properties={"pipelines.reset.allowed": "false"},
        path="/lake/t",
        cluster_by=["a"],
        cluster_by_auto=True,
        schema="a INT, b STRING",
        private=True,
        replace_using=["a", "b"],
        sequence_by="c",
        format="DELTA",
        row_filter=None,
    )
    def orders(): ...

    (dataset,), (flow,) = registry.datasets, registry.flows
    assert dataset.comment == "All of it"
    assert dataset.table_properties == {"pipelines.reset.allowed": "false"}
    assert dataset.path == "/lake/t"
    assert (dataset.cluster_by, dataset.cluster_by_auto) == (("a",), True)
    assert (dataset.schema, dataset.private) == ("a INT, b STRING", True)
    assert flow.spark_conf == {"spark.sql.shuffle.partitions": "2"}
    assert flow.kind is FlowKind.REPLACE_USING
    assert (flow.replace_using, flow.sequence_by) == (("a", "b"), "c")


def test_partition_columns_reach_the_definition(registry):
    dp.table(partition_cols=["day"], name="t")(lambda: None)
    assert registry.datasets[0].partition_cols == ("day",)


def test_a_schema_may_be_a_struct_type(registry):
    from pyspark.sql.types import LongType, StructField, StructType

    schema = StructType([StructField("a", LongType())])
    dp.materialized_view(name="t", schema=schema)(lambda: None)
    assert registry.datasets[0].schema == schema


def test_a_sequence_may_be_a_column_expression(registry):
    from pyspark.sql import functions

    sequence = functions.struct("day", "version")
    dp.table(name="t", replace_using=["a"], sequence_by=sequence)(lambda: None)
    assert registry.flows[0].sequence_by is sequence


def test_a_materialized_view_has_a_flow_of_its_kind(registry):
    @dp.materialized_view(refresh_policy="incremental")
    def totals(): ...

    assert registry.datasets[0].kind is DatasetKind.MATERIALIZED_VIEW
    assert registry.flows[0].kind is FlowKind.MATERIALIZED_VIEW


@pytest.mark.parametrize("decorator", [dp.temporary_view, dp.view])
def test_a_temporary_view_has_a_flow_of_its_kind(registry, decorator):
    @decorator(comment="Only here")
    def recent(): ...

    assert registry.datasets[0].kind is DatasetKind.TEMPORARY_VIEW
    assert registry.datasets[0].comment == "Only here"
    assert registry.flows[0].kind is FlowKind.VIEW


def test_a_temporary_view_belongs_to_no_schema(registry):
    with pytest.raises(ArgumentValueError, match="neither"):
        dp.temporary_view(name="sales.recent")(lambda: None)


def test_a_streaming_table_can_be_created_without_a_query(registry):
    dp.create_streaming_table(
        "orders",
        comment="A target",
        spark_conf={"a": "b"},
        schema="id INT",
        expect_all={"warned": "a"},
        expect_all_or_drop={"dropped": "b"},
        expect_all_or_fail={"failing": "c"},
    )
    (dataset,) = registry.datasets
    assert dataset.kind is DatasetKind.STREAMING_TABLE
    assert [(rule.name, rule.constraint, rule.action) for rule in dataset.expectations] == [
        ("warned", "a", ExpectationAction.WARN),
        ("dropped", "b", ExpectationAction.DROP),
        ("failing", "c", ExpectationAction.FAIL),
    ]
    assert registry.flows == []


def test_partitioning_and_clustering_exclude_each_other(registry):
    with pytest.raises(ArgumentValueError, match="partition_cols and cluster_by,"):
        dp.create_streaming_table("t", partition_cols=["a"], cluster_by=["b"])
    with pytest.raises(ArgumentValueError, match="cluster_by_auto"):
        dp.create_streaming_table("t", partition_cols=["a"], cluster_by_auto=True)


@pytest.mark.parametrize(
    "arguments",
    [
        {"comment": 1},
        {"name": 1},
        {"spark_conf": ["a"]},
        {"spark_conf": {"a": 1}},
        {"table_properties": {1: "a"}},
        {"path": 1},
        {"partition_cols": "day"},
        {"cluster_by": ["a", 1]},
        {"cluster_by_auto": "yes"},
        {"private": None},
        {"schema": {"a": "INT"}},
        {"replace_using": "region", "sequence_by": "v"},
        {"replace_using": ["region"], "sequence_by": 1},
        {"replace_using": ["region"], "sequence_by": ["v"]},
    ],
    ids=str,
)
def test_an_argument_of_a_wrong_type_is_refused_by_name(registry, arguments):
    with pytest.raises(ArgumentTypeError) as caught:
        dp.table(**{"name": "t"} | arguments)(lambda: None)
    assert next(key for key in reversed(arguments) if key in caught.value.what)
    assert isinstance(caught.value, TypeError)
    assert registry.datasets == []


def test_a_boolean_property_is_shown_as_it_has_to_be_written(registry):
    with pytest.raises(ArgumentTypeError) as caught:
        dp.create_streaming_table("t", table_properties={"pipelines.reset.allowed": False})
    assert caught.value.hint == "write it as 'false'"


@pytest.mark.parametrize("arguments", [{"name": " "}, {"path": ""}, {"refresh_policy": "weekly"}])
def test_an_impossible_value_is_refused(registry, arguments):
    with pytest.raises(ArgumentValueError):
        dp.materialized_view(**{"name": "t"} | arguments)(lambda: None)


@pytest.mark.parametrize(
    ("decorator", "arguments"),
    [
        (dp.table, {"row_filter": "f ON (a)"}),
        (dp.table, {"format": "parquet"}),
        (dp.table, {"replace_where": "day > '2026-01-01'"}),
        (dp.materialized_view, {"row_filter": "f ON (a)"}),
        (dp.materialized_view, {"refresh_policy": "incremental_strict"}),
    ],
)
def test_what_only_a_managed_service_has_is_refused(registry, decorator, arguments):
    with pytest.raises(FeatureNotSupportedError) as caught:
        decorator(name="t", **arguments)(lambda: None)
    assert next(iter(arguments)) in caught.value.what
    assert caught.value.hint


def test_an_unknown_keyword_is_pythons_own_type_error(registry):
    with pytest.raises(TypeError, match="unexpected keyword argument 'replace_usng'"):
        dp.table(replace_usng=["a"])


def test_a_lambda_needs_a_name(registry):
    with pytest.raises(ArgumentValueError, match="<lambda>"):
        dp.table(lambda: None)


@pytest.mark.parametrize("decorated", [None, "orders", dict], ids=str)
def test_only_a_function_can_be_decorated(registry, decorated):
    with pytest.raises(ArgumentTypeError, match="must decorate a function"):
        dp.table(name="t")(decorated)


def test_a_name_in_the_place_of_the_function_is_refused(registry):
    with pytest.raises(ArgumentTypeError, match="must decorate a function"):
        dp.table("orders")


def test_a_query_function_must_need_no_arguments(registry):
    with pytest.raises(ArgumentTypeError, match="query function orders"):

        @dp.table
        def orders(region): ...

    for region in ("north", "south"):

        @dp.table(name=region)
        def sales(region=region):
            return region

    assert [flow.query.function() for flow in registry.flows] == ["north", "south"]


def test_a_decorator_of_the_users_own_may_give_the_arguments(registry):
    def with_region(function):
        @functools.wraps(function)
        def inner():
            return function("north")

        return inner

    @dp.table
    @with_region
    def orders(region):
        return region

    assert registry.datasets[0].name.table == "orders"
    assert registry.flows[0].query.function() == "north"


def test_a_partial_function_is_a_query_function(registry):
    def sales(region):
        return region

    dp.table(functools.partial(sales, "north"))
    assert registry.datasets[0].name.table == "sales"
    assert registry.flows[0].query.function() == "north"


def test_definitions_stand_at_the_line_of_the_users_call(registry):
    line = test_definitions_stand_at_the_line_of_the_users_call.__code__.co_firstlineno

    @dp.table
    def bare(): ...

    @dp.table(
        name="with_arguments",
    )
    @dp.expect("a", "b")
    def other(): ...

    dp.create_streaming_table("created")

    places = [dataset.location.line - line for dataset in registry.datasets]
    assert places == [3, 6, 12]
    assert {dataset.location.file for dataset in registry.datasets} == {"test_tables.py"}
    assert registry.datasets[1].expectations[0].location.line - line == 9
    assert [flow.query.location.line - line for flow in registry.flows] == [3, 6]
