"""Lets a flow go on where the other engine left it: the embedded one, or Spark, and the other way.

A flow's checkpoint belongs to the engine that wrote it. What both can say is where a stream over
one Delta table stands between two of its versions, so that is what carries over, to a new
checkpoint. State of operators does not, nor do lists of files that were read.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millpond.errors.takeover import CheckpointOfOtherEngineError
from millpond.graph import ResolvedFlow, StreamRead
from millpond.runner.table_properties import SPARK_PREFIX, app_id
from millpond.storage import Layout, Store
from millpond.streaming import Checkpoint
from millpond.streaming.checkpoint import PlannedBatch, SourceRange
from millpond.streaming.delta_offset import NOTHING_READ, DeltaOffset

# The first line of Spark's files.
_SPARK_FORMAT = "v1"


@dataclass(frozen=True)
class Takeover:
    """One flow that the other engine ran last.

    Attributes:
        checkpoint: The id of the checkpoint that the other engine wrote.
        app_versions: The newest batch of each writer that the target holds.
        layout: Where both engines keep their checkpoints.
    """

    flow: ResolvedFlow
    checkpoint: str
    app_versions: Mapping[str, int]
    layout: Layout
    store: Store

    def to_spark(self) -> str:
        """Write a checkpoint for Spark, and return its id.

        Raises:
            CheckpointOfOtherEngineError: The flow can't go on there.
        """
        new = f"{SPARK_PREFIX}{uuid.uuid4().hex}"
        committed = self.app_versions.get(app_id(self.flow.name, self.checkpoint))
        folder = self.layout.checkpoint(self.flow.name, self.checkpoint)
        planned = Checkpoint(folder, self.store)
        numbers = planned.numbers()
        if committed is None and not numbers:
            return new
        self._only_stream()
        batch = planned.read(numbers[0] if committed is None else committed)
        if len(batch.sources) != 1:
            raise self._refused("it has read several streams")
        (found,) = batch.sources.values()
        # What is planned and not in the table is read by Spark.
        offset = DeltaOffset.from_json(found.start if committed is None else found.end)
        self._check_between_versions(offset.index, is_first_read=offset.initial_snapshot)
        if offset.initial_snapshot:
            return new
        source = {
            "sourceVersion": 1,
            "reservoirId": found.identity,
            "reservoirVersion": offset.version,
            "index": NOTHING_READ,
            "isStartingVersion": False,
        }
        target = self.layout.checkpoint(self.flow.name, new)
        times = {"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": {}}
        self.store.put(target / "metadata", json.dumps({"id": str(uuid.uuid4())}).encode())
        self.store.put(target / "offsets" / "0", _spark_file(times, source))
        self.store.put(target / "commits" / "0", _spark_file({"nextBatchWatermarkMs": 0}))
        return new

    def to_embedded(self) -> str:
        """Write a checkpoint for the embedded engine, and return its id.

        Raises:
            CheckpointOfOtherEngineError: The flow can't go on there.
        """
        new = uuid.uuid4().hex
        folder = self.layout.checkpoint(self.flow.name, self.checkpoint)
        applied = self._applied_by_spark()
        if applied is None:
            return new
        stream = self._only_stream()
        lines = self.store.read(folder / "offsets" / str(applied)).decode().splitlines()
        if len(lines) != 3:
            raise self._refused("it reads several streams")
        found: Mapping[str, Any] = json.loads(lines[2])
        if "reservoirId" not in found:
            raise self._refused("it reads what is no table")
        # A snapshot that is read whole ends with the version behind it, so this one is not.
        if found["isStartingVersion"]:
            raise self._cut_short(is_first_read=True)
        self._check_between_versions(found["index"])
        at = DeltaOffset(found["reservoirVersion"]).to_json()
        nothing = SourceRange(found["reservoirId"], start=at, end=at)
        target = Checkpoint(self.layout.checkpoint(self.flow.name, new), self.store)
        target.plan(PlannedBatch(0, {stream.source: nothing}))
        return new

    def spark_writers(self) -> list[str]:
        """Under these ids Spark's commits carry the numbers of the flow's batches."""
        return spark_writers(self.flow.name, self.checkpoint, self.layout, self.store)

    def _applied_by_spark(self) -> int | None:
        """The newest batch in the table. One may be in that Spark has not noted as committed."""
        folder = self.layout.checkpoint(self.flow.name, self.checkpoint)
        noted = [int(name) for name in self.store.list(folder / "commits") if name.isdecimal()]
        writers = self.spark_writers()
        known = [self.app_versions[writer] for writer in writers if writer in self.app_versions]
        return max([*noted, *known], default=None)

    def _only_stream(self) -> StreamRead:
        """The flow's stream, which must be one over a table, without state above it."""
        if self.flow.flow.once:
            raise self._refused("it runs once only")
        if len(self.flow.streams) != 1:
            raise self._refused("it reads several streams")
        if self.flow.streams[0].table is None:
            raise self._refused("it reads what is no table")
        if self.store.list(self.layout.state(self.flow.name, self.checkpoint)):
            raise self._refused("its query keeps state")
        return self.flow.streams[0]

    def _check_between_versions(self, index: int, *, is_first_read: bool = False) -> None:
        if index != NOTHING_READ:
            raise self._cut_short(is_first_read=is_first_read)

    def _cut_short(self, *, is_first_read: bool) -> CheckpointOfOtherEngineError:
        amid = "in the middle of a version of its source"
        reason = "before it had read its source once" if is_first_read else amid
        return self._refused(f"its last update stopped {reason}", is_cut_short=True)

    def _refused(self, reason: str, *, is_cut_short: bool = False) -> CheckpointOfOtherEngineError:
        return CheckpointOfOtherEngineError.from_flow(
            self.flow.name,
            by_spark=self.checkpoint.startswith(SPARK_PREFIX),
            reason=reason,
            is_cut_short=is_cut_short,
            where=self.flow.flow.location,
        )


def spark_writers(flow: str, checkpoint: str, layout: Layout, store: Store) -> list[str]:
    """Under these ids Spark's commits carry the numbers of a flow's batches."""
    metadata = layout.checkpoint(flow, checkpoint) / "metadata"
    own = app_id(flow, checkpoint)
    if not store.exists(metadata):
        return [own]
    return [own, json.loads(store.read(metadata))["id"]]


def _spark_file(*lines: Mapping[str, Any]) -> bytes:
    return "\n".join([_SPARK_FORMAT, *map(json.dumps, lines)]).encode()
