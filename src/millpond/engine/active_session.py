"""Makes one session the active one while user code runs, and puts everything back afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# PySpark reads the one and sets the other.
_VARIABLES = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")


@contextmanager
def active(session: Any) -> Iterator[None]:
    """Let `SparkSession.getActiveSession()` and `builder.getOrCreate()` find the session."""
    from pyspark.sql.connect.session import SparkSession

    sessions = SparkSession._active_session  # noqa: SLF001 - a slot for each thread
    before = getattr(sessions, "session", None)
    variables = {name: os.environ.get(name) for name in _VARIABLES}
    sessions.session = session
    # The builder wants an address before it looks for the session that there is. It is told that of
    # no server: a session of the user's own could run and write while a pipeline is being defined.
    os.environ["SPARK_REMOTE"] = "sc://localhost"
    try:
        yield
    finally:
        sessions.session = before
        for name, value in variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
