"""The streams of files of an update, and what becomes of files that all of them have read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from millpond.errors import MillpondError
from millpond.files.locations import behind_links
from millpond.graph import Graph
from millpond.graph.files import FileRead
from millpond.streaming import StreamSource
from millpond.streaming.file_source import FileSource


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
        cleaning = [
            (flow, source)
            for flow, sources in self._of.items()
            for source in sources
            if source.cleans
        ]
        if not cleaning:
            return
        try:
            needed = list(self._needed(graph))
        except MillpondError as error:
            # Who can't tell what is there can't tell what nobody needs.
            yield from ((flow, error) for flow, _ in cleaning)
            return
        for flow, source in cleaning:
            others = (uris for reader, uris in needed if reader is not source)
            try:
                source.clean(set[str]().union(*others))
            except MillpondError as error:
                yield flow, error

    def _needed(self, graph: Graph) -> Iterator[tuple[FileSource | None, set[str]]]:
        """Each stream of files of the pipeline, with what it has yet to read, behind all links."""
        for dataset in graph.tables():
            for flow in dataset.flows:
                if flow.name in self._of:
                    for source in self._of[flow.name]:
                        yield source, set(map(behind_links, source.unread()))
                    continue
                for stream in flow.streams:
                    if isinstance(stream.external, FileRead):
                        yield None, set(map(behind_links, stream.external.uris()))
