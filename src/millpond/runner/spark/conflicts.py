"""Tries changes of a table again that another writer's commit came before."""

from __future__ import annotations

from collections.abc import Callable

from millpond.runner.spark.batch_program import CONFLICTS

_ATTEMPTS = 5


def is_conflict(condition: str | None) -> bool:
    """Whether a condition of Spark's means that another commit came first."""
    return (condition or "").startswith(CONFLICTS)


def retried(change: Callable[[], object]) -> None:
    """Make a change of a table that is right whatever others commit to it meanwhile."""
    from pyspark.errors import PySparkException

    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            change()
        except PySparkException as error:
            if not attempts_left or not is_conflict(error.getCondition()):
                raise
        else:
            return
