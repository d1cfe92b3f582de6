"""The folders of a pipeline's storage."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from millpond.names import TableName, path_segment


@dataclass(frozen=True)
class Layout:
    """Paths below a pipeline's storage folder.

    ```
    <root>/tables/<catalog>/<schema>/<table>/           Delta tables
    <root>/checkpoints/<flow>/<checkpoint id>/offsets/  one file a planned batch
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
        return self.root / "checkpoints" / path_segment(flow) / path_segment(checkpoint_id)

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

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
