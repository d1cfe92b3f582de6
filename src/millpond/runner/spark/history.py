"""Reads back what each batch did: every commit of a batch tells it, in the table's history."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from millpond.definitions import ExpectationAction
from millpond.engine.spark import SparkEngine
from millpond.flows import BatchResult, ExpectationCount
from millpond.runner.spark.tables import SparkTable

# Commits that are asked for at once, from the newest on.
_COMMITS = 20


@dataclass(frozen=True)
class CommittedBatch:
    number: int
    result: BatchResult


class BatchHistory:
    """The batches that a flow has committed since `begin`.

    Args:
        app_id: What the flow's commits say whose they are.
    """

    def __init__(self, table: SparkTable, engine: SparkEngine, *, app_id: str) -> None:
        self._table = table
        self._engine = engine
        self._app_id = app_id
        self._seen = 0

    def begin(self) -> None:
        """Take all commits that there are for old."""
        self._seen = self._table.newest_version()

    def new_batches(self) -> Iterator[CommittedBatch]:
        """The batches since the last call, oldest first."""
        commits = self._commits_after(self._seen)
        for commit in commits:
            self._seen = commit["version"]
            told = _told(commit["userMetadata"])
            if told.get("appId") == self._app_id and "batchId" in told:
                yield CommittedBatch(told["batchId"], _result(commit, told))

    def of_sink(self) -> dict[int, int | None]:
        """How many rows Spark's own sink wrote since `begin`, by batch, where commits tell."""
        return dict(
            _written(row) for row in self._commits_after(self._seen) if self._is_of_sink(row)
        )

    def _is_of_sink(self, commit: Mapping[str, Any]) -> bool:
        is_ours = _told(commit["userMetadata"]).get("appId") == self._app_id
        return is_ours and "epochId" in (commit["operationParameters"] or {})

    def has_any(self) -> bool:
        """Whether the table holds a batch of the flow, as far back as its history goes."""
        rows = self._engine.rows(f"DESCRIBE HISTORY {self._table.sql}")
        return any(_told(row["userMetadata"]).get("appId") == self._app_id for row in rows)

    def _commits_after(self, version: int) -> list[dict[str, Any]]:
        """The commits above a version, oldest first."""
        limit = _COMMITS
        while True:
            rows = self._engine.rows(f"DESCRIBE HISTORY {self._table.sql} LIMIT {limit}")
            if len(rows) < limit or rows[-1]["version"] <= version:
                return [row for row in reversed(rows) if row["version"] > version]
            limit *= 8


def _told(user_metadata: str | None) -> Mapping[str, Any]:
    """What a commit says about its batch; other writers' commits may say anything."""
    try:
        found = json.loads(user_metadata or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _written(commit: Mapping[str, Any]) -> tuple[int, int | None]:
    """A batch of Spark's own sink: its number, and how many rows it wrote, where that is told."""
    rows = (commit["operationMetrics"] or {}).get("numOutputRows")
    return int(commit["operationParameters"]["epochId"]), None if rows is None else int(rows)


def _result(commit: Mapping[str, Any], told: Mapping[str, Any]) -> BatchResult:
    # A server may be set to keep none.
    told_metrics = commit["operationMetrics"] or {}
    metrics = {key: int(value) for key, value in told_metrics.items() if value.isdecimal()}
    inserted = metrics.get("numTargetRowsInserted", metrics.get("numOutputRows", 0))
    read, dropped = told["rowsRead"], told["rowsDropped"]
    return BatchResult(
        version=commit["version"],
        rows_read=read,
        rows_inserted=inserted,
        rows_deleted=metrics.get("numTargetRowsDeleted", 0),
        # A query that is not the same each time may be counted and written from other rows.
        rows_late=max(0, read - dropped - inserted) if metrics else 0,
        rows_dropped=dropped,
        expectations=tuple(
            ExpectationCount(
                found["name"],
                ExpectationAction(found["action"]),
                passed=found["passed"],
                failed=found["failed"],
            )
            for found in told["expectations"]
        ),
        bytes_written=metrics.get("numOutputBytes", metrics.get("numTargetBytesAdded", 0)),
    )
