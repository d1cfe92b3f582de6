"""Choosing one update's events by latest, an id or its beginning."""

import pytest

from millpond.errors.events import UpdateNotFoundError
from millpond.events import UpdateState, select_update


@pytest.fixture
def events(record, heard):
    for name in ("abc-1", "abd-2", "xyz-3"):
        record(name).update_progress(UpdateState.RUNNING)
    return heard


@pytest.mark.parametrize(
    ("update", "chosen"),
    [
        (None, ["abc-1", "abd-2", "xyz-3"]),
        ("all", ["abc-1", "abd-2", "xyz-3"]),
        ("latest", ["xyz-3"]),
        ("abd-2", ["abd-2"]),
        ("abc", ["abc-1"]),
    ],
)
def test_selection(events, update, chosen):
    assert [event.origin.update_id for event in select_update(events, update)] == chosen


def test_no_update_has_run_yet():
    assert select_update([], "latest") == []


@pytest.mark.parametrize(
    ("update", "words"), [("ab", "2 updates"), ("q", "no update 'q'"), ("", "no update ''")]
)
def test_an_id_that_names_no_single_update_is_refused(events, update, words):
    with pytest.raises(UpdateNotFoundError, match=words):
        select_update(events, update)
