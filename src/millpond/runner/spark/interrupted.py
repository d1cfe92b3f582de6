"""Asks a server what is still to be known while an update is being stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from millpond.errors import MillpondError
from millpond.runner.spark.history import CommittedBatch

# A stop cancels what is asked just then, once in each session; two are asked.
ATTEMPTS = 3


def despite_interrupts(ask: Callable[[], object]) -> None:
    """Ask the server again as often as the stop of an update may have cancelled it.

    Raises:
        PySparkException: It failed otherwise, or was cancelled more often than that.
    """
    from pyspark.errors import PySparkException

    for attempts_left in reversed(range(ATTEMPTS)):
        try:
            ask()
        except PySparkException as error:
            if not attempts_left or "[OPERATION_CANCELED]" not in str(error):
                raise
        else:
            return


def as_far_as_known(batches: Callable[[], Iterable[CommittedBatch]]) -> list[CommittedBatch]:
    """What an update ended for matters more than what is not known of its batches."""
    from pyspark.errors import PySparkException

    known: list[CommittedBatch] = []
    with suppress(PySparkException, MillpondError):
        despite_interrupts(lambda: known.extend(batches()))
    return known
