"""The folders of a pipeline's storage."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from millpond.names import MAX_PART_BYTES, TableName, path_segment

# The folder is its owner's alone where millpond makes it; one that is there keeps its mode, and
# what is made below has that of the process.
ROOT_MODE = 0o700


@dataclass(frozen=True)
class Layout:
    """Paths below a pipeline's storage folder.

    ```
    <root>/tables/<catalog>/<schema>/<table>/           Delta tables
    <root>/checkpoints/<flow>/<checkpoint id>/offsets/  one file a planned batch
    <root>/checkpoints/<flow>/<checkpoint id>/state/    what operators keep, by batch
    <root>/schemas/<flow>/                              columns inferred of files
    <root>/maintenance/<catalog>/<schema>/<table>/      when old files were removed
    <root>/events/                                      the event log, a Delta table
    <root>/samples/<schema>/<table>/                    generated sample tables
    <root>/staging/<update id>/                         batches in flight, removed afterwards
    <root>/update.lock                                  held while an update runs
    ```
    """

    root: Path

    def table(self, name: TableName) -> Path:
        return self.root.joinpath("tables", *map(path_segment, name.parts))

    def checkpoint(self, flow: str, checkpoint_id: str) -> Path:
        return self.root / "checkpoints" / _flow_folder(flow) / path_segment(checkpoint_id)

    def state(self, flow: str, checkpoint_id: str) -> Path:
        return self.checkpoint(flow, checkpoint_id) / "state"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    def schemas(self, flow: str) -> Path:
        return self.root / "schemas" / _flow_folder(flow)

    def maintenance(self, name: TableName) -> Path:
        return self.root.joinpath("maintenance", *map(path_segment, name.parts))

    @property
    def events(self) -> Path:
        return self.root / "events"

    @property
    def samples(self) -> Path:
        return self.root / "samples"

    @property
    def staging(self) -> Path:
        return self.root / "staging"

    @property
    def lock(self) -> Path:
        return self.root / "update.lock"


def _flow_folder(flow: str) -> str:
    """The folder of a flow, whose name may hold three parts: each fits into a path, not all."""
    segment = path_segment(flow)
    if len(segment) <= MAX_PART_BYTES:
        return segment
    digest = hashlib.sha256(segment.encode()).hexdigest()
    return f"{segment[: MAX_PART_BYTES - len(digest) - 1]}-{digest}"
