"""Picks the events of one update out of a log."""

from __future__ import annotations

from collections.abc import Sequence

from millpond.errors.events import UpdateNotFoundError
from millpond.events.event import Event

ALL = "all"
LATEST = "latest"


def select_update(events: Sequence[Event], update: str | None) -> list[Event]:
    """The events of one update: `latest`, an id or the beginning of one; `all` or `None` for all.

    Raises:
        UpdateNotFoundError: No update has that id, or several ids begin so.
    """
    if update is None or update == ALL:
        return list(events)
    # In the order in which the updates began.
    known = list(dict.fromkeys(event.origin.update_id for event in events))
    if update == LATEST:
        chosen = known[-1:]
    elif update in known:
        chosen = [update]
    else:
        chosen = [candidate for candidate in known if update and candidate.startswith(update)]
        if len(chosen) != 1:
            raise UpdateNotFoundError.from_id(update, matches=chosen, known=known)
    return [event for event in events if event.origin.update_id in chosen]
