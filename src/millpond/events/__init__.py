"""What happens in an update: events, who hears of them, and the log that keeps them."""

from millpond.events.event import (
    ErrorRecord,
    Event,
    EventType,
    ExpectationMetrics,
    FlowMetrics,
    FlowStatus,
    Level,
    Origin,
    UpdateState,
)
from millpond.events.log import EventLog
from millpond.events.recorder import Recorder
from millpond.events.selection import select_update

__all__ = [
    "ErrorRecord",
    "Event",
    "EventLog",
    "EventType",
    "ExpectationMetrics",
    "FlowMetrics",
    "FlowStatus",
    "Level",
    "Origin",
    "Recorder",
    "UpdateState",
    "select_update",
]
