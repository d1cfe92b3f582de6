"""Tells what each batch of Spark's own sink did, once, also where Spark has forgotten it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from millpond.definitions import Expectation, ExpectationAction
from millpond.flows import BatchResult, ExpectationCount
from millpond.runner.runtime import UncountedBatches
from millpond.runner.spark.history import BatchHistory, CommittedBatch
from millpond.runner.spark.progress import REMEMBERED, QueryProgress


class AppendedBatches:
    """The batches of one flow in one update; its query may be started several times.

    A query tells of its latest triggers only. A client that does not ask for a while, as one that
    was stopped by a signal or whose machine slept, misses the ones before. What they wrote stands
    in the table's history. Their numbers have no gaps, so what is missed is seen.

    Args:
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
        if triggers:
            yield from self._before(triggers[0].number, may_lack_some=len(triggers) >= REMEMBERED)
        for trigger in triggers:
            if trigger.is_batch and (self._seen is None or trigger.number > self._seen):
                self._seen = trigger.number
                if trigger.result is not None:
                    yield CommittedBatch(trigger.number, trigger.result)

    def _before(self, oldest: int, *, may_lack_some: bool) -> Iterator[CommittedBatch]:
        """What batches did that ended before the oldest one that the query tells of."""
        if self._seen is not None:
            forgotten = range(self._seen + 1, oldest)
            if forgotten:
                yield from self._forgotten(forgotten, self._history.of_sink(forgotten))
        elif may_lack_some and oldest > 0:
            # Which one was the first of this update, nothing tells.
            self._warn(UncountedBatches(None, oldest - 1, rows_are_counted=False))

    def last(self, progress: QueryProgress) -> Iterator[CommittedBatch]:
        """Likewise of a query that did not end by itself, maybe when it had committed a batch."""
        yield from self.new(progress)
        if self._seen is not None:
            following = range(self._seen + 1, self._seen + 2)
            rows = self._history.of_sink(following)
            if rows:
                yield from self._forgotten(following, rows)

    def _forgotten(self, numbers: range, rows: Mapping[int, int]) -> Iterator[CommittedBatch]:
        """What batches did of which the query does not tell, but commits tell the rows written."""
        self._seen = numbers[-1]
        rows_are_counted = len(rows) == len(numbers)
        if not rows_are_counted or self._counts_rows():
            self._warn(UncountedBatches(numbers[0], numbers[-1], rows_are_counted))
        for number in sorted(rows):
            yield CommittedBatch(number, self._result(rows[number]))

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
