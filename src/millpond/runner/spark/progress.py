"""What a streaming query tells of its batches while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from millpond.definitions import Expectation
from millpond.flows import BatchResult, ExpectationCount
from millpond.profiling import is_profiled, measured
from millpond.runner.spark.history import CommittedBatch
from millpond.runner.spark.relations import OBSERVATION

# With these a query tells of a last trigger that found no more to read, which it leaves out where
# a batch was just before.
TELLING_ITS_END = {"spark.sql.streaming.noDataProgressEventInterval": "0"}

# Spark's phases of a trigger, in the words of millpond's profile.
_PHASES = {
    "latestOffset": "find what is new",
    "getBatch": "read sources",
    "queryPlanning": "plan batches",
    "walCommit": "write checkpoint",
    "commitOffsets": "write checkpoint",
    "addBatch": "run query, commit",
}


class QueryProgress:
    """The batches that a streaming query has ended since it was started here.

    Its session must have the settings `TELLING_ITS_END`.
    """

    def __init__(self, query: Any, expectations: Sequence[Expectation]) -> None:
        self._query = query
        self._expectations = expectations
        self._seen = -1

    def has_moved(self) -> bool:
        """Whether a batch has ended since this was last asked."""
        newest = self._query.lastProgress
        moved = newest is not None and newest["batchId"] > self._seen
        if moved:
            self._seen = newest["batchId"]
        return moved

    def has_read_all(self) -> bool:
        """Whether a query that ended has found nothing more to read.

        To Spark, one that somebody stopped has ended as well as any other.
        """
        newest = self._query.lastProgress
        return newest is not None and "addBatch" not in newest["durationMs"]

    def profile(self) -> None:
        """Tell the profile, where one is taken, how long the server was at what.

        Spark remembers the last hundred triggers.
        """
        if is_profiled():
            for progress in self._query.recentProgress:
                for name, milliseconds in progress["durationMs"].items():
                    if name in _PHASES:
                        measured(_PHASES[name], milliseconds / 1000)

    def new_batches(self) -> Iterator[CommittedBatch]:
        """What they did, oldest first."""
        for progress in self._query.recentProgress:
            observed = progress["observedMetrics"].get(OBSERVATION)
            if progress["batchId"] > self._seen and observed is not None:
                self._seen = progress["batchId"]
                yield CommittedBatch(progress["batchId"], self._result(observed))

    def _result(self, observed: Any) -> BatchResult:
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


def _values(observed: Any) -> list[int]:
    """The metrics in the order in which they were asked for.

    Servers write them with their schema, which PySpark's client takes for a row of two columns.
    """
    names = observed.asDict()
    return list(names.get("values", observed))
