"""What looking after a table of a pipeline goes by: its definition and its flows."""

from __future__ import annotations

from collections.abc import Mapping

from millpond.definitions import FlowKind
from millpond.delta import Table
from millpond.graph import ResolvedDataset
from millpond.maintenance import RowOrder, Upkeep
from millpond.storage import Layout

MARKER = "cleaned.json"


def upkeep_of(
    dataset: ResolvedDataset, table: Table, *, layout: Layout, checkpoints: Mapping[str, str]
) -> Upkeep:
    """The upkeep of a dataset's table.

    Args:
        dataset: With the flows that fill it.
        table: Its table.
        layout: Of the pipeline's storage.
        checkpoints: The checkpoint id of each of its flows, as far as they are known.
    """
    keys = (
        key for flow in dataset.flows if flow.kind is FlowKind.REPLACE_USING for key in flow.keys
    )
    return Upkeep(
        table,
        RowOrder(dataset.dataset.cluster_by, tuple(keys)),
        marker=layout.maintenance(dataset.name) / MARKER,
        folders=[
            folder
            for flow, checkpoint in checkpoints.items()
            for folder in (layout.checkpoint(flow, checkpoint), layout.schemas(flow))
        ],
    )
