"""Ctrl-C and termination: each reaches the main thread as an exception, and work stops cleanly."""

from __future__ import annotations

import math
import os
import signal
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

from millpond.interruptible import Interruptible, of_main_thread

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Wakes the main thread; by default it is ignored.
NUDGE = signal.SIGURG
NUDGE_EVERY_S = 0.05
PATIENCE_S = 2.0
_IMPORTLIB = "<frozen importlib"
_IN_C = "ExtensionFileLoader."
SHOW_CURSOR = b"\x1b[?25h\n"


class Stopped(KeyboardInterrupt):
    """A signal asked the process to end."""


class StopSignals:
    """Remembers which signal came first, and raises it until the program begins to stop.

    Attributes:
        received: That signal.
        announcement: What to print when it comes, where stopping may take a while.
        is_heeded: Whether the program ends for it: then nothing is raised again.
        opened: What the main thread may have been waiting for when it was last raised.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self.announcement: str | None = None
        self.is_heeded = False
        self.opened: list[Interruptible] = []
        self._raised: Callable[[], Stopped | None] = lambda: None

    @property
    def is_unheard(self) -> bool:
        """Whether nothing stops for a signal: none has been raised, or what was is gone."""
        return not self.is_heeded and self._raised() is None

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is None:
            self.received = number
            if self.announcement is not None:
                # The signal may come in the middle of other output.
                with suppress(RuntimeError, OSError):
                    sys.stderr.write(f"{self.announcement}\n")
                    sys.stderr.flush()
        self._stop(number, frame)

    def nudged(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 signal's API
        """Raise again what went under: an exception that nobody holds stops nobody.

        Python swallows what is raised amid a destructor or a callback, and so do libraries in C,
        or put errors of their own in its place.
        """
        if self.received is not None and self.is_unheard:
            self._stop(self.received, frame)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if _is_importing(frame):
            return  # The next nudge stops it.
        self.opened = of_main_thread()
        stopped = Stopped(number)
        self._raised = weakref.ref(stopped)
        try:
            raise stopped
        finally:
            del stopped  # Its traceback holds this frame: each would keep the other alive.


def _is_importing(frame: FrameType | None) -> bool:
    """Whether an exception would leave a module locked for ever, or half a library in C.

    Some of those end the process where Python code that they begin with fails.
    """
    if frame is not None and frame.f_code.co_filename.startswith(_IMPORTLIB):
        return True
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_IMPORTLIB) and code.co_qualname.startswith(_IN_C):
            return True
        frame = frame.f_back
    return False


def _unless_stopped(hook: Callable[[Any], None], lost: Any) -> None:
    """Say nothing of a `Stopped` that Python swallows: it is raised again."""
    if not isinstance(lost.exc_value, Stopped):
        hook(lost)


@contextmanager
def stoppable(signals: StopSignals) -> Iterator[None]:
    """Turn SIGINT, SIGTERM and SIGHUP into `Stopped` while the block runs.

    A signal that the caller chose to ignore stays ignored, as `nohup` does with SIGHUP, and a shell
    script with the SIGINT of what it starts in the background.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python lets only the main thread handle signals.
        return
    ignored = [number for number in STOPPING if signal.getsignal(number) is signal.SIG_IGN]
    before = {
        number: signal.signal(number, signals.handle)
        for number in STOPPING
        if number not in ignored
    }
    # Sail handles SIGINT for a moment, until it is taken back.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ignored)
    hook = sys.unraisablehook
    sys.unraisablehook = partial(_unless_stopped, hook)
    try:
        with _noticed_while_waiting(signals):
            yield
    finally:
        sys.unraisablehook = hook
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _noticed_while_waiting(signals: StopSignals) -> Iterator[None]:
    """Let a signal interrupt the main thread while it waits for a lock, or for an engine to end.

    Python learns of each signal, but a main thread that begins to wait just then would act on it
    only when that ends, and one within a system call that starts again after it likewise. So a
    thread hears of signals as well.
    """
    ours, its = socket.socketpair()
    its.setblocking(False)
    ended = threading.Event()
    watcher = threading.Thread(
        target=_watch, args=(signals, ours, ended), name="signals", daemon=True
    )
    before = signal.signal(NUDGE, signals.nudged)
    wakeup = signal.set_wakeup_fd(its.fileno(), warn_on_full_buffer=False)
    watcher.start()
    try:
        yield
    finally:
        signal.signal(NUDGE, before)
        ended.set()
        signal.set_wakeup_fd(wakeup)
        its.close()
        watcher.join()
        ours.close()


def _watch(signals: StopSignals, numbers: socket.socket, ended: threading.Event) -> None:
    """Wake the main thread from the first signal on, and end the process if a second does not."""
    received: list[int] = []
    patience_ends = math.inf
    while not ended.is_set():
        try:
            stopping = [number for number in numbers.recv(64) if number in STOPPING]
        except TimeoutError:
            stopping = []
        else:
            if not stopping:
                continue  # A nudge is a signal as well.
        received += stopping
        if len(received) > 1 and stopping:
            patience_ends = min(patience_ends, time.monotonic() + PATIENCE_S)
        # Again and again: the main thread may be where it must not stop, or where none can.
        signal.pthread_kill(threading.main_thread().ident or 0, NUDGE)
        # Not what is opened while the main thread stops, as to write down that it does.
        for opened in of_main_thread() if signals.is_unheard else signals.opened:
            with suppress(Exception):  # It is closed.
                opened.interrupt()
        numbers.settimeout(NUDGE_EVERY_S)
        if time.monotonic() > patience_ends:
            # Nothing is lost by it: an update that dies goes on where its tables stand.
            if sys.stdout.isatty():
                os.write(sys.stdout.fileno(), SHOW_CURSOR)
            os._exit(128 + received[-1])
