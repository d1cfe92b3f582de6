"""The checkpoint of one flow: what each micro-batch reads, written before the batch runs.

`<folder>/offsets/<N>` holds batch N, one JSON object. Whether a batch was applied is not written
here: the table says that, in the commit that holds the batch's rows. `<folder>/streams.json` tells
which read of the flow's query each source is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millpond.errors.streaming import CheckpointConflictError, CheckpointUnreadableError
from millpond.storage import Store
from millpond.streaming.source import Offset
from millpond.streaming.stream_names import StreamTraits

FORMAT = 1
STREAMS_FORMAT = 1
BATCHES_KEPT = 100


@dataclass(frozen=True)
class SourceRange:
    """What one batch reads of one source: after `start`, up to and including `end`."""

    identity: str
    start: Offset
    end: Offset
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PlannedBatch:
    """A batch as written ahead. A flow without streams plans batch 0 with no sources."""

    number: int
    sources: Mapping[str, SourceRange] = field(default_factory=dict)


class Checkpoint:
    """The planned batches of one flow, numbered 0, 1, 2, ..."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder = folder
        self._offsets = folder / "offsets"
        self._streams = folder / "streams.json"
        self._store = store

    def source_folder(self, source: str) -> Path:
        """A folder for what a source keeps beside its offsets; it may not exist yet."""
        return self.folder / "sources" / hashlib.sha256(source.encode()).hexdigest()[:32]

    def streams(self) -> dict[str, StreamTraits | None]:
        """The sources of the newest batch, with what was noted of them, in the order noted.

        Raises:
            CheckpointUnreadableError: The batch, or the note, can't be read.
        """
        numbers = self.numbers()
        if not numbers:
            return {}
        noted, sources = self._noted(), self.read(numbers[-1]).sources
        names = dict.fromkeys([*(name for name in noted if name in sources), *sources])
        return {name: noted.get(name) for name in names}

    def note_streams(
        self, streams: Mapping[str, StreamTraits], *, known: Mapping[str, StreamTraits | None]
    ) -> None:
        """Note what the sources are from now on; durable on return.

        Args:
            streams: The sources that there are, in the order of their reads in the query.
            known: What `streams()` gave; what was noted of others is kept.
        """
        noted = {name: traits for name, traits in known.items() if traits is not None}
        content = {**streams, **{name: noted[name] for name in noted if name not in streams}}
        if list(content.items()) != list(noted.items()):
            value = {"format": STREAMS_FORMAT, "streams": _serialize_streams(content)}
            self._store.put(self._streams, (json.dumps(value) + "\n").encode())

    def _noted(self) -> dict[str, StreamTraits]:
        try:
            return _parse_streams(self._store.read(self._streams), path=self._streams)
        except FileNotFoundError:
            return {}

    def numbers(self) -> list[int]:
        """The numbers of the batches that are still on record, in order."""
        names = self._store.list(self._offsets)
        return sorted(int(name) for name in names if name.isascii() and name.isdigit())

    def read(self, number: int) -> PlannedBatch:
        """Read one planned batch.

        Raises:
            CheckpointUnreadableError: The file is missing, torn, of an unknown format, or holds
                something else than this batch.
        """
        path = self._path(number)
        try:
            data = self._store.read(path)
        except FileNotFoundError as error:
            raise CheckpointUnreadableError.from_file(path, reason="it is missing") from error
        return _parse(data, path=path, number=number)

    def plan(self, batch: PlannedBatch) -> None:
        """Write a batch ahead; durable on return.

        Raises:
            CheckpointConflictError: The batch is planned already.
        """
        path = self._path(batch.number)
        try:
            self._store.put_if_absent(path, _serialize(batch))
        except FileExistsError as error:
            raise CheckpointConflictError.from_batch(path) from error

    def make_durable(self) -> None:
        """Make durable what a process planned that died before it was."""
        self._store.sync_names(self._offsets)

    def prune(self, *, committed: int, keep: int = BATCHES_KEPT) -> None:
        """Remove old batches, all but the `keep` newest, once `committed` is in the table.

        Also removes what killed writes left. Never removes a batch that may have to run again.
        """
        for name in self._store.list(self._offsets):
            torn = name.startswith(".") and name.endswith(".tmp")
            old = name.isascii() and name.isdigit() and int(name) <= committed - keep
            if torn or old:
                self._store.remove(self._offsets / name)

    def _path(self, number: int) -> Path:
        return self._offsets / str(number)


def _serialize(batch: PlannedBatch) -> bytes:
    sources = {
        name: {
            "identity": source.identity,
            "start": source.start,
            "end": source.end,
            "columns": source.columns,
        }
        for name, source in batch.sources.items()
    }
    content = {"format": FORMAT, "batch": batch.number, "sources": sources}
    return (json.dumps(content, separators=(",", ":")) + "\n").encode()


def _serialize_streams(streams: Mapping[str, StreamTraits]) -> dict[str, Any]:
    return {
        name: {
            "place": traits.place,
            "digests": traits.digests,
            "files": traits.is_files,
            "reads": traits.reads,
        }
        for name, traits in streams.items()
    }


def _parse_streams(data: bytes, *, path: Path) -> dict[str, StreamTraits]:
    try:
        content = json.loads(data)
        found = content["format"]
        if isinstance(found, int) and found != STREAMS_FORMAT:
            raise CheckpointUnreadableError.from_format(path, found=found, known=STREAMS_FORMAT)
        return {
            name: StreamTraits(
                str(traits["place"]),
                tuple(map(str, traits["digests"])),
                bool(traits["files"]),
                int(traits["reads"]),
            )
            for name, traits in content["streams"].items()
        }
    except CheckpointUnreadableError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointUnreadableError.from_streams(path, reason=str(error)) from error


def _parse(data: bytes, *, path: Path, number: int) -> PlannedBatch:
    try:
        content = json.loads(data)
    except ValueError as error:
        reason = "it is empty" if not data.strip() else f"it is not whole JSON ({error})"
        raise CheckpointUnreadableError.from_file(path, reason=reason) from error
    found = content.get("format") if isinstance(content, dict) else None
    if not isinstance(found, int):
        raise CheckpointUnreadableError.from_file(path, reason="it is no checkpoint file")
    if found != FORMAT:
        raise CheckpointUnreadableError.from_format(path, found=found, known=FORMAT)
    if content.get("batch") != number:
        reason = f"it holds batch {content.get('batch')!r} under the name of batch {number}"
        raise CheckpointUnreadableError.from_file(path, reason=reason)
    sources = content.get("sources")
    if not isinstance(sources, dict):
        raise CheckpointUnreadableError.from_file(path, reason="it names no sources")
    return PlannedBatch(number, dict(_parse_sources(sources, path=path)))


def _parse_sources(sources: dict[str, Any], *, path: Path) -> Iterable[tuple[str, SourceRange]]:
    for name, source in sources.items():
        try:
            identity, start, end = source["identity"], source["start"], source["end"]
            columns = source["columns"]
            whole = isinstance(identity, str) and all(
                isinstance(part, dict) for part in (start, end, columns)
            )
        except (KeyError, TypeError):
            whole = False
        if not whole:
            reason = f"the range of the source {name} is not whole"
            raise CheckpointUnreadableError.from_file(path, reason=reason)
        yield name, SourceRange(identity=identity, start=start, end=end, columns=columns)
