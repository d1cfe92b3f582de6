"""What a streaming query tells of its batches while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millpond.definitions import Expectation
from millpond.flows import BatchResult, ExpectationCount
from millpond.profiling import is_profiled, measured
from millpond.runner.spark.relations import OBSERVATION

# A query tells of so many triggers, the latest ones.
REMEMBERED = 100
# With these it does, as Spark keeps one less than it is told to, and tells of a last trigger that
# found no more to read, which it leaves out where a batch was just before.
TELLING = {
    "spark.sql.streaming.noDataProgressEventInterval": "0",
    "spark.sql.streaming.numRecentProgressUpdates": str(REMEMBERED + 1),
}

# Spark's phases of a trigger, in the words of millpond's profile.
_PHASES = {
    "latestOffset": "find what is new",
    "getBatch": "read sources",
    "queryPlanning": "plan batches",
    "walCommit": "write checkpoint",
    "commitOffsets": "write checkpoint",
    "addBatch": "run query, commit",
}


@dataclass(frozen=True)
class Trigger:
    """One trigger of a query.

    Attributes:
        number: That of its batch, or of the next one where it found nothing to do.
        is_batch: Whether it found something to do. It has ended.
        result: What the batch did, where its rows were counted.
    """

    number: int
    is_batch: bool
    result: BatchResult | None


class QueryProgress:
    """What a streaming query did since it was started here.

    Its session must have the settings `TELLING`.
    """

    def __init__(self, query: Any, expectations: Sequence[Expectation]) -> None:
        self._query = query
        self._expectations = expectations
        self._newest = -1

    def has_moved(self) -> bool:
        """Whether a batch has ended since this was last asked. That is little to ask for."""
        newest = self._query.lastProgress
        moved = newest is not None and newest["batchId"] > self._newest
        if moved:
            self._newest = newest["batchId"]
        return moved

    def has_read_all(self) -> bool:
        """Whether a query that ended has found nothing more to read.

        To Spark, one that somebody stopped has ended as well as any other.
        """
        newest = self._query.lastProgress
        return newest is not None and not _is_batch(newest)

    def profile(self) -> None:
        """Tell the profile, where one is taken, how long the server was at what, lately."""
        if is_profiled():
            for progress in self._query.recentProgress:
                for name, milliseconds in progress["durationMs"].items():
                    if name in _PHASES:
                        measured(_PHASES[name], milliseconds / 1000)

    def remembered(self) -> list[Trigger]:
        """The latest triggers that the query tells of, oldest first, without a gap."""
        return [
            Trigger(
                progress["batchId"],
                is_batch=_is_batch(progress),
                result=self._result(progress["observedMetrics"].get(OBSERVATION)),
            )
            for progress in self._query.recentProgress
        ]

    def _result(self, observed: Any) -> BatchResult | None:
        if observed is None:
            return None
        rows, kept, *passed = _values(observed)
        return BatchResult(
            rows_read=rows,
            rows_inserted=kept,
            rows_dropped=rows - kept,
            expectations=tuple(
                ExpectationCount(
                    expectation.name, expectation.action, passed=count, failed=rows - count
                )
                for expectation, count in zip(self._expectations, passed, strict=True)
            ),
        )


def _is_batch(progress: Any) -> bool:
    return "addBatch" in progress["durationMs"]


def _values(observed: Any) -> list[int]:
    """The metrics in the order in which they were asked for.

    Servers write them with their schema, which PySpark's client takes for a row of two columns.
    """
    names = observed.asDict()
    return list(names.get("values", observed))
