"""The event record, field for field as Lakeflow's event log has it, as plain values.

How an event is worded is in `wording`, how it is kept in `log`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any


class FlowStatus(StrEnum):
    QUEUED = "QUEUED"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    STOPPED = "STOPPED"
    IDLE = "IDLE"
    EXCLUDED = "EXCLUDED"

    @property
    def is_final(self) -> bool:
        """Whether the flow does nothing more in this update."""
        return self not in {FlowStatus.QUEUED, FlowStatus.STARTING, FlowStatus.RUNNING}


class UpdateState(StrEnum):
    QUEUED = "QUEUED"
    CREATED = "CREATED"
    WAITING_FOR_RESOURCES = "WAITING_FOR_RESOURCES"
    INITIALIZING = "INITIALIZING"
    RESETTING = "RESETTING"
    SETTING_UP_TABLES = "SETTING_UP_TABLES"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"

    @property
    def is_final(self) -> bool:
        return self in {UpdateState.COMPLETED, UpdateState.FAILED, UpdateState.CANCELED}


class Level(StrEnum):
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"
    METRICS = "METRICS"


class EventType(StrEnum):
    CREATE_UPDATE = "create_update"
    USER_ACTION = "user_action"
    UPDATE_PROGRESS = "update_progress"
    FLOW_PROGRESS = "flow_progress"
    FLOW_DEFINITION = "flow_definition"
    DATASET_DEFINITION = "dataset_definition"
    MAINTENANCE_PROGRESS = "maintenance_progress"


@dataclass(frozen=True, kw_only=True)
class FlowMetrics:
    """Counts of one micro-batch, or of one computation of a materialized view.

    Attributes:
        rows_read: Rows that the flow's query gave, before expectations.
        num_output_rows: Rows added to the table by a flow that does not replace by key.
        num_upserted_rows: Rows added by one that does.
        num_deleted_rows: Rows removed from the table because newer ones replaced them; of a
            materialized view that changed, all that it held before.
        num_late_rows: Rows ignored because the table or the batch holds a higher sequence for
            their key.
        num_dropped_rows: Rows removed by expectations.
        num_output_bytes: Size of the data files written.
        files_read: Files that were read of sources that are files.
        backlog_files: Source files not yet read.
        backlog_bytes: Their size.
    """

    rows_read: int | None = None
    num_output_rows: int | None = None
    num_upserted_rows: int | None = None
    num_deleted_rows: int | None = None
    num_late_rows: int | None = None
    num_dropped_rows: int | None = None
    num_output_bytes: int | None = None
    files_read: int | None = None
    backlog_files: int | None = None
    backlog_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class ExpectationMetrics:
    """How many rows of one micro-batch met an expectation, whatever its action."""

    name: str
    dataset: str
    passed_records: int
    failed_records: int


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where an event comes from; a field is `None` where it does not apply."""

    pipeline_id: str
    pipeline_name: str
    update_id: str
    dataset_name: str | None = None
    flow_id: str | None = None
    flow_name: str | None = None
    batch_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class ErrorRecord:
    """An error as the log keeps it.

    Attributes:
        fatal: Whether it ended the update rather than one flow.
        exceptions: The error and its causes, outermost first; each has `class_name`, `error_class`
            (millpond's stable name, or `None`), `message` and `stack`, a list of frames.
    """

    fatal: bool
    exceptions: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Event:
    """One record of the event log.

    Attributes:
        sequence_number: Place of the event in its update, from 1.
        details: An object whose one key is the event type.
    """

    id: str
    sequence_number: int
    origin: Origin
    timestamp: datetime
    message: str
    level: Level
    maturity_level: str
    event_type: EventType
    details: Mapping[str, Any] = field(hash=False)
    error: ErrorRecord | None = None

    @property
    def detail(self) -> Mapping[str, Any]:
        """What stands in `details` below the event type."""
        return self.details.get(self.event_type, {})

    def to_record(self) -> dict[str, Any]:
        """The event as JSON values, in the documented order of fields."""
        return {
            "id": self.id,
            "sequence": {
                "data_plane_id": {
                    "instance": self.origin.update_id,
                    "seq_no": self.sequence_number,
                }
            },
            "origin": asdict(self.origin),
            "timestamp": format_timestamp(self.timestamp),
            "message": self.message,
            "level": str(self.level),
            "maturity_level": self.maturity_level,
            "error": None
            if self.error is None
            else {"fatal": self.error.fatal, "exceptions": list(self.error.exceptions)},
            "details": json.dumps(self.details, ensure_ascii=False),
            "event_type": str(self.event_type),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Event:
        """Read what `to_record` gave, or the same record as a row of the Delta table.

        Raises:
            ValueError: The record is not an event. (`KeyError` and `TypeError` likewise.)
        """
        timestamp = record["timestamp"]
        if isinstance(timestamp, str):
            timestamp = datetime.fromisoformat(timestamp)
        error = record["error"]
        return cls(
            id=record["id"],
            sequence_number=record["sequence"]["data_plane_id"]["seq_no"],
            origin=Origin(**record["origin"]),
            timestamp=timestamp.astimezone(UTC),
            message=record["message"],
            level=Level(record["level"]),
            maturity_level=record["maturity_level"],
            event_type=EventType(record["event_type"]),
            details=json.loads(record["details"]),
            error=None
            if error is None
            else ErrorRecord(fatal=error["fatal"], exceptions=tuple(error["exceptions"] or ())),
        )


def format_timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC with microseconds.

    >>> format_timestamp(datetime(2026, 5, 1, 12, tzinfo=UTC))
    '2026-05-01T12:00:00.000000Z'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
