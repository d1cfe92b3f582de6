"""Datasets and flows put in order: names resolved, dependencies found, everything checked."""

from millpond.graph.catalog import Catalog, PipelineSource, Source, StoredSource
from millpond.graph.external import ExternalSource, ExternalSources, Follower
from millpond.graph.resolved import (
    Graph,
    ResolvedDataset,
    ResolvedFlow,
    StreamRead,
    stream_key,
)
from millpond.graph.resolver import resolve

__all__ = [
    "Catalog",
    "ExternalSource",
    "ExternalSources",
    "Follower",
    "Graph",
    "PipelineSource",
    "ResolvedDataset",
    "ResolvedFlow",
    "Source",
    "StoredSource",
    "StreamRead",
    "resolve",
    "stream_key",
]
