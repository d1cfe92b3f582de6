"""`temporary_view`: a named query that is not stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

from millpond.definitions import DatasetKind
from millpond.pipelines.arguments import Arguments
from millpond.pipelines.dataset import applied, dataset_decorator
from millpond.pipelines.query import QueryFunction
from millpond.pipelines.registry import active_registry, caller_location


@overload
def temporary_view(query_function: QueryFunction) -> None: ...


@overload
def temporary_view(
    *,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: dict[str, str] | None = None,
) -> Callable[[QueryFunction], None]: ...


def temporary_view(
    query_function: QueryFunction | None = None,
    *,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: dict[str, str] | None = None,
) -> Callable[[QueryFunction], None] | None:
    """Define a view that the pipeline's other queries can read, and nobody else.

    It is not stored; its query, batch or streaming, becomes a part of each query that reads it.
    Used with or without parentheses. `view` is its old name.

    Example:
        ```python
        @dp.temporary_view
        def completed_payments():
            return spark.readStream.table("samples.wanderbricks.payments").where(
                "status = 'completed'"
            )
        ```

    Args:
        query_function: The decorated function, where there are no parentheses.
        name: Name of the view, of one part.
        comment: Description of the view.
        spark_conf: Spark settings for this query.

    Raises:
        MillpondError: As for `table`.
    """
    call = Arguments("dp.temporary_view", caller_location())
    registry = active_registry(call.api)
    decorator = dataset_decorator(
        DatasetKind.TEMPORARY_VIEW,
        call=call,
        registry=registry,
        name=name,
        settings={"comment": call.optional_text("comment", comment)},
        spark_conf=spark_conf,
    )
    return applied(decorator, query_function)
