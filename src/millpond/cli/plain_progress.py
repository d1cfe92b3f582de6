"""Progress as plain lines, for pipes and logs: one where something begins or ends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Self

import click

from millpond.cli.update_view import FlowView, UpdateView, status_word
from millpond.cli.wording import duration, plural
from millpond.events import Event, FlowStatus

# A flow of many short batches must not fill a log.
BATCH_LINE_EVERY = timedelta(seconds=5)


class PlainProgress:
    """Prints lines as events come in; `listen` is the listener."""

    def __init__(
        self, shorten: Callable[[str], str] = str, *, write: Callable[[str], None] = click.echo
    ) -> None:
        self.view = UpdateView(shorten)
        self._write: Callable[[str], None] | None = write
        self._last_line: dict[str, Event] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def listen(self, event: Event) -> None:
        began = not self.view.update_id
        flow = self.view.apply(event)
        if began:
            self._print(f"Update {self.view.update_id[:8]} of pipeline {self.view.pipeline_name}")
        if flow is None:
            return
        line = self._line(flow, event)
        if line is not None:
            self._last_line[flow.name] = event
            self._print(f"{flow.name}: {line}")

    def say(self, text: str) -> None:
        """Print a line after those of the flows."""
        self._print(text)

    def _line(self, flow: FlowView, event: Event) -> str | None:
        if flow.status in {FlowStatus.STARTING, FlowStatus.RUNNING}:
            if flow.name not in self._last_line:
                return "running"
            if event.timestamp - self._last_line[flow.name].timestamp < BATCH_LINE_EVERY:
                return None
            return ", ".join(filter(None, (plural(flow.batches, "batch"), flow.counts.words())))
        if flow.status.is_final and flow.status is not FlowStatus.EXCLUDED:
            return _final_line(flow, event, reason=self._reason(event))
        return None

    def _reason(self, event: Event) -> str:
        """What the message gives as the reason: all after its first colon, on one line."""
        return self.view.shorten(event.message.partition(": ")[2].partition("\n")[0])

    def _print(self, line: str) -> None:
        if self._write is None:
            return
        try:
            self._write(line)
        except (BrokenPipeError, OSError):
            # Nobody reads on; the update itself is worth finishing.
            self._write = None


def _final_line(flow: FlowView, event: Event, *, reason: str) -> str:
    line = status_word(flow.status)
    if flow.status in {FlowStatus.FAILED, FlowStatus.SKIPPED}:
        return f"{line}: {reason}" if reason else line
    seconds = flow.seconds(event.timestamp)
    if seconds is not None:
        line += f" in {duration(seconds)}"
    if flow.status is FlowStatus.STOPPED:
        return line
    return f"{line}: {flow.counts.words() or 'nothing new'}"
