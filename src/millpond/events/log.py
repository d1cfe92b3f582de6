"""Keeps events: those of a running update as lines of a file, all others in a Delta table.

An update writes a line for each event at once, so that a killed one leaves its events behind. When
it ends, the lines become rows of the table in one commit, and so do those that earlier updates
left. Events of files are moved exactly once: the files are numbered, and the commit carries the
highest number. The caller makes sure that one update runs at a time; anybody may read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.errors import MillpondError
from millpond.errors.events import EventLogReadError, EventLogWriteError
from millpond.events.event import Event
from millpond.storage import LocalStore, Store

if TYPE_CHECKING:
    from millpond.events.table import EventTable

# Readers of Delta tables take no notice of names that begin with an underscore.
PENDING_FOLDER = "_pending"
SUFFIX = ".jsonl"


class EventLog:
    """The event log in one folder. `append` and `flush` are for the one update that runs."""

    def __init__(self, folder: Path, store: Store | None = None) -> None:
        self.folder = folder
        self._store: Store = store if store is not None else LocalStore()
        self._pending = folder / PENDING_FOLDER
        self._own_file: Path | None = None
        self._torn = False

    def append(self, event: Event) -> None:
        """Keep an event where a kill of this process can't reach it.

        Raises:
            OSError: It could not be written; `EventLogWriteError` is one.
        """
        if self._own_file is None:
            try:
                number = self._next_number()
            except MillpondError as error:
                raise EventLogWriteError.from_error(str(self.folder), error) from error
            self._own_file = self._pending / f"{number:020d}{SUFFIX}"
        line = json.dumps(event.to_record(), ensure_ascii=False, separators=(",", ":")) + "\n"
        if self._torn:
            line = "\n" + line
        self._torn = True
        self._store.append(self._own_file, line.encode("utf-8"))
        self._torn = False

    def flush(self) -> None:
        """Move all pending events into the table.

        Raises:
            EventLogWriteError: That failed. The events stay pending.
        """
        import duckdb

        try:
            table = self._table
            moved = table.last_moved()
            files = self._pending_files()
            events = [
                event for number, path in files if number > moved for event in self._read_file(path)
            ]
            if events:
                table.add(events, moved=files[-1][0])
            for _, path in files:
                self._store.remove(path)
        except (OSError, MillpondError, duckdb.IOException) as error:
            raise EventLogWriteError.from_error(str(self.folder), error) from error
        self._own_file = None

    def read(self) -> list[Event]:
        """All events, pending ones among them, in the order in which they happened.

        Raises:
            EventLogReadError: The folder holds something else.
        """
        try:
            # The files first: an update that ends now moves its events from there to the table.
            pending = [
                event for _, path in self._pending_files() for event in self._read_file(path)
            ]
            events = {event.id: event for event in self._table.read()}
        except (MillpondError, OSError) as error:
            raise EventLogReadError.from_error(str(self.folder), error) from error
        events |= {event.id: event for event in pending}
        return _in_order(list(events.values()))

    @cached_property
    def _table(self) -> EventTable:
        from millpond.events.table import EventTable

        return EventTable(self.folder, self._store)

    def _next_number(self) -> int:
        files = self._pending_files()
        return max([self._table.last_moved(), *(number for number, _ in files)]) + 1

    def _pending_files(self) -> list[tuple[int, Path]]:
        return [
            (int(name.removesuffix(SUFFIX)), self._pending / name)
            for name in self._store.list(self._pending)
            if name.endswith(SUFFIX) and name.removesuffix(SUFFIX).isdecimal()
        ]

    def _read_file(self, path: Path) -> Iterator[Event]:
        """The events of a file. A line that a kill or a full disk cut short is no event."""
        try:
            data = self._store.read(path)
        except FileNotFoundError:
            return  # Moved into the table since the folder was listed.
        for line in data.split(b"\n"):
            try:
                yield Event.from_record(json.loads(line))
            except (ValueError, KeyError, TypeError):
                continue


def _in_order(events: list[Event]) -> list[Event]:
    """By update, in the order in which updates began; within one by number.

    The clock alone would not do: it may be set back while an update runs.
    """
    began: dict[str, tuple[int, float]] = {}
    for event in events:
        place = (event.sequence_number, event.timestamp.timestamp())
        update = event.origin.update_id
        began[update] = min(began.get(update, place), place)
    return sorted(
        events,
        key=lambda event: (
            began[event.origin.update_id][1],
            event.origin.update_id,
            event.sequence_number,
        ),
    )
