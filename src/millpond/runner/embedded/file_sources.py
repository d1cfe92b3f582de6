"""The streams of files of an update, and what becomes of files that all of them have read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

from millpond.errors import MillpondError
from millpond.files.locations import FileIdentity
from millpond.graph import Graph
from millpond.graph.files import FileRead
from millpond.streaming import StreamSource
from millpond.streaming.file_source import FileSource

# The files that a stream has yet to read.
Unread = Callable[[], set[FileIdentity]]


class FileSources:
    """Those of the flows that ran, from several threads."""

    def __init__(self) -> None:
        self._of: dict[str, list[FileSource]] = {}

    def add(self, flow: str, sources: Iterable[StreamSource]) -> None:
        self._of[flow] = [source for source in sources if isinstance(source, FileSource)]

    def clean(self, graph: Graph) -> Iterator[tuple[str, MillpondError]]:
        """Remove or move files that were read, where a stream says so and no other needs them.

        Yields:
            Flows whose files can't be, and why.
        """
        readers = list(self._readers(graph))
        for flow, sources in self._of.items():
            for source in sources:
                if source.cleans:
                    others = [unread for reader, unread in readers if reader is not source]
                    try:
                        # Where one can't tell what it has yet to read, nothing is removed.
                        source.clean({file for unread in others for file in unread()})
                    except MillpondError as error:
                        yield flow, error

    def _readers(self, graph: Graph) -> Iterator[tuple[FileSource | None, Unread]]:
        """The streams of files of the pipeline, and what tells what each has yet to read."""
        for dataset in graph.tables():
            for flow in dataset.flows:
                if flow.name in self._of:
                    for source in self._of[flow.name]:
                        yield source, cache(partial(_identities, source.unread))
                    continue
                for stream in flow.streams:
                    if isinstance(stream.external, FileRead):
                        yield None, cache(partial(_identities, stream.external.uris))


def _identities(uris: Callable[[], set[str]]) -> set[FileIdentity]:
    return set(map(FileIdentity.of, uris()))
