"""Makes a dataset, with its own flow where it has a query, and registers both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millpond.definitions import Dataset, DatasetKind, Flow, FlowKind, Language
from millpond.errors.pipelines import ArgumentValueError
from millpond.names import split_name
from millpond.pipelines.arguments import Arguments
from millpond.pipelines.query import (
    QueryFunction,
    check_unique,
    given_name,
    query_of,
    split_expectations,
)
from millpond.pipelines.registry import Registry

_FLOW_KINDS = {
    DatasetKind.STREAMING_TABLE: FlowKind.APPEND,
    DatasetKind.MATERIALIZED_VIEW: FlowKind.MATERIALIZED_VIEW,
    DatasetKind.TEMPORARY_VIEW: FlowKind.VIEW,
}


def stored_settings(
    call: Arguments,
    *,
    comment: Any,
    table_properties: Any,
    path: Any,
    partition_cols: Any,
    cluster_by_auto: Any,
    cluster_by: Any,
    schema: Any,
    row_filter: Any,
    format: Any,  # noqa: A002 - the name of the users' argument
    private: Any = False,
) -> dict[str, Any]:
    """Check what every stored dataset can be given; return it as fields of a `Dataset`."""
    call.row_filter(row_filter)
    call.table_format(format)
    settings: dict[str, Any] = {
        "comment": call.optional_text("comment", comment),
        "table_properties": call.mapping("table_properties", table_properties),
        "path": None if path is None else call.text("path", path),
        "partition_cols": call.texts("partition_cols", partition_cols),
        "cluster_by_auto": call.flag("cluster_by_auto", cluster_by_auto),
        "cluster_by": call.texts("cluster_by", cluster_by),
        "schema": call.schema(schema),
        "private": call.flag("private", private),
    }
    call.clustering(
        partition_cols=settings["partition_cols"],
        cluster_by=settings["cluster_by"],
        auto=settings["cluster_by_auto"],
    )
    return settings


def dataset_decorator(
    kind: DatasetKind,
    *,
    call: Arguments,
    registry: Registry,
    name: Any,
    settings: dict[str, Any],
    spark_conf: Any,
    replace_using: Any = None,
    sequence_by: Any = None,
) -> Callable[[QueryFunction], None]:
    """A decorator that defines a dataset with its flow, both named alike."""
    conf = call.mapping("spark_conf", spark_conf)

    def define(decorated: QueryFunction) -> None:
        function, expectations = split_expectations(decorated, call=call)
        text = given_name(name, function=function, call=call)
        if kind is DatasetKind.TEMPORARY_VIEW and len(split_name(text, where=call.where)) > 1:
            raise ArgumentValueError.from_view_name(text, where=call.where)
        full_name = registry.resolve(text, where=call.where)
        flow_name = str(full_name)
        keys, sequence = call.replacing(
            flow_name, replace_using=replace_using, sequence_by=sequence_by
        )
        define_dataset(
            Dataset(full_name, kind, location=call.where, expectations=expectations, **settings),
            registry=registry,
        )
        registry.flows.append(
            Flow(
                flow_name,
                target=full_name,
                kind=FlowKind.REPLACE_USING if keys else _FLOW_KINDS[kind],
                query=query_of(function, registry=registry, call=call),
                language=Language.PYTHON,
                location=call.where,
                spark_conf=conf,
                replace_using=keys,
                sequence_by=sequence,
            )
        )

    return define


def define_dataset(dataset: Dataset, *, registry: Registry) -> None:
    """Register a dataset.

    Raises:
        DuplicateExpectationError: Two of its expectations have the same name.
    """
    check_unique(dataset.expectations, dataset=str(dataset.name))
    registry.datasets.append(dataset)


def applied(
    decorator: Callable[[QueryFunction], None], function: QueryFunction | None
) -> Callable[[QueryFunction], None] | None:
    """Use the decorator at once where Python gave the function along, without parentheses."""
    if function is None:
        return decorator
    decorator(function)
    return None
