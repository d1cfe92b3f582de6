"""Datasets and flows put in order: names resolved, dependencies found, everything checked."""

from millpond.graph.catalog import Catalog, PipelineSource, Source, StoredSource
from millpond.graph.external import (
    ExternalSource,
    ExternalSources,
    Follower,
    LocalSource,
    LocalSources,
    ReadKey,
)
from millpond.graph.resolved import (
    Graph,
    ResolvedDataset,
    ResolvedFlow,
    StreamRead,
    stream_key,
)
from millpond.graph.resolver import resolve
from millpond.graph.stored_tables import (
    EVENT_LOG_NAME,
    FolderTables,
    StoredTable,
    StoredTables,
    delta_table,
)

__all__ = [
    "EVENT_LOG_NAME",
    "Catalog",
    "ExternalSource",
    "ExternalSources",
    "FolderTables",
    "Follower",
    "Graph",
    "LocalSource",
    "LocalSources",
    "PipelineSource",
    "ReadKey",
    "ResolvedDataset",
    "ResolvedFlow",
    "Source",
    "StoredSource",
    "StoredTable",
    "StoredTables",
    "StreamRead",
    "delta_table",
    "resolve",
    "stream_key",
]
