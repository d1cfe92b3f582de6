"""Keeps PySpark's client from printing errors: as lines of JSON with a stack, or as warnings."""

from __future__ import annotations

import logging
import warnings

# A logger for each kind of place that an error can have.
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_NEVER = logging.CRITICAL + 1
# Said before the error itself is raised.
_LAST_RETRY = r"\[RETRIES_EXCEEDED\]"


def keep_quiet() -> None:
    """Let nothing be printed: what the user should know of an error is in ours."""
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:
        PySparkLogger.getLogger(name).setLevel(_NEVER)
    warnings.filterwarnings("ignore", message=_LAST_RETRY)
