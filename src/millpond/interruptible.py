"""What the main thread may wait for where no signal wakes it up."""

from __future__ import annotations

import threading
from typing import Protocol
from weakref import WeakValueDictionary


class Interruptible(Protocol):
    """Something that another thread may interrupt at any time."""

    def interrupt(self) -> None:
        """End what runs, which then raises; where nothing runs, do nothing."""


_of_main_thread: WeakValueDictionary[int, Interruptible] = WeakValueDictionary()


def register(opened: Interruptible) -> None:
    """Remember what was opened, if it is by the main thread."""
    if threading.current_thread() is threading.main_thread():
        _of_main_thread[id(opened)] = opened


def of_main_thread() -> list[Interruptible]:
    """All that the main thread has opened and not given up, maybe closed."""
    found = (reference() for reference in _of_main_thread.valuerefs())
    return [opened for opened in found if opened is not None]
