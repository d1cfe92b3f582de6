"""Ctrl-C and termination: each reaches the main thread as an exception, and work stops cleanly."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(KeyboardInterrupt):
    """A signal asked the process to end."""


class StopSignals:
    """Remembers which signal came first."""

    def __init__(self) -> None:
        self.received: int | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 signal's API
        if self.received is None:
            self.received = number
        raise Stopped(number)


@contextmanager
def stop_signals() -> Iterator[StopSignals]:
    """Turn SIGINT, SIGTERM and SIGHUP into `Stopped` while the block runs.

    A signal that the caller chose to ignore, as `nohup` does, stays ignored.
    """
    signals = StopSignals()
    if threading.current_thread() is not threading.main_thread():
        yield signals  # Python lets only the main thread handle signals.
        return
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, signals.handle)
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
