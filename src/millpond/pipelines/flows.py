"""`append_flow` and `replace_flow`: queries that feed a table defined elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from millpond.definitions import Flow, FlowKind, Language
from millpond.errors.pipelines import ExpectationPlacementError
from millpond.errors.replace_using import ReplaceUsingNoKeyError
from millpond.pipelines.arguments import Arguments
from millpond.pipelines.query import QueryFunction, given_name, query_of, split_expectations
from millpond.pipelines.registry import Registry, active_registry, caller_location

if TYPE_CHECKING:
    from pyspark.sql import Column


def append_flow(
    *,
    target: str,
    name: str | None = None,
    once: bool = False,
    comment: str | None = None,
    spark_conf: dict[str, str] | None = None,
) -> Callable[[QueryFunction], None]:
    """Define a flow that appends the new rows of its query to a streaming table.

    A table may have several append flows. The name of a flow names its checkpoint: a renamed flow
    reads its source from the start.

    Example:
        ```python
        dp.create_streaming_table("all_bookings")


        @dp.append_flow(target="all_bookings")
        def booking_changes():
            return spark.readStream.table("samples.wanderbricks.booking_updates")


        @dp.append_flow(target="all_bookings", once=True)
        def first_bookings():
            return spark.read.table("samples.wanderbricks.bookings")
        ```

    Args:
        target: Name of the streaming table.
        name: Name of the flow, the function's where left out; unique in the pipeline.
        once: The query is a batch query, and runs once, and again after a full refresh.
        comment: Description of the flow.
        spark_conf: Spark settings for this query.

    Raises:
        DefinitionOutsideRunError: No pipeline is being loaded.
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentValueError: An argument has an impossible value.
        InvalidNameError: The name or the target can't be a name.
        ExpectationPlacementError: The function carries expectations; they belong to the target.
    """
    call = Arguments("dp.append_flow", caller_location())
    settings = {
        "once": call.flag("once", once),
        "comment": call.optional_text("comment", comment),
        "spark_conf": call.mapping("spark_conf", spark_conf),
    }
    return _flow_decorator(
        call,
        registry=active_registry(call.api),
        target=target,
        name=name,
        settings=settings,
        keys_and_sequence=None,
    )


def replace_flow(
    *,
    target: str,
    replace_using: list[str],
    sequence_by: str | Column,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: dict[str, str] | None = None,
) -> Callable[[QueryFunction], None]:
    """Define a REPLACE USING flow: new rows replace the rows of their key that are older.

    For each key, the rows at the highest sequence ever read are what the table holds: rows at a
    higher sequence replace those stored, rows at the same sequence are added, older rows are
    ignored. The order in which rows arrive makes no difference. The flow must be the only one
    into its table. Null is a key like any other; a null sequence stops the flow.

    Example:
        ```python
        dp.create_streaming_table("region_sales")


        @dp.replace_flow(target="region_sales", replace_using=["region"], sequence_by="version")
        def sales_snapshots():
            return spark.readStream.table("incoming_sales")
        ```

    Args:
        target: Name of the streaming table.
        replace_using: Key columns: at least one, none twice, of types that can be ordered.
        sequence_by: What orders the rows of a key: a column name or a `Column`.
        name: Name of the flow, the function's where left out; unique in the pipeline.
        comment: Description of the flow.
        spark_conf: Spark settings for this query.

    Raises:
        MillpondError: As for `append_flow`.
        ReplaceUsingError: The keys and the sequence don't make a REPLACE USING flow.
    """
    call = Arguments("dp.replace_flow", caller_location())
    settings = {
        "comment": call.optional_text("comment", comment),
        "spark_conf": call.mapping("spark_conf", spark_conf),
    }
    return _flow_decorator(
        call,
        registry=active_registry(call.api),
        target=target,
        name=name,
        settings=settings,
        keys_and_sequence=(replace_using, sequence_by),
    )


def _flow_decorator(
    call: Arguments,
    *,
    registry: Registry,
    target: Any,
    name: Any,
    settings: dict[str, Any],
    keys_and_sequence: tuple[Any, Any] | None,
) -> Callable[[QueryFunction], None]:
    target_name = registry.resolve(call.text("target", target), where=call.where)

    def define(decorated: QueryFunction) -> None:
        function, expectations = split_expectations(decorated, call=call)
        text = given_name(name, function=function, call=call)
        flow_name = str(registry.resolve(text, where=call.where))
        if expectations:
            raise ExpectationPlacementError.from_flow(
                call.api, flow_name, target=str(target_name), where=expectations[0].location
            )
        keys, sequence = _replacing(call, flow_name, keys_and_sequence)
        registry.flows.append(
            Flow(
                flow_name,
                target=target_name,
                kind=FlowKind.REPLACE_USING if keys else FlowKind.APPEND,
                query=query_of(function, registry=registry, call=call),
                language=Language.PYTHON,
                location=call.where,
                replace_using=keys,
                sequence_by=sequence,
                **settings,
            )
        )

    return define


def _replacing(
    call: Arguments, flow: str, keys_and_sequence: tuple[Any, Any] | None
) -> tuple[tuple[str, ...], str | Column | None]:
    if keys_and_sequence is None:
        return (), None
    keys, sequence = keys_and_sequence
    if keys is None:
        raise ReplaceUsingNoKeyError.from_flow(flow, where=call.where)
    return call.replacing(flow, replace_using=keys, sequence_by=sequence)
