"""Whoever writes to a table at the same time: what a reader sees is what the log says, commit by commit.

A short run by chance is part of the tests. For a long one, which prints what happened:
`MILLPOND_CONCURRENCY_SECONDS=600 pytest -s tests/concurrency/test_histories.py`, and with
`MILLPOND_CONCURRENCY_SEED` the chances of an earlier one.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.concurrency.foreign_writers import ForeignWriters, wait_for
from tests.concurrency.shared_target import TABLES, SharedTarget
from tests.concurrency.table_history import TableHistory
from tests.concurrency.watchers import Watchers

SECONDS = float(os.environ.get("MILLPOND_CONCURRENCY_SECONDS", "0"))
BATCHES = 12
# The update gave up, and said so: nothing of the batch is in the table.
CLEAR_FAILURES = {"TOO_MANY_COMMIT_CONFLICTS", "DELTA_DATA_FILE_MISSING", "DELTA_COMMIT_CONFLICT"}
ERROR_CLASS = re.compile(r"\[([A-Z_]{6,})\]")


class Updates:
    """Runs `millpond run` again and again, now and then two at once or one that is killed."""

    def __init__(self, target: SharedTarget, choices: random.Random) -> None:
        self.target = target
        self.choices = choices
        self.ends: Counter[str] = Counter()

    def one(self, *, rough: bool) -> None:
        first = self.target.update()
        if rough and self.choices.random() < 0.3:
            time.sleep(self.choices.uniform(0.5, 6))
            first.kill()
            self._ended(self.target.update())
            first.wait()
            self.ends["killed"] += 1
            self._close(first)
            return
        second = None
        if rough and self.choices.random() < 0.3:
            time.sleep(self.choices.uniform(0, 4))
            second = self.target.update()
        self._ended(first)
        if second is not None:
            self._ended(second)

    def _ended(self, update: subprocess.Popen[str]) -> None:
        said, _ = update.communicate(timeout=300)
        assert "Traceback" not in said, said
        found = set(ERROR_CLASS.findall(said))
        if "UPDATE_IN_PROGRESS" in found:
            assert update.returncode == 1
            self.ends["refused"] += 1
        elif update.returncode == 0:
            self.ends["completed"] += 1
        else:
            assert update.returncode == 1, said
            assert found, said
            assert found <= CLEAR_FAILURES, said
            for name in found:
                self.ends[name] += 1

    def _close(self, update: subprocess.Popen[str]) -> None:
        if update.stdout is not None:
            update.stdout.close()


@pytest.mark.timeout(max(300, 3 * SECONDS))
def test_every_state_that_a_reader_saw_is_one_that_the_log_gives(tmp_path: Path) -> None:
    seed = int(os.environ.get("MILLPOND_CONCURRENCY_SEED", random.randrange(10**6)))
    sys.stdout.write(f"MILLPOND_CONCURRENCY_SEED={seed}\n")
    choices = random.Random(seed)
    has_upkeep = choices.random() < 0.5
    target = SharedTarget.made(tmp_path / "pipeline", choices, has_upkeep=has_upkeep)
    paths = [target.table(name) for name in TABLES]
    pause_s = 0.25
    for _ in range(BATCHES):
        target.feed()
    writers = ForeignWriters(target, seed, pause_s, vacuums=bool(SECONDS), compacts=not has_upkeep)
    watchers = Watchers(paths, seed, pause_s, vacuums=bool(SECONDS))
    updates = Updates(target, choices)
    running = []
    deadline = time.monotonic() + SECONDS
    try:
        if SECONDS:
            updates.one(rough=False)
            running = [*writers.start(), *watchers.start()]
            while time.monotonic() < deadline:
                for _ in range(choices.randint(1, BATCHES)):
                    target.feed()
                updates.one(rough=True)
        else:
            update = target.update()
            wait_for(paths)
            running = [*writers.start(), *watchers.start()]
            updates._ended(update)
    finally:
        writers.stop()
        watchers.stop()
        for thread in running:
            thread.join()
    assert not writers.problems, "\n".join(writers.problems)
    assert not watchers.problems, "\n".join(watchers.problems)
    updates.one(rough=False)
    check(target, writers, watchers, updates)


def check(
    target: SharedTarget, writers: ForeignWriters, watchers: Watchers, updates: Updates
) -> None:
    histories = {
        name: TableHistory.replayed(
            target.table(name),
            applied=lambda number, name=name: target.applied(name, number),
            foreign=writers.changes,
        )
        for name in TABLES
    }
    for name, history in histories.items():
        history.check_batches(len(target.batches))
        watchers.look(target.table(name))
    for sight in watchers.sights:
        possible = histories[sight.table].states[sight.first : sight.last + 1]
        assert sight.rows in possible, f"{sight} is none of {possible}"
    conflicts = len(target.conflicts_file.read_text()) if target.conflicts_file.exists() else 0
    seen = {(sight.table, sight.first) for sight in watchers.sights if sight.first == sight.last}
    sys.stdout.write(
        f"batches {len(target.batches)} a table; updates {dict(updates.ends)}\n"
        f"commits {sum(len(history.states) for history in histories.values())}; foreign "
        f"{dict(sum((h.foreign for h in histories.values()), Counter()))}\n"
        f"commits made anew because of them: {conflicts}\n"
        f"not made: {dict(writers.refused)}\n"
        f"readings {dict(Counter(sight.reader for sight in watchers.sights))}, of {len(seen)} "
        f"versions; a file was gone: {dict(watchers.gone)}\n"
    )
