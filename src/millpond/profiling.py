"""Where the time of an update goes, by flow and phase.

Code marks what it does with `phase`, which does nothing unless a profile is being taken. How a
profile is shown is left to others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# What a flow does outside of all phases.
OTHER = "other"


@dataclass
class Spent:
    """Time that went into a phase, in seconds, and how often it was entered."""

    seconds: float = 0.0
    times: int = 0


class Profile:
    """Wall-clock time of an update. Each moment counts to the innermost phase of its thread.

    Attributes:
        spent: By flow and phase, in the order in which they began; the flow is `None` for what the
            update does outside of its flows. Flows run side by side, so theirs may add up to more
            than the update took.
    """

    def __init__(self) -> None:
        self.spent: dict[tuple[str | None, str], Spent] = {}
        self._lock = threading.Lock()

    def add(self, flow: str | None, phase: str, seconds: float, *, times: int = 1) -> None:
        """Count time that was measured elsewhere."""
        with self._lock:
            spent = self.spent.setdefault((flow, phase), Spent())
            spent.seconds += seconds
            spent.times += times

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Profile what runs within, also in threads that run in copies of its context."""
        token = _CURRENT.set(_Open(self, None))
        try:
            yield
        finally:
            _CURRENT.reset(token)


@dataclass
class _Open:
    """A phase that has begun, and how long others within it took."""

    profile: Profile
    flow: str | None
    inner_s: float = 0.0


_CURRENT: ContextVar[_Open | None] = ContextVar("millpond_profile", default=None)


@contextmanager
def phase(name: str, *, flow: str | None = None) -> Iterator[None]:
    """Count the time that is spent within, less that of phases within it.

    Args:
        flow: The flow that begins here. Phases within are part of it.
    """
    outer = _CURRENT.get()
    if outer is None:
        yield
        return
    opened = _Open(outer.profile, flow or outer.flow)
    outer.profile.add(opened.flow, name, 0.0)
    token = _CURRENT.set(opened)
    started_s = time.perf_counter()
    try:
        yield
    finally:
        elapsed_s = time.perf_counter() - started_s
        _CURRENT.reset(token)
        outer.inner_s += elapsed_s
        outer.profile.add(opened.flow, name, elapsed_s - opened.inner_s, times=0)


def is_profiled() -> bool:
    """Whether what runs here is profiled."""
    return _CURRENT.get() is not None


def measured(name: str, seconds: float, *, times: int = 1) -> None:
    """Count time of the flow that runs here, which something else has measured."""
    current = _CURRENT.get()
    if current is not None:
        current.profile.add(current.flow, name, seconds, times=times)
        current.inner_s += seconds
