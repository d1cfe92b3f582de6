"""A program for the kill tests: one update whose process dies at a chosen call of the store.

Usage: killed_update.py SPEC CALL PHASE [TABLE ..]

CALL counts the store's writing calls from 1; PHASE is `before` or `after` the call. Tables named
are fully refreshed. Exits 0 where the update ended before that many calls were made.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import threading
from pathlib import Path

from millpond.runner import Project, run_update
from millpond.storage import LocalStore

WRITING = ("put_if_absent", "put", "sync", "remove", "remove_tree", "append")


class DyingStore(LocalStore):
    """Kills its own process, as the kernel would, before or after the chosen call."""

    def __init__(self, call: int, phase: str) -> None:
        self._left = call
        self._phase = phase
        self._lock = threading.Lock()

    def _around(self, name: str, *args: object) -> object:
        with self._lock:
            self._left -= 1
            chosen = self._left == 0
        if chosen and self._phase == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = getattr(super(), name)(*args)
        if chosen:
            os.kill(os.getpid(), signal.SIGKILL)
        return result


def _dying(name: str) -> object:
    return lambda self, *args: self._around(name, *args)


for _name in WRITING:
    if hasattr(LocalStore, _name):
        setattr(DyingStore, _name, _dying(_name))


def main() -> None:
    spec, call, phase, *tables = sys.argv[1:]
    project = Project.open(Path(spec))
    project = dataclasses.replace(project, store=DyingStore(int(call), phase))
    run_update(project, full_refresh=tables)


if __name__ == "__main__":
    main()
