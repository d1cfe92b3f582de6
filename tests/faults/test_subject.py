"""The comparing that all tests of faults rest on can fail."""

from __future__ import annotations

import random
from collections import Counter
from urllib.parse import quote

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.faults.sent_files import NAMES, SentFiles
from tests.faults.subject import COLUMNS, Subject


@pytest.fixture
def subject(tmp_path, warm):
    """After an update."""
    found = Subject.made(tmp_path / "pipeline", 1)
    found.deliver(4)
    found.check_complete(warm.run(found.folder.root))
    return found


def take_back(table):
    """Remove the newest commit of a table."""
    max((table / "_delta_log").glob("*.json")).unlink()


def test_a_lost_row_a_lost_event_and_a_doubled_row_are_noticed(subject):
    take_back(subject.table("silver"))
    with pytest.raises(AssertionError, match="silver"):
        subject.check_whole()
    take_back(subject.layout.events)
    with pytest.raises(AssertionError, match="events are gone"):
        subject.check()
    rows = subject.deliveries.wanted["bronze"][-1]
    columns = zip(*rows.elements(), strict=True)
    table = pa.table(dict(zip(COLUMNS["bronze"], columns, strict=True)))
    write_deltalake(subject.table("bronze"), table.slice(0, 1), mode="append")
    with pytest.raises(AssertionError, match="of bronze holds"):
        subject.check()


def test_a_file_that_goes_back_to_an_earlier_version_is_noticed(tmp_path):
    files = SentFiles(tmp_path / "sent", random.Random(1))
    # More often than there are names, so one of them was sent twice.
    for _ in range(len(NAMES) + 1):
        files.send()
    name, versions = max(files.versions.items(), key=lambda item: len(item[1]))
    files.check(Counter((value, quote(name)) for value in versions[-1].elements()))
    with pytest.raises(AssertionError, match="went back"):
        files.check(Counter((value, quote(name)) for value in versions[0].elements()))
