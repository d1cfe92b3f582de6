"""The loop of one triggered update of a flow: plan a batch, write it ahead, apply it.

Exactly once rests on two facts on disk: the checkpoint says what batch N reads, before it runs,
and the target's commit says that batch N is in. A batch that is planned and not committed is run
again with exactly its recorded range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from millpond.engine.protocol import Input
from millpond.errors.streaming import (
    CheckpointAheadOfTableError,
    CheckpointBehindTableError,
    CheckpointSourceChangedError,
)
from millpond.profiling import phase
from millpond.streaming.checkpoint import Checkpoint, PlannedBatch, SourceRange
from millpond.streaming.file_source import FileSource, FileVersions
from millpond.streaming.source import DataSize, Offset, StreamSource

R = TypeVar("R")


@dataclass(frozen=True)
class MicroBatch:
    """One batch to apply.

    Attributes:
        number: The batch id, which the target's commit must carry.
        sizes: For each source, what the batch reads of it.
        backlog: For each source, what this update will still read after the batch.
    """

    number: int
    sizes: Mapping[str, DataSize] = field(default_factory=dict)
    backlog: Mapping[str, DataSize] = field(default_factory=dict)
    _planned: PlannedBatch = field(default_factory=lambda: PlannedBatch(0), repr=False)
    _sources: Mapping[str, StreamSource] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> DataSize:
        return sum(self.sizes.values(), DataSize())

    @property
    def backlog_size(self) -> DataSize:
        return sum(self.backlog.values(), DataSize())

    @property
    def files_read(self) -> int | None:
        """How many files the batch read, once `input` gave their rows; `None` if it reads none."""
        sources = self._sources.values()
        counts = [source.files_read for source in sources if isinstance(source, FileSource)]
        return sum(counts) if counts else None

    def input(self, source: str, *, folder: Path) -> Input:
        """What the batch reads of a source; files written for it are below `folder`."""
        position = sorted(self._sources).index(source)
        found = self._planned.sources[source]
        return self._sources[source].input(
            found.start, found.end, folder=folder / f"source-{position}"
        )

    def file_versions(self, source: str) -> FileVersions:
        """Which versions of files the batch read, once `input` gave its rows."""
        found, files = self._planned.sources[source], self._sources[source]
        assert isinstance(files, FileSource)
        return files.versions(found.start, found.end)


def run_batches(
    *,
    checkpoint: Checkpoint,
    sources: Mapping[str, StreamSource],
    committed: Callable[[], int | None],
    apply: Callable[[MicroBatch], R],
    unfinished: Callable[[int], bool] = lambda _number: False,
) -> Iterator[R]:
    """Read everything that the sources hold now, batch by batch, each exactly once.

    Args:
        checkpoint: The flow's checkpoint.
        sources: The flow's streams, by a name that stays the same from update to update. One that
            comes under another name goes on where it was, as long as its identity is the same.
        committed: Asks the target for the newest batch that it carries, `None` for none.
        apply: Commits a batch together with its number, or raises and leaves the target as it
            was. A batch may hold no rows; it must be committed all the same.
        unfinished: Whether a committed batch leaves rows that another batch would let out even if
            nothing new is there to read, because its watermark is higher.

    Yields:
        What `apply` returned for each batch.

    Raises:
        CheckpointBehindTableError: The target carries a batch that was never planned.
        CheckpointAheadOfTableError: The target lacks a batch that is no longer on record.
        CheckpointSourceChangedError: A source is gone, or is another one than before.
    """
    with phase("find what is new"):
        pending, last = _resume(checkpoint, committed())
        ends = {name: source.latest_offset() for name, source in sources.items()}
    pending = [_under_names_of(sources, planned) for planned in pending]
    if last is not None:
        last = _under_names_of(sources, last)
        _check_sources(last, sources)
    backlog = _backlog(pending[0] if pending else None, last, sources, ends)
    while True:
        if pending:
            planned = _with_all_sources(pending.pop(0), sources, ends)
        else:
            with phase("plan batches"):
                following = _next_batch(last, sources, ends)
            if following is None and last is not None and unfinished(last.number):
                following = _batch_of_nothing(last, sources, ends)
            if following is None:
                return
            with phase("write checkpoint"):
                checkpoint.plan(following)
            last = planned = following
        with phase("plan batches"):
            sizes = {
                name: source.size(planned.sources[name].start, planned.sources[name].end)
                for name, source in sources.items()
            }
        backlog = {name: backlog[name] - sizes[name] for name in sources}
        result = apply(MicroBatch(planned.number, sizes, backlog, planned, sources))
        with phase("write checkpoint"):
            checkpoint.prune(committed=planned.number)
        yield result


def run_once(
    *,
    checkpoint: Checkpoint,
    committed: Callable[[], int | None],
    apply: Callable[[MicroBatch], R],
) -> Iterator[R]:
    """Apply the only batch of a flow without streams, unless the target carries it already."""
    if committed() is not None:
        return
    if checkpoint.numbers():
        checkpoint.make_durable()
    else:
        checkpoint.plan(PlannedBatch(0))
    yield apply(MicroBatch(0))


def _resume(
    checkpoint: Checkpoint, committed: int | None
) -> tuple[list[PlannedBatch], PlannedBatch | None]:
    """The batches that the target lacks, oldest first, and the newest that was planned.

    After a crash the target lacks one batch at most. It lacks more where an older copy of it was
    restored: those batches run again in their order, as long as all are on record.
    """
    numbers = checkpoint.numbers()
    newest = numbers[-1] if numbers else None
    if committed is not None and (newest is None or committed > newest):
        raise CheckpointBehindTableError.from_batches(
            checkpoint.folder, planned=newest, committed=committed
        )
    if newest is None:
        return [], None
    first = 0 if committed is None else committed + 1
    gone = sorted(set(range(first, newest)) - set(numbers))
    if gone:
        raise CheckpointAheadOfTableError.from_batches(
            checkpoint.folder, planned=newest, committed=committed, gone=gone[0]
        )
    pending = [checkpoint.read(number) for number in range(first, newest + 1)]
    if pending:
        # The table must not hold a batch whose plan can still be lost.
        checkpoint.make_durable()
    return pending, pending[-1] if pending else checkpoint.read(newest)


def _under_names_of(sources: Mapping[str, StreamSource], planned: PlannedBatch) -> PlannedBatch:
    """The batch with today's names of its sources: a table read by its path may have been moved."""
    known = planned.sources
    ranges = dict(known)
    for identity in {source.identity for source in known.values()}:
        gone = sorted(set(_named(known, identity)) - set(sources))
        new = sorted(set(_named(sources, identity)) - set(known))
        # Else it can't be told which is which.
        if len(gone) == len(new):
            for before, now in zip(gone, new, strict=True):
                ranges[now] = ranges.pop(before)
    return PlannedBatch(planned.number, ranges)


def _named(sources: Mapping[str, SourceRange | StreamSource], identity: str) -> list[str]:
    return [name for name, source in sources.items() if source.identity == identity]


def _check_sources(last: PlannedBatch, sources: Mapping[str, StreamSource]) -> None:
    removed = set(last.sources) - set(sources)
    if removed:
        raise CheckpointSourceChangedError.from_removed(removed, now=sources)
    for name, before in last.sources.items():
        now = sources[name].identity
        if now != before.identity:
            raise CheckpointSourceChangedError.from_identity(name, before=before.identity, now=now)
        sources[name].check_columns(before.columns)


def _start(last: PlannedBatch | None, name: str, source: StreamSource, end: Offset) -> Offset:
    """Where the next batch starts to read a source: a source new to the flow, at its beginning."""
    if last is not None and name in last.sources:
        return last.sources[name].end
    return source.first_offset(end)


def _next_batch(
    last: PlannedBatch | None, sources: Mapping[str, StreamSource], ends: Mapping[str, Offset]
) -> PlannedBatch | None:
    ranges: dict[str, SourceRange] = {}
    anything = False
    for name, source in sources.items():
        start = _start(last, name, source, ends[name])
        following = source.next_offset(start, ends[name])
        known = last is not None and name in last.sources
        anything |= following is not None or (source.starts_midway and not known)
        ranges[name] = SourceRange(
            identity=source.identity,
            start=start,
            end=start if following is None else following,
            columns=source.columns(),
        )
    return PlannedBatch(0 if last is None else last.number + 1, ranges) if anything else None


def _batch_of_nothing(
    last: PlannedBatch, sources: Mapping[str, StreamSource], ends: Mapping[str, Offset]
) -> PlannedBatch:
    ranges: dict[str, SourceRange] = {}
    for name, source in sources.items():
        start = _start(last, name, source, ends[name])
        ranges[name] = SourceRange(source.identity, start, start, source.columns())
    return PlannedBatch(last.number + 1, ranges)


def _with_all_sources(
    planned: PlannedBatch, sources: Mapping[str, StreamSource], ends: Mapping[str, Offset]
) -> PlannedBatch:
    """A batch planned before a source was added reads nothing of that source."""
    ranges = dict(planned.sources)
    for name, source in sources.items():
        if name not in ranges:
            start = source.first_offset(ends[name])
            ranges[name] = SourceRange(identity=source.identity, start=start, end=start)
    return PlannedBatch(planned.number, ranges)


def _backlog(
    first: PlannedBatch | None,
    last: PlannedBatch | None,
    sources: Mapping[str, StreamSource],
    ends: Mapping[str, Offset],
) -> dict[str, DataSize]:
    """All that the update will read of each source, from the first batch that it runs."""
    backlog: dict[str, DataSize] = {}
    for name, source in sources.items():
        if first is not None and name in first.sources:
            start = first.sources[name].start
        else:
            start = _start(last, name, source, ends[name])
        backlog[name] = source.size(start, ends[name])
    return backlog
