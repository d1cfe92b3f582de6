"""One update whose process dies at a chosen call of the store, for the tests of kills."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from collections.abc import Iterable, Sequence
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


def killed_update(
    spec: Path,
    call: int,
    phase: str,
    *,
    within: Iterable[str] = (),
    full_refresh: Sequence[str] = (),
) -> None:
    """An update whose process dies at a call of the store, unless it ends before.

    Args:
        call: Writing calls are counted from 1, with `within` only those on files below folders of
            that name.
        phase: `before` or `after` the call.
    """
    project = Project.open(spec)
    store = DyingStore(call, phase, within=within)
    run_update(dataclasses.replace(project, store=store), full_refresh=full_refresh)
