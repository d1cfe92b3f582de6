"""`table`, `materialized_view` and `create_streaming_table`: datasets that are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, overload

from millpond.definitions import Dataset, DatasetKind, ExpectationAction
from millpond.pipelines.arguments import Arguments
from millpond.pipelines.dataset import (
    applied,
    dataset_decorator,
    define_dataset,
    stored_settings,
)
from millpond.pipelines.expectations import rules
from millpond.pipelines.query import QueryFunction
from millpond.pipelines.registry import active_registry, caller_location

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

# ruff: noqa: A002 - `format` shadows a builtin because Apache Spark names the argument so


@overload
def table(query_function: QueryFunction) -> None: ...


@overload
def table(
    *,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: dict[str, str] | None = None,
    table_properties: dict[str, str] | None = None,
    path: str | None = None,
    partition_cols: list[str] | None = None,
    cluster_by_auto: bool = False,
    cluster_by: list[str] | None = None,
    schema: StructType | str | None = None,
    row_filter: str | None = None,
    private: bool = False,
    replace_using: list[str] | None = None,
    sequence_by: str | Column | None = None,
    format: str | None = None,
) -> Callable[[QueryFunction], None]: ...


def table(
    query_function: QueryFunction | None = None,
    *,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: dict[str, str] | None = None,
    table_properties: dict[str, str] | None = None,
    path: str | None = None,
    partition_cols: list[str] | None = None,
    cluster_by_auto: bool = False,
    cluster_by: list[str] | None = None,
    schema: StructType | str | None = None,
    row_filter: str | None = None,
    private: bool = False,
    replace_using: list[str] | None = None,
    sequence_by: str | Column | None = None,
    format: str | None = None,
    replace_where: object = None,
) -> Callable[[QueryFunction], None] | None:
    """Define a table from a query function: a streaming table, when the query reads a stream.

    The table and its flow are named after the function, or `name`. New rows of the stream are
    appended; with `replace_using` and `sequence_by` they replace the rows of their key. A query
    that reads no stream makes a materialized view, as `materialized_view` does. Used with or
    without parentheses.

    Example:
        ```python
        @dp.table
        def payments():
            return spark.readStream.table("samples.wanderbricks.payments")


        @dp.table(replace_using=["booking_id"], sequence_by="updated_at")
        def current_bookings():
            return spark.readStream.table("samples.wanderbricks.booking_updates")
        ```

    Args:
        query_function: The decorated function, where there are no parentheses.
        name: Name of the table: one to three parts, `catalog.schema.table`.
        comment: Description of the table.
        spark_conf: Spark settings for this query.
        table_properties: Delta table properties.
        path: Folder for the table, in the place of one in the pipeline's storage.
        partition_cols: Partition columns.
        cluster_by_auto: Accepted for the sake of other runtimes; changes nothing here.
        cluster_by: Clustering columns; excludes `partition_cols`.
        schema: Declared columns, as a `StructType` or DDL text.
        row_filter: Needs a managed catalog: anything but `None` is refused.
        private: Not published: visible only inside the pipeline.
        replace_using: Key columns of a REPLACE USING flow; needs `sequence_by`.
        sequence_by: What orders the rows of a key: a column name or a `Column`. Of each key, the
            rows at the highest value stay.
        format: `delta`, or nothing.
        replace_where: REPLACE WHERE flows are not supported: anything but `None` is refused.

    Raises:
        DefinitionOutsideRunError: No pipeline is being loaded.
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentValueError: An argument has an impossible value, or excludes another.
        InvalidNameError: The name can't be the name of a table.
        ReplaceUsingError: The keys and the sequence don't make a REPLACE USING flow.
        DuplicateExpectationError: Two expectations have the same name.
        FeatureNotSupportedError: An argument asks for what only a managed service has.
    """
    call = Arguments("dp.table", caller_location())
    registry = active_registry(call.api)
    call.replace_where(replace_where)
    settings = stored_settings(
        call,
        comment=comment,
        table_properties=table_properties,
        path=path,
        partition_cols=partition_cols,
        cluster_by_auto=cluster_by_auto,
        cluster_by=cluster_by,
        schema=schema,
        row_filter=row_filter,
        private=private,
        format=format,
    )

    decorator = dataset_decorator(
        DatasetKind.STREAMING_TABLE,
        call=call,
        registry=registry,
        name=name,
        settings=settings,
        spark_conf=spark_conf,
        replace_using=replace_using,
        sequence_by=sequence_by,
    )
    return applied(decorator, query_function)


@overload
def materialized_view(query_function: QueryFunction) -> None: ...


@overload
def materialized_view(
    *,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: dict[str, str] | None = None,
    table_properties: dict[str, str] | None = None,
    path: str | None = None,
    partition_cols: list[str] | None = None,
    cluster_by_auto: bool = False,
    cluster_by: list[str] | None = None,
    schema: StructType | str | None = None,
    refresh_policy: str | None = None,
    row_filter: str | None = None,
    private: bool = False,
    format: str | None = None,
) -> Callable[[QueryFunction], None]: ...


def materialized_view(
    query_function: QueryFunction | None = None,
    *,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: dict[str, str] | None = None,
    table_properties: dict[str, str] | None = None,
    path: str | None = None,
    partition_cols: list[str] | None = None,
    cluster_by_auto: bool = False,
    cluster_by: list[str] | None = None,
    schema: StructType | str | None = None,
    refresh_policy: str | None = None,
    row_filter: str | None = None,
    private: bool = False,
    format: str | None = None,
) -> Callable[[QueryFunction], None] | None:
    """Define a table that always holds the result of its batch query.

    Every update computes the query anew; the table gets a new version only when rows changed.
    Used with or without parentheses.

    Example:
        ```python
        @dp.materialized_view(comment="Payments by method")
        def payments_by_method():
            payments = spark.read.table("samples.wanderbricks.payments")
            return payments.groupBy("payment_method").count()
        ```

    Args:
        query_function: The decorated function, where there are no parentheses.
        name: Name of the table: one to three parts, `catalog.schema.table`.
        comment: Description of the table.
        spark_conf: Spark settings for this query.
        table_properties: Delta table properties.
        path: Folder for the table, in the place of one in the pipeline's storage.
        partition_cols: Partition columns.
        cluster_by_auto: Accepted for the sake of other runtimes; changes nothing here.
        cluster_by: Clustering columns; excludes `partition_cols`.
        schema: Declared columns, as a `StructType` or DDL text.
        refresh_policy: `auto`, `full` or `incremental`, none of which changes anything here;
            `incremental_strict` is refused.
        row_filter: Needs a managed catalog: anything but `None` is refused.
        private: Not published: visible only inside the pipeline.
        format: `delta`, or nothing.

    Raises:
        MillpondError: As for `table`.
    """
    call = Arguments("dp.materialized_view", caller_location())
    registry = active_registry(call.api)
    call.refresh_policy(refresh_policy)
    settings = stored_settings(
        call,
        comment=comment,
        table_properties=table_properties,
        path=path,
        partition_cols=partition_cols,
        cluster_by_auto=cluster_by_auto,
        cluster_by=cluster_by,
        schema=schema,
        row_filter=row_filter,
        private=private,
        format=format,
    )

    decorator = dataset_decorator(
        DatasetKind.MATERIALIZED_VIEW,
        call=call,
        registry=registry,
        name=name,
        settings=settings,
        spark_conf=spark_conf,
    )
    return applied(decorator, query_function)


def create_streaming_table(
    name: str,
    *,
    comment: str | None = None,
    spark_conf: dict[str, str] | None = None,
    table_properties: dict[str, str] | None = None,
    path: str | None = None,
    partition_cols: list[str] | None = None,
    cluster_by_auto: bool = False,
    cluster_by: list[str] | None = None,
    schema: StructType | str | None = None,
    expect_all: dict[str, str] | None = None,
    expect_all_or_drop: dict[str, str] | None = None,
    expect_all_or_fail: dict[str, str] | None = None,
    row_filter: str | None = None,
    format: str | None = None,
) -> None:
    """Create a streaming table that has no query of its own, as a target for flows.

    `append_flow` and `replace_flow` write to it. This is a call, not a decorator.

    Example:
        ```python
        dp.create_streaming_table(
            "current_bookings",
            expect_all_or_drop={"has a status": "status IS NOT NULL"},
        )


        @dp.replace_flow(
            target="current_bookings", replace_using=["booking_id"], sequence_by="updated_at"
        )
        def booking_changes():
            return spark.readStream.table("samples.wanderbricks.booking_updates")
        ```

    Args:
        name: Name of the table: one to three parts, `catalog.schema.table`.
        comment: Description of the table.
        spark_conf: Accepted for the sake of other runtimes; a flow has settings of its own.
        table_properties: Delta table properties.
        path: Folder for the table, in the place of one in the pipeline's storage.
        partition_cols: Partition columns.
        cluster_by_auto: Accepted for the sake of other runtimes; changes nothing here.
        cluster_by: Clustering columns; excludes `partition_cols`.
        schema: Declared columns, as a `StructType` or DDL text.
        expect_all: Constraint by name, as for the decorator `expect_all`.
        expect_all_or_drop: Constraint by name, as for the decorator `expect_all_or_drop`.
        expect_all_or_fail: Constraint by name, as for the decorator `expect_all_or_fail`.
        row_filter: Needs a managed catalog: anything but `None` is refused.
        format: `delta`, or nothing.

    Raises:
        MillpondError: As for `table`.
    """
    call = Arguments("dp.create_streaming_table", caller_location())
    registry = active_registry(call.api)
    settings = stored_settings(
        call,
        comment=comment,
        table_properties=table_properties,
        path=path,
        partition_cols=partition_cols,
        cluster_by_auto=cluster_by_auto,
        cluster_by=cluster_by,
        schema=schema,
        row_filter=row_filter,
        format=format,
    )
    call.mapping("spark_conf", spark_conf)
    expectations = (
        *rules(call, "expect_all", expect_all, ExpectationAction.WARN),
        *rules(call, "expect_all_or_drop", expect_all_or_drop, ExpectationAction.DROP),
        *rules(call, "expect_all_or_fail", expect_all_or_fail, ExpectationAction.FAIL),
    )
    define_dataset(
        Dataset(
            registry.resolve(call.text("name", name), where=call.where),
            DatasetKind.STREAMING_TABLE,
            location=call.where,
            expectations=expectations,
            **settings,
        ),
        registry=registry,
    )
