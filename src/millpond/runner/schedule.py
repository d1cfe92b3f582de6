"""Runs the flows of an update side by side, each after the flows that fill what it reads."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Protocol

from millpond.errors import MillpondError
from millpond.graph import ResolvedDataset, ResolvedFlow

MAX_FLOWS_AT_ONCE = 4
# How long a stop waits for batches in flight. What they have not committed is planned again.
STOP_WAIT_S = 30.0
SIGNAL_WAIT_S = 0.2
STOP_POLL_S = 0.1

Key = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Task:
    """One flow to run, with the table it feeds."""

    flow: ResolvedFlow
    dataset: ResolvedDataset


class Outcomes(Protocol):
    """Told of each flow's end, in the scheduling thread."""

    def completed(self, task: Task) -> None: ...

    def failed(self, task: Task, error: BaseException) -> None: ...

    def skipped(self, task: Task, upstream: Key) -> None: ...

    def stopped(self, task: Task) -> None: ...


class FlowStoppedError(MillpondError):
    """Raised inside a flow between two batches when the update is being stopped.

    Internal: never shown, so it has no `error_class`.
    """


class Schedule:
    """Runs every task whose upstream tables are done, until none is left.

    A flow's failure fails its table, and skips every flow that reads the table, directly or not.

    Args:
        run: Runs one flow to its end, in a thread of its own.
        failed: Keys of tables that have failed already; those that fail are added.
        stop: Set when the update is interrupted, for `run` to look at.
        interrupt: Called then, to cancel the queries that run.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        run: Callable[[Task], None],
        outcomes: Outcomes,
        *,
        failed: set[Key],
        stop: threading.Event,
        interrupt: Callable[[], None],
    ) -> None:
        self._waiting = list(tasks)
        self._running: list[Task] = []
        self._threads: list[threading.Thread] = []
        self._ended: queue.SimpleQueue[tuple[Task, BaseException | None]] = queue.SimpleQueue()
        self._run_flow = run
        self._outcomes = outcomes
        self._failed = failed
        self._stop = stop
        self._interrupt = interrupt

    def run(self) -> None:
        """Run all tasks.

        Raises:
            KeyboardInterrupt: Passed on once the batches in flight have ended, or after a while.
        """
        try:
            while self._waiting or self._running:
                self._skip()
                self._start()
                if self._running:
                    self._settle(*self._next())
        except KeyboardInterrupt:
            self._stop.set()
            self._wind_down()
            raise
        finally:
            self._stop.set()  # whatever ended the loop, no flow may begin another batch

    def _next(self) -> tuple[Task, BaseException | None]:
        """Wait for a flow to end, waking up now and then: a signal may come just before a wait."""
        while True:
            with suppress(queue.Empty):
                return self._ended.get(timeout=SIGNAL_WAIT_S)

    def _skip(self) -> None:
        """Take out what reads a failed table. Tasks come in order, so one pass finds them all."""
        for task in list(self._waiting):
            broken = next((key for key in task.flow.upstream if key in self._failed), None)
            if broken is not None:
                self._waiting.remove(task)
                self._failed.add(task.dataset.key)
                self._outcomes.skipped(task, broken)

    def _start(self) -> None:
        unfinished = {task.dataset.key for task in (*self._waiting, *self._running)}
        for task in list(self._waiting):
            if len(self._running) >= MAX_FLOWS_AT_ONCE:
                return
            if not task.flow.upstream & unfinished:
                self._waiting.remove(task)
                self._running.append(task)
                thread = threading.Thread(
                    target=copy_context().run,
                    args=(self._work, task),
                    name=f"flow {task.flow.name}",
                    daemon=True,
                )
                self._threads.append(thread)
                thread.start()

    def _work(self, task: Task) -> None:
        try:
            self._run_flow(task)
        except BaseException as error:  # noqa: BLE001 - handed to the scheduling thread
            self._ended.put((task, error))
        else:
            self._ended.put((task, None))

    def _settle(self, task: Task, error: BaseException | None) -> None:
        self._running.remove(task)
        if error is None:
            self._outcomes.completed(task)
        elif self._stop.is_set():
            self._outcomes.stopped(task)
        else:
            self._failed.add(task.dataset.key)
            self._outcomes.failed(task, error)

    def _wind_down(self) -> None:
        """Cancel the queries that run, and wait for the batches in flight.

        A flow that ended just as the signal came may never be heard of, so threads are asked, too.
        One that fails now may do so because the signal ended the engine: it runs again next time.
        """
        self._interrupt()
        deadline_s = time.monotonic() + STOP_WAIT_S
        while self._running and time.monotonic() < deadline_s:
            alive = any(thread.is_alive() for thread in self._threads)
            try:
                task, error = self._ended.get(timeout=STOP_POLL_S)
            except queue.Empty:
                if not alive:
                    break
                continue
            self._settle(task, error and FlowStoppedError(task.flow.name))
        for task in (*self._running, *self._waiting):
            self._outcomes.stopped(task)
