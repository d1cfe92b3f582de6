"""Ctrl-C and termination: each reaches the main thread as an exception, and work stops cleanly."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Wakes the main thread; by default it is ignored.
NUDGE = signal.SIGURG
NUDGE_EVERY_S = 0.05
PATIENCE_S = 2.0
SHOW_CURSOR = b"\x1b[?25h\n"


class Stopped(KeyboardInterrupt):
    """A signal asked the process to end."""


class StopSignals:
    """Remembers which signal came first.

    Attributes:
        received: That signal.
        announcement: What to print when it comes, where stopping may take a while.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self.announcement: str | None = None
        self._swallowed: int | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 signal's API
        if self.received is None:
            self.received = number
            if self.announcement is not None:
                # The signal may come in the middle of other output.
                with suppress(RuntimeError, OSError):
                    sys.stderr.write(f"{self.announcement}\n")
                    sys.stderr.flush()
        raise Stopped(number)

    def nudged(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 signal's API
        """Raise again what went under."""
        if self._swallowed is not None:
            signal_number, self._swallowed = self._swallowed, None
            raise Stopped(signal_number)

    def unraisable(self, hook: Callable[[Any], None], lost: Any) -> None:
        """Note a `Stopped` that came amid a destructor or a callback, where Python swallows it."""
        if isinstance(lost.exc_value, Stopped):
            self._swallowed = lost.exc_value.args[0]
        else:
            hook(lost)


@contextmanager
def stoppable(signals: StopSignals) -> Iterator[None]:
    """Turn SIGINT, SIGTERM and SIGHUP into `Stopped` while the block runs.

    A signal that the caller chose to ignore, as `nohup` does, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python lets only the main thread handle signals.
        return
    before = {
        number: signal.signal(number, signals.handle)
        for number in STOPPING
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    hook = sys.unraisablehook
    sys.unraisablehook = partial(signals.unraisable, hook)
    try:
        with _noticed_while_waiting(signals):
            yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _noticed_while_waiting(signals: StopSignals) -> Iterator[None]:
    """Let a signal interrupt the main thread while it waits for a lock, or for an engine to end.

    Sail takes SIGINT over, and in such a way that system calls start again after it: Python learns
    of the signal, but a main thread that waits for flows would act on it only when one ends. So a
    thread hears of signals as well.
    """
    ours, its = socket.socketpair()
    its.setblocking(False)
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(ours, ended), name="signals", daemon=True)
    before = signal.signal(NUDGE, signals.nudged)
    wakeup = signal.set_wakeup_fd(its.fileno(), warn_on_full_buffer=False)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(wakeup)
        its.close()
        watcher.join()
        ours.close()
        signal.signal(NUDGE, before)


def _watch(numbers: socket.socket, ended: threading.Event) -> None:
    """Wake the main thread for each signal; end the process if the second one does not end it."""
    received = 0
    while not ended.is_set() and (batch := numbers.recv(64)):
        stopping = [number for number in batch if number in STOPPING]
        received += len(stopping)
        if not stopping:
            continue
        main = threading.main_thread().ident or 0
        for _ in range(round(PATIENCE_S / NUDGE_EVERY_S)):
            # More than once: the first may come while the main thread still handles the signal.
            signal.pthread_kill(main, NUDGE)
            if ended.wait(NUDGE_EVERY_S):
                return
        if received > 1:
            # Nothing is lost by it: an update that dies goes on where its tables stand.
            if sys.stdout.isatty():
                os.write(sys.stdout.fileno(), SHOW_CURSOR)
            os._exit(128 + stopping[-1])
