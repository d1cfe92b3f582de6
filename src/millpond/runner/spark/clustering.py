"""Lets Delta cluster tables on a Spark server by the columns that their definitions name."""

from __future__ import annotations

from millpond.graph import ResolvedDataset
from millpond.runner.spark.places import Places
from millpond.runner.spark.sql import quoted
from millpond.runner.spark.tables import SparkTable, TableDetail

# Delta's name for what a table has from when it was first clustered.
_FEATURE = "clustering"


def may_cluster(table: SparkTable, current: TableDetail | None, places: Places) -> bool:
    """Whether Delta may cluster a table, one that is there or a new one.

    The embedded engine can't write a table that Delta clusters. So where both use the same folders,
    a table that it can write stays as it is.
    """
    is_open_to_both = places.are_shared and table.location is not None
    return current is None or not is_open_to_both or _FEATURE in current.features


def cluster(
    dataset: ResolvedDataset, table: SparkTable, current: TableDetail, places: Places
) -> None:
    """Bring the clustering of a table that is there to the definition."""
    if not may_cluster(table, current, places):
        return
    wanted = dataset.dataset.cluster_by
    if [name.lower() for name in wanted] != [name.lower() for name in current.cluster_columns]:
        columns = f"({', '.join(map(quoted, wanted))})" if wanted else "NONE"
        table.alter(f"CLUSTER BY {columns}")
