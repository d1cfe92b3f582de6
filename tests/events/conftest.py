"""A recorder whose events a test can look at."""

from collections.abc import Callable
from pathlib import Path

import pytest

from millpond.events import Event, EventLog, Recorder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "events"


@pytest.fixture
def heard() -> list[Event]:
    """The events that the recorder's listener was told of."""
    return []


@pytest.fixture
def record(folder: Path, heard: list[Event]) -> Callable[..., Recorder]:
    """Makes a recorder of an update, with an event log of its own instance."""

    def make(update_id: str = "update-1", **arguments) -> Recorder:
        return Recorder(
            pipeline_name="shop",
            pipeline_id="pipeline-1",
            update_id=update_id,
            log=EventLog(folder),
            listeners=[*arguments.pop("listeners", []), heard.append],
            **arguments,
        )

    return make
