"""What a person wants to see of a running update, kept up to date from its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import datetime

from millpond.cli.wording import duration, plural
from millpond.definitions import ExpectationAction
from millpond.events import Event, EventType, FlowStatus, UpdateState


@dataclass
class RowCounts:
    """Rows of a flow since the update began.

    Attributes:
        replaced: Rows that went in batches which brought others.
        removed: Rows that went in batches which brought none.
        files: Files that were read for them.
    """

    rows_in: int = 0
    replaced: int = 0
    removed: int = 0
    inserted: int = 0
    late: int = 0
    dropped: int = 0
    files: int = 0

    def add(self, other: RowCounts) -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def words(self) -> str:
        """The counts in words, leaving out zeros; empty where there are none.

        >>> RowCounts(rows_in=1200, inserted=1000, late=12).words()
        '1,200 rows in, 1,000 inserted, 12 late'
        >>> RowCounts(rows_in=20).words()
        '20 rows in, no change'
        >>> RowCounts(replaced=2, removed=3, inserted=2).words()
        '2 replaced, 3 removed, 2 inserted'
        >>> RowCounts(files=1).words()
        '1 file read, no rows'
        """
        counted = {
            "replaced": self.replaced,
            "removed": self.removed,
            "inserted": self.inserted,
            "late": self.late,
            "dropped": self.dropped,
        }
        parts = [f"{number:,} {word}" for word, number in counted.items() if number]
        if self.rows_in:
            parts = [f"{plural(self.rows_in, 'row')} in", *(parts or ["no change"])]
        elif self.files and not parts:
            parts = [f"{plural(self.files, 'file')} read, no rows"]
        return ", ".join(parts)


@dataclass
class FlowView:
    """One flow as it stands. `name` is what people see.

    Attributes:
        unmet: Rows that do not meet an expectation that only counts them, by its name.
    """

    name: str
    status: FlowStatus = FlowStatus.QUEUED
    counts: RowCounts = field(default_factory=RowCounts)
    unmet: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    started: datetime | None = None
    ended: datetime | None = None

    def seconds(self, now: datetime) -> float | None:
        """How long it has run, or ran."""
        if self.started is None:
            return None
        return ((self.ended or now) - self.started).total_seconds()


class UpdateView:
    """An update as its events tell it. Give it every event, in order.

    Args:
        shorten: Makes names of flows shorter for people.
    """

    def __init__(self, shorten: Callable[[str], str] = str) -> None:
        self.shorten = shorten
        self.update_id = ""
        self.pipeline_name = ""
        self.state = UpdateState.QUEUED
        self.started: datetime | None = None
        self.ended: datetime | None = None
        self.flows: dict[str, FlowView] = {}
        # By dataset, the names of those of its expectations that only count rows.
        self._kept: dict[str | None, frozenset[str]] = {}

    def apply(self, event: Event) -> FlowView | None:
        """Take an event in, and return the flow that it concerns."""
        self.update_id = event.origin.update_id
        self.pipeline_name = event.origin.pipeline_name
        self.started = self.started or event.timestamp
        self.ended = event.timestamp
        if event.event_type is EventType.UPDATE_PROGRESS:
            self.state = UpdateState(event.detail["state"])
        if event.event_type is EventType.DATASET_DEFINITION:
            self._kept[event.origin.dataset_name] = frozenset(
                each["name"]
                for each in event.detail["expectations"]
                if each["action"] == ExpectationAction.WARN
            )
        if event.event_type is not EventType.FLOW_PROGRESS or event.origin.flow_name is None:
            return None
        if "not_cleaned" in event.detail:
            # It comes when the flow has ended, and changes nothing of that.
            return None
        name = event.origin.flow_name
        flow = self.flows.setdefault(name, FlowView(self.shorten(name)))
        _apply_to_flow(flow, event)
        kept = self._kept.get(event.origin.dataset_name, frozenset())
        for each in event.detail.get("data_quality", {}).get("expectations", ()):
            if each["name"] in kept and each["failed_records"]:
                flow.unmet[each["name"]] += each["failed_records"]
        return flow

    @property
    def totals(self) -> RowCounts:
        total = RowCounts()
        for flow in self.flows.values():
            total.add(flow.counts)
        return total

    def seconds(self, now: datetime | None = None) -> float:
        """How long the update has run until `now`, or until its last event."""
        end = now or self.ended
        return 0.0 if self.started is None or end is None else (end - self.started).total_seconds()

    def warnings(self) -> list[str]:
        """A sentence for each expectation that only counts rows, where some do not meet it."""
        return [
            f"Flow {flow.name} read {plural(number, 'row')} that "
            f"{'does' if number == 1 else 'do'} not meet the expectation {name!r}."
            for flow in self.flows.values()
            for name, number in flow.unmet.items()
        ]

    def summary(self) -> str:
        """The update in one sentence."""
        tally: dict[str, int] = {}
        for flow in self.flows.values():
            word = status_word(flow.status)
            tally[word] = tally.get(word, 0) + 1
        order = ["completed", "failed", "skipped", "stopped"]
        words = sorted(tally, key=lambda word: order.index(word) if word in order else len(order))
        parts = [f"{plural(tally[word], 'flow')} {word}" for word in words[:1]]
        parts += [f"{tally[word]:,} {word}" for word in words[1:]]
        text = f"Update {self.state.lower()} in {duration(self.seconds())}"
        if parts:
            text += ": " + ", ".join(parts)
        rows = self.totals.words()
        if rows:
            return f"{text}; {rows}."
        if self.state is UpdateState.COMPLETED and self.flows:
            return f"{text}; nothing new."
        return f"{text}."


def status_word(status: FlowStatus) -> str:
    """A status for people: a flow that had nothing to do has completed, too."""
    return "completed" if status is FlowStatus.IDLE else status.lower()


def _apply_to_flow(flow: FlowView, event: Event) -> None:
    flow.status = FlowStatus(event.detail["status"])
    if flow.status in {FlowStatus.STARTING, FlowStatus.RUNNING}:
        flow.started = flow.started or event.timestamp
    elif flow.status.is_final:
        flow.ended = event.timestamp
    metrics = event.detail.get("metrics")
    if metrics is None:
        return
    flow.batches += 1
    gone = metrics.get("num_deleted_rows", 0)
    inserted = metrics.get("num_output_rows", metrics.get("num_upserted_rows", 0))
    flow.counts.add(
        RowCounts(
            rows_in=metrics.get("rows_read", 0),
            replaced=gone if inserted else 0,
            removed=0 if inserted else gone,
            inserted=inserted,
            late=metrics.get("num_late_rows", 0),
            dropped=metrics.get("num_dropped_rows", 0),
            files=metrics.get("files_read", 0),
        )
    )
