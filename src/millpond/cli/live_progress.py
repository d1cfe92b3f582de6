"""Progress on a terminal: a table of the update's flows that changes in place."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from millpond.cli.update_view import FlowView, UpdateView, status_word
from millpond.cli.wording import duration, short_count
from millpond.events import Event, FlowStatus, UpdateState

REFRESHES_PER_SECOND = 4
# Lines around the flows: heading, title, the line of those left out, the prompt.
OTHER_LINES = 5
WIDE = 100
NARROW = 80
MIN_NAME_WIDTH = 12
HEADINGS = ("Flow", "Status", "Rows in", "Replaced", "Inserted", "Late", "Dropped", "Time")

_STYLES = {
    FlowStatus.RUNNING: "bold",
    FlowStatus.COMPLETED: "green",
    FlowStatus.IDLE: "green",
    FlowStatus.FAILED: "bold red",
    FlowStatus.SKIPPED: "yellow",
    FlowStatus.STOPPED: "yellow",
    FlowStatus.QUEUED: "dim",
    FlowStatus.EXCLUDED: "dim",
}
# Which flows to show where there is no room for all.
_FIRST = (FlowStatus.FAILED, FlowStatus.RUNNING, FlowStatus.STARTING, FlowStatus.QUEUED)


class LiveProgress:
    """Shows the table while it is entered, and leaves it in its last state; `listen` listens."""

    def __init__(
        self, shorten: Callable[[str], str] = str, *, console: Console | None = None
    ) -> None:
        self.view = UpdateView(shorten)
        self._console = console or Console(highlight=False)
        self._lock = threading.Lock()
        self._live = Live(
            self,
            console=self._console,
            refresh_per_second=REFRESHES_PER_SECOND,
            transient=True,
            # What user code prints goes above the table.
            redirect_stdout=True,
            redirect_stderr=True,
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()
        if self.view.flows:
            self._console.print(flow_table(tuple(self.view.flows.values()), self._console.width))

    def listen(self, event: Event) -> None:
        with self._lock:
            self.view.apply(event)

    def say(self, text: str) -> None:
        """Print a sentence below the table."""
        self._console.print(text, markup=False, highlight=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with self._lock:
            flows = tuple(self.view.flows.values())
            room = max(options.size.height - OTHER_LINES, 1)
            shown = most_relevant(flows, room)
            now = datetime.now(UTC)
            yield Text(_title(self.view, now), style="bold")
            if shown:
                yield flow_table(shown, options.max_width, now=now)
            if len(shown) < len(flows):
                yield Text(f"and {len(flows) - len(shown)} more flows", style="dim")


def flow_table(flows: Sequence[FlowView], width: int, *, now: datetime | None = None) -> Table:
    """Rows of flows. Where the terminal is narrow, counts are rounded and names shortened."""
    gap = 2 if width >= NARROW else 1
    rows = [_cells(flow, width, now or datetime.now(UTC)) for flow in flows]
    widths = [max(map(len, column)) for column in zip(HEADINGS, *rows, strict=True)]
    widths[1] = max(widths[1], len("completed"))  # names don't jump when a status changes
    # Left to itself, the table would shorten the counts as well as the names.
    room = max(width - sum(widths[1:]) - gap * (len(widths) - 1), MIN_NAME_WIDTH)
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="underline")
    for heading in HEADINGS[:2]:
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    table.columns[0].max_width = room
    table.columns[1].min_width = widths[1]
    for heading in HEADINGS[2:]:
        table.add_column(heading, justify="right", no_wrap=True)
    for flow, cells in zip(flows, rows, strict=True):
        style = _STYLES.get(flow.status, "")
        table.add_row(Text(cells[0]), Text(cells[1], style=style), *cells[2:])
    return table


def _cells(flow: FlowView, width: int, now: datetime) -> list[str]:
    counts = flow.counts
    limit = 100_000_000 if width >= WIDE else 100_000
    gone = counts.replaced + counts.removed
    numbers = (counts.rows_in, gone, counts.inserted, counts.late, counts.dropped)
    seconds = flow.seconds(now)
    return [
        flow.name,
        status_word(flow.status),
        *(short_count(number, limit=limit) if flow.batches else "" for number in numbers),
        "" if seconds is None else duration(seconds),
    ]


def most_relevant(flows: Sequence[FlowView], room: int) -> tuple[FlowView, ...]:
    """As many flows as there is room for, in their order: failed and running ones before others."""
    if len(flows) <= room:
        return tuple(flows)
    rank = {status: number for number, status in enumerate(_FIRST)}
    by_rank = sorted(range(len(flows)), key=lambda index: rank.get(flows[index].status, len(rank)))
    return tuple(flows[index] for index in sorted(by_rank[:room]))


def _title(view: UpdateView, now: datetime) -> str:
    if not view.update_id:
        return "Starting"
    states = {
        UpdateState.QUEUED: "starting",
        UpdateState.CREATED: "starting",
        UpdateState.INITIALIZING: "reading source files",
    }
    state = states.get(view.state, view.state.lower().replace("_", " "))
    return f"{view.pipeline_name}: {state}, {duration(view.seconds(now))}"
