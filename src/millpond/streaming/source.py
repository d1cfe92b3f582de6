"""What micro-batches ask of a source of a stream, whatever it reads: Delta tables, files, topics.

A source says how far it reaches, cuts what is new into bounded ranges, and hands a range to the
engine. It keeps no state on disk: the checkpoint does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from millpond.engine.protocol import Input

# A place in a stream, as JSON. Only its source looks inside; equal places are equal values.
Offset = Mapping[str, Any]


@dataclass(frozen=True)
class DataSize:
    """How much data lies between two offsets, by the source's own count."""

    files: int = 0
    size_bytes: int = 0

    def __add__(self, other: DataSize) -> DataSize:
        return DataSize(self.files + other.files, self.size_bytes + other.size_bytes)

    def __sub__(self, other: DataSize) -> DataSize:
        """What is left, never below nothing: sizes are counted at different moments."""
        return DataSize(
            max(self.files - other.files, 0), max(self.size_bytes - other.size_bytes, 0)
        )


class StreamSource(Protocol):
    """A replayable source: the same range of offsets gives the same rows whenever it is read."""

    @property
    def identity(self) -> str:
        """What stays the same as long as offsets of this source keep their meaning."""
        ...

    @property
    def starts_midway(self) -> bool:
        """Whether the stream begins at a chosen place rather than with all there is.

        Such a place is recorded in the first update, even if there is nothing to read yet.
        """
        ...

    def columns(self) -> Mapping[str, Any]:
        """The columns that batches are read with now, as JSON, to compare in later updates."""
        ...

    def check_columns(self, earlier: Mapping[str, Any]) -> None:
        """Raise a `MillpondError` unless rows read with `earlier` columns and now go together."""
        ...

    def latest_offset(self) -> Offset:
        """Capture how far the source reaches now."""
        ...

    def first_offset(self, end: Offset) -> Offset:
        """Where a new stream begins that will read up to `end`."""
        ...

    def next_offset(self, start: Offset, end: Offset) -> Offset | None:
        """The end of the next bounded batch after `start`, or `None` where nothing is new."""
        ...

    def size(self, start: Offset, end: Offset) -> DataSize:
        """How much data lies between two offsets, whether or not a stream may read it."""
        ...

    def input(self, start: Offset, end: Offset, *, folder: Path) -> Input:
        """The rows after `start`, up to and including `end`.

        Files that had to be written for it are below `folder`, which may not exist yet.
        """
        ...

    def finish(self) -> None:
        """Called when all batches of an update are committed."""
        ...
