"""The sentences of events: what a person reads in `message`."""

from __future__ import annotations

from collections.abc import Mapping

from millpond.events.event import FlowMetrics, FlowStatus, UpdateState

_UPDATE = {
    UpdateState.QUEUED: "is queued",
    UpdateState.CREATED: "was created",
    UpdateState.WAITING_FOR_RESOURCES: "waits for resources",
    UpdateState.INITIALIZING: "is reading the pipeline's source files",
    UpdateState.RESETTING: "is resetting tables",
    UpdateState.SETTING_UP_TABLES: "is setting up tables",
    UpdateState.RUNNING: "is running",
    UpdateState.STOPPING: "is stopping",
    UpdateState.COMPLETED: "completed",
    UpdateState.FAILED: "failed",
    UpdateState.CANCELED: "was canceled",
}

_FLOW = {
    FlowStatus.QUEUED: "is queued",
    FlowStatus.STARTING: "is starting",
    FlowStatus.RUNNING: "is running",
    FlowStatus.COMPLETED: "completed",
    FlowStatus.FAILED: "failed",
    FlowStatus.SKIPPED: "was skipped",
    FlowStatus.STOPPED: "was stopped",
    FlowStatus.IDLE: "had nothing to do",
    FlowStatus.EXCLUDED: "is not part of this update",
}

_MAINTENANCE = {
    "vectors_purged": "deletion vectors purged",
    "files_removed": "old files removed",
    "log_files_removed": "old files of the log removed",
    "given_up": "rewrites given up because another writer changed the files",
}


def update_message(update_id: str, state: UpdateState, *, reason: str | None = None) -> str:
    """The sentence for a state of an update.

    >>> update_message("3f2a", UpdateState.RUNNING)
    'Update 3f2a is running.'
    """
    return _sentence(f"Update {update_id} {_UPDATE[state]}", reason)


def flow_message(
    flow: str,
    status: FlowStatus,
    *,
    metrics: FlowMetrics | None = None,
    batch_id: int | None = None,
    reason: str | None = None,
) -> str:
    """The sentence for a status of a flow.

    >>> flow_message("orders", FlowStatus.RUNNING, batch_id=3,
    ...              metrics=FlowMetrics(rows_read=1200, num_deleted_rows=1, num_output_rows=2))
    'Flow orders applied batch 3: 1,200 rows in, 1 replaced, 2 inserted.'
    """
    if status is FlowStatus.RUNNING and batch_id is not None and metrics is not None:
        return f"Flow {flow} applied batch {batch_id}: {counts(metrics)}."
    if metrics is not None and reason is None:
        reason = counts(metrics)
    return _sentence(f"Flow {flow} {_FLOW[status]}", reason)


def not_counted_message(flow: str, *, first: int, last: int, rows_are_counted: bool) -> str:
    """The sentence for batches whose counts are not whole.

    >>> not_counted_message("orders", first=3, last=9, rows_are_counted=False)
    'Spark did not tell what batches 3 to 9 of flow orders did: not all of their rows are counted.'
    """
    batches = f"batch {last}" if first == last else f"batches {first} to {last}"
    if rows_are_counted:
        return (
            f"Of {batches} of flow {flow} Spark told only the rows written: rows that expectations "
            "dropped, and how many rows met them, are not counted."
        )
    return (
        f"Spark did not tell what {batches} of flow {flow} did: not all of their rows are counted."
    )


def counts(metrics: FlowMetrics) -> str:
    """The row counts of `metrics` in words; those that are not known, or not zero, are left out."""
    output = metrics.num_output_rows
    inserted = metrics.num_upserted_rows if output is None else output
    words = [
        f"{number:,} {word}"
        for number, word in (
            (metrics.num_deleted_rows, "replaced" if inserted else "removed"),
            (inserted, "inserted"),
            (metrics.num_late_rows, "late"),
            (metrics.num_dropped_rows, "dropped"),
        )
        if number
    ]
    words = words or ["no change"]
    if metrics.rows_read is not None:
        noun = "row" if metrics.rows_read == 1 else "rows"
        words.insert(0, f"{metrics.rows_read:,} {noun} in")
    return ", ".join(words)


def _sentence(start: str, reason: str | None) -> str:
    if not reason:
        return f"{start}."
    # Errors bring their own last full stop, and may run over several lines.
    return f"{start}: {reason}" if reason.endswith((".", "\n")) else f"{start}: {reason}."


def maintenance_message(dataset: str, counts: Mapping[str, int], *, reason: str | None) -> str:
    """The sentence for what was done to look after a table.

    >>> maintenance_message("orders", {"files_compacted": 16, "files_written": 1}, reason=None)
    'Table orders was looked after: 16 files compacted into 1.'
    """
    parts = []
    if counts.get("files_compacted"):
        parts.append(
            f"{counts['files_compacted']:,} files compacted into {counts['files_written']:,}"
        )
    for key, words in _MAINTENANCE.items():
        if counts.get(key):
            parts.append(f"{counts[key]:,} {words}")
    done = ", ".join(parts)
    if reason is None:
        return f"Table {dataset} was looked after: {done}."
    before = f" Done before: {done}." if done else ""
    return f"Table {dataset} could not be looked after; its rows are right. {reason}{before}"
