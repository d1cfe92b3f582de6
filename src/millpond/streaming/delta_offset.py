"""A place in the stream of a Delta table, as Delta's own streaming source counts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from millpond.errors.streaming import CheckpointUnreadableError
from millpond.streaming.source import Offset

NOTHING_READ = -1


@dataclass(frozen=True)
class DeltaOffset:
    """Everything up to and including file `index` of `version` has been read.

    A stream first reads all files of one version, its initial snapshot, then the files that later
    versions add. Once the last file of a version is read, the place is the start of the next one.

    Attributes:
        version: The version being read.
        index: The last file read of those that a stream reads of the version, `NOTHING_READ` for
            none yet.
        initial_snapshot: Whether the files are all those of the table at `version`, rather than
            those that `version` added.
    """

    version: int
    index: int = NOTHING_READ
    initial_snapshot: bool = False

    @property
    def position(self) -> tuple[int, int]:
        return (self.version, self.index)

    @property
    def last_version(self) -> int:
        """The newest version of which something has been read, if this is where reading ends."""
        return self.version - 1 if self.index == NOTHING_READ else self.version

    @classmethod
    def from_json(cls, value: Offset) -> Self:
        """Read an offset as `to_json` gives it.

        Raises:
            CheckpointUnreadableError: It is something else.
        """
        match value:
            case {"version": int(version), "index": int(index), "initial_snapshot": bool(initial)}:
                return cls(version, index, initial_snapshot=initial)
        raise CheckpointUnreadableError.from_offset(value)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "index": self.index,
            "initial_snapshot": self.initial_snapshot,
        }
