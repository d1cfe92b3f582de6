"""A program for the kill tests: one update whose process dies at a chosen call of the store.

Usage: killed_update.py SPEC CALL PHASE [--within FOLDER ..] [TABLE ..]

CALL counts the store's writing calls from 1, with `--within` only those on files below folders of
that name; PHASE is `before` or `after` the call. Tables named are fully refreshed. Exits 0 where
the update ended before that many calls were made.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import signal
import threading
from collections.abc import Iterable
from pathlib import Path

from millpond.runner import Project, run_update
from millpond.storage import LocalStore

WRITING = ("put_if_absent", "put", "link", "sync", "remove", "remove_tree", "append")


class DyingStore(LocalStore):
    """Kills its own process, as the kernel would, before or after the chosen call."""

    def __init__(self, call: int, phase: str, *, within: Iterable[str] = ()) -> None:
        self._left = call
        self._phase = phase
        self._within = frozenset(within)
        self._lock = threading.Lock()

    def _around(self, name: str, *args: object) -> object:
        first, *others = args
        paths = [first] if isinstance(first, Path) else list(first)
        args = (first if isinstance(first, Path) else paths, *others)
        with self._lock:
            self._left -= not self._within or any(self._within & {*p.parts} for p in paths)
            chosen = self._left == 0
            # Others count no further, so that none of them is chosen as well.
            self._left -= chosen
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
    parser = argparse.ArgumentParser()
    parser.add_argument("spec", type=Path)
    parser.add_argument("call", type=int)
    parser.add_argument("phase", choices=["before", "after"])
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--within", action="append", default=[])
    given = parser.parse_args()
    project = Project.open(given.spec)
    store = DyingStore(given.call, given.phase, within=given.within)
    run_update(dataclasses.replace(project, store=store), full_refresh=given.tables)


if __name__ == "__main__":
    main()
