"""Clocks are set right, between updates and amid them: no row depends on what they say.

A clock that ran ahead leaves files, commits and events of the future. A clock that goes back or
ahead while an update runs is that of this process: the kernel's belongs to the whole machine.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import time
from pathlib import Path

import pytest

from millpond.events import UpdateState, recorder
from millpond.storage import LocalStore
from tests.faults.subject import Subject

YEAR_S = 365 * 24 * 3600
# Milliseconds since 1970 in this century, as logs and markers hold them.
TIME_MS = re.compile(r"\b1[6-9]\d{11}\b")


@pytest.fixture
def subject(tmp_path, draw, warm):
    """After its first update."""
    found = Subject.made(tmp_path / "pipeline", draw.randrange(2**32), maxFilesPerTrigger="1")
    found.deliver(3)
    found.check_complete(warm.run(found.folder.root))
    return found


def put_ahead(storage: Path) -> None:
    """Make all that is there that of a clock which was a year ahead."""
    for path in [*storage.rglob("*"), storage]:
        if path.suffix == ".json":
            text = path.read_text()
            path.write_text(TIME_MS.sub(lambda found: str(int(found[0]) + YEAR_S * 1000), text))
        time_s = path.stat().st_mtime + YEAR_S
        os.utime(path, (time_s, time_s))


def test_a_clock_that_was_ahead_is_set_right_between_updates_and_puts_no_upkeep_off(subject, warm):
    """What it noted would otherwise keep old files from being removed until that time."""
    put_ahead(subject.storage)
    subject.deliver(2)
    marker = next(subject.storage.glob("maintenance/**/cleaned.json"))
    assert json.loads(marker.read_text())["cleaned_ms"] > (time.time() + YEAR_S / 2) * 1000
    leftover = subject.table("copied") / ".x.json.0123456789abcdef0123456789abcdef.tmp"
    leftover.touch()
    os.utime(leftover, (1, 1))
    subject.check_complete(warm.run(subject.folder.root))
    assert not leftover.exists()


@pytest.mark.parametrize("jump_s", [-YEAR_S, YEAR_S], ids=["back", "ahead"])
def test_a_clock_is_set_amid_an_update(subject, warm, draw, monkeypatch, jump_s):
    """Right after a table got its next commit."""
    subject.deliver(3)
    log = (
        subject.table(draw.choice(["bronze", "silver", "copied", "seen", "prices"])) / "_delta_log"
    )
    newest = max(int(path.stem) for path in log.glob("?" * 20 + ".json"))
    commit, real_ns, jumped = log / f"{newest + 1:020}.json", time.time_ns, []

    def time_ns() -> int:
        if not jumped and commit.exists():
            jumped.append(commit)
        return real_ns() + (jump_s * 10**9 if jumped else 0)

    class Datetime(dt.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls.fromtimestamp(time_ns() / 10**9, tz)

    monkeypatch.setattr(time, "time_ns", time_ns)
    monkeypatch.setattr(time, "time", lambda: time_ns() / 10**9)
    monkeypatch.setattr(recorder, "datetime", Datetime)
    assert subject.folder.run().state is UpdateState.COMPLETED
    monkeypatch.undo()
    assert jumped
    subject.check_whole()
    subject.deliver(2)
    ended = warm.run(subject.folder.root)
    assert (ended.code, ended.err) == (0, "")
    subject.check_whole()
    subject.check_events_of(ended)
    assert LocalStore().list(subject.layout.staging) == []
