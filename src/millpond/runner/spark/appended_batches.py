"""Tells what each batch of Spark's own sink did, once, also where Spark has forgotten it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from millpond.definitions import Expectation, ExpectationAction
from millpond.flows import BatchResult, ExpectationCount
from millpond.runner.runtime import UncountedBatches
from millpond.runner.spark.history import BatchHistory, CommittedBatch
from millpond.runner.spark.progress import REMEMBERED, QueryProgress, Trigger


class AppendedBatches:
    """The batches of one flow in one update; its query may be started several times.

    A query tells of its latest triggers only. A client that does not ask for a while, as one that
    was stopped by a signal or whose machine slept, misses the ones before. What they wrote stands
    in the commits of this update.

    Args:
        history: Begun before the query is first started.
        warn: Told of batches that can't be counted whole.
    """

    def __init__(
        self,
        history: BatchHistory,
        expectations: Sequence[Expectation],
        warn: Callable[[UncountedBatches], None],
    ) -> None:
        self._history = history
        self._expectations = expectations
        self._warn = warn
        self._seen: int | None = None

    def new(self, progress: QueryProgress) -> Iterator[CommittedBatch]:
        """What they did since this was last asked, oldest first."""
        triggers = progress.remembered()
        if triggers and self._may_lack_some(triggers):
            yield from self._committed(before=triggers[0].number)
        for trigger in triggers:
            if trigger.is_batch and self._is_new(trigger.number):
                self._seen = trigger.number
                if trigger.result is not None:
                    yield CommittedBatch(trigger.number, trigger.result)

    def last(self, progress: QueryProgress) -> Iterator[CommittedBatch]:
        """Likewise of a query that did not end by itself, maybe when it had committed a batch."""
        yield from self.new(progress)
        yield from self._committed()

    def _may_lack_some(self, triggers: Sequence[Trigger]) -> bool:
        """Whether batches of this update may have ended before the oldest that is told of."""
        if self._seen is None:
            return len(triggers) >= REMEMBERED
        return self._seen + 1 < triggers[0].number

    def _is_new(self, number: int) -> bool:
        return self._seen is None or number > self._seen

    def _committed(self, *, before: float = math.inf) -> Iterator[CommittedBatch]:
        """What batches did of which the query does not tell, but commits tell the rows written."""
        written = self._history.of_sink()
        rows = {n: written[n] for n in sorted(written) if self._is_new(n) and n < before}
        if not rows:
            return
        counted = {number: count for number, count in rows.items() if count is not None}
        self._seen = max(rows)
        rows_are_counted = len(counted) == len(rows)
        if not rows_are_counted or self._counts_rows():
            self._warn(UncountedBatches(min(rows), max(rows), rows_are_counted))
        for number, count in counted.items():
            yield CommittedBatch(number, self._result(count))

    def _counts_rows(self) -> bool:
        """Whether an expectation counts, or drops, rows of a batch that is committed."""
        return any(each.action is not ExpectationAction.FAIL for each in self._expectations)

    def _result(self, rows: int) -> BatchResult:
        """The result of a batch that wrote so many rows; it read these, and maybe others."""
        return BatchResult(
            rows_read=rows,
            rows_inserted=rows,
            expectations=()
            if self._counts_rows()
            else tuple(
                ExpectationCount(each.name, each.action, passed=rows, failed=0)
                for each in self._expectations
            ),
        )
