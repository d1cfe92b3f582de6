"""What is done for each kind of operator with state, by its name in a Spark Connect plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millpond.engine.connect.plan import ConnectPlan
from millpond.engine.embedded.stateful.aggregate import aggregate
from millpond.engine.embedded.stateful.deduplicate import deduplicate
from millpond.engine.embedded.stateful.descriptions import Description, told_apart
from millpond.engine.embedded.stateful.execution import Batch, Execution, Operation
from millpond.engine.embedded.stateful.limit import limit
from millpond.engine.embedded.stateful.stream_join import stream_join
from millpond.engine.embedded.stateful.watermark import watermark

_OPERATIONS: Mapping[str, Operation] = {
    "aggregate": aggregate,
    "deduplicate": deduplicate,
    "join": stream_join,
    "limit": limit,
    "with_watermark": watermark,
}


def resolved(
    plan: ConnectPlan, root: Any, client: Any, *, batch: Batch | None = None
) -> tuple[Any, Mapping[str, Description]]:
    """A bound query without operators that keep state, and without a batch, what those keep.

    Args:
        root: `plan`, bound.
        batch: Without one, no data is read, and the query gives no rows.

    Raises:
        MillpondError: An operator can't do what it is asked for.
    """
    execution = Execution(plan, client, operations=_OPERATIONS, batch=batch)
    found = execution.resolved(root)
    return found, told_apart(root, execution.description) if batch is None else {}
