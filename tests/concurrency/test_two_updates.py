"""Two updates of one pipeline at once: the second is refused, and the first knows nothing of it."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from millpond.cli.settings import ExitCode
from tests.concurrency.shared_target import TABLES, SharedTarget
from tests.concurrency.table_history import TableHistory

BATCHES = 12
# A source file with which an update, which holds the lock by then, goes on once a file is there.
WAIT = """\
import time
from pathlib import Path

Path({reached!r}).touch()
while not Path({goes_on!r}).exists():
    time.sleep(0.01)
"""


@pytest.fixture
def target(tmp_path: Path) -> SharedTarget:
    made = SharedTarget.made(tmp_path / "pipeline", random.Random(7))
    for _ in range(BATCHES):
        made.feed()
    return made


def ended(update: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = update.communicate(timeout=120)
    return update.returncode, said


def wait_for(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def check(target: SharedTarget) -> None:
    """Every batch is in once, in order, in both tables."""
    for name in TABLES:
        history = TableHistory.replayed(
            target.table(name),
            applied=lambda number, name=name: target.applied(name, number),
            foreign={},
        )
        history.check_batches(BATCHES)
        assert history.states[-1] == target.held(name)


def test_the_second_of_two_updates_is_refused_and_the_first_goes_on(target: SharedTarget) -> None:
    reached, goes_on = target.folder.root / "reached", target.folder.root / "goes_on"
    target.folder.write("wait.py", WAIT.format(reached=str(reached), goes_on=str(goes_on)))
    first = target.update()
    try:
        wait_for(reached.exists)
        code, refused = ended(target.update())
        assert code == ExitCode.FAILURE
        assert "[UPDATE_IN_PROGRESS]" in refused
        assert "Another update of this pipeline is running" in refused
        assert f"process {first.pid}" in refused
    finally:
        goes_on.touch()
        code, said = ended(first)
    assert code == ExitCode.SUCCESS, said
    check(target)


def test_an_update_right_after_one_that_was_killed_goes_on_where_that_one_was(
    target: SharedTarget,
) -> None:
    first = target.update()
    first_batch = target.table("prices") / "_delta_log" / f"{1:020}.json"
    wait_for(first_batch.exists)
    first.send_signal(signal.SIGKILL)
    code, said = ended(target.update())
    assert (code, "UPDATE_IN_PROGRESS" in said) == (ExitCode.SUCCESS, False), said
    assert ended(first)[0] == -signal.SIGKILL
    check(target)
