"""How an update stops: nothing is waited for that will not come."""

from __future__ import annotations

import queue
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from millpond.runner.schedule import Schedule, Task


class Outcomes:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def completed(self, task: Task) -> None:
        self.seen.append((task.flow.name, "completed"))

    def failed(self, task: Task, error: BaseException) -> None:
        self.seen.append((task.flow.name, type(error).__name__))

    def skipped(self, task: Task, upstream: Any) -> None:
        raise AssertionError((task, upstream))

    def stopped(self, task: Task) -> None:
        self.seen.append((task.flow.name, "stopped"))


class InterruptedQueue:
    """A queue whose first item is taken just as Ctrl-C comes, and so never seen."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._interrupted = False
        self.put = self._items.put

    def get(self, timeout: float | None = None) -> Any:
        item = self._items.get(timeout=timeout)
        if not self._interrupted:
            self._interrupted = True
            raise KeyboardInterrupt
        return item


def task(name: str) -> Any:
    flow = SimpleNamespace(name=name, upstream=frozenset())
    return Task(flow, SimpleNamespace(key=("main", "sales", name)))


def interrupted(run: Any, *names: str) -> tuple[list[tuple[str, str]], float]:
    outcomes = Outcomes()
    schedule = Schedule(
        [task(name) for name in names],
        run,
        outcomes,
        failed=set(),
        stop=threading.Event(),
        interrupt=lambda: None,
    )
    schedule._ended = InterruptedQueue()
    began_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        schedule.run()
    return sorted(outcomes.seen), time.monotonic() - began_s


def test_a_flow_whose_end_got_lost_in_the_interrupt_is_not_waited_for():
    seen, seconds = interrupted(lambda _task: None, "a")
    assert seen == [("a", "stopped")]
    assert seconds < 10


def test_a_flow_that_breaks_while_the_update_stops_counts_as_stopped():
    """The signal may have ended the engine that it runs on."""
    first_ended = threading.Event()

    def run(which: Task) -> None:
        if which.flow.name == "a":
            first_ended.set()
            return
        first_ended.wait()
        time.sleep(0.3)
        raise ConnectionError

    seen, _ = interrupted(run, "a", "b")
    assert seen == [("a", "stopped"), ("b", "stopped")]
