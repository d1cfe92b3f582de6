"""Python functions that user code registers by name, to be made known to further sessions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pyspark.util import PythonEvalType

# What PySpark calls the kinds of functions that make one value of many rows.
AGGREGATING = frozenset(
    value
    for name, value in vars(PythonEvalType).items()
    if name.startswith("SQL_") and ("GROUPED_AGG" in name or "WINDOW_AGG" in name)
)
# Registers one function with the client of another session.
Registration = Callable[[Any], Any]


class RegisteredFunctions:
    """The functions in the order in which they were registered.

    A session of the engine learns them when it is first used, and later ones at its next use:
    functions are pickled then, outside the surroundings in which source files are run, so that
    their modules need not be there when they are called.
    """

    def __init__(self) -> None:
        self._registrations: list[Registration] = []
        self._names: set[str] = set()
        self._aggregates: set[str] = set()
        self._lock = threading.Lock()

    @property
    def names(self) -> frozenset[str]:
        """Names in lower case."""
        return frozenset(self._names)

    @property
    def aggregates(self) -> frozenset[str]:
        """Names in lower case of those that make one value of many rows."""
        return frozenset(self._aggregates)

    def add(self, name: str, registration: Registration, *, kind: int | None = None) -> None:
        """Add a function of one of PySpark's kinds; under a name that is taken, it takes over."""
        with self._lock:
            self._registrations.append(registration)
            self._names.add(name.lower())
            self._aggregates.discard(name.lower())
            if kind in AGGREGATING:
                self._aggregates.add(name.lower())

    def teach(self, client: Any, known: int) -> int:
        """Register all but the first `known` functions. Returns how many there are."""
        with self._lock:
            pending = self._registrations[known:]
            count = len(self._registrations)
        for register in pending:
            register(client)
        return count
