"""Keeps PySpark's client from printing errors: each as a line of JSON, with the server's stack."""

from __future__ import annotations

import logging

# A logger for each kind of place that an error can have.
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_NEVER = logging.CRITICAL + 1


def keep_quiet() -> None:
    """Let nothing be printed: what the user should know of an error is in ours."""
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:
        PySparkLogger.getLogger(name).setLevel(_NEVER)
