"""What is removed while an update runs is missed in words, and comes back with all rows.

The first is one that a running flow can't do without; others fall at random moments.
`MILLPOND_REMOVED_FOLDERS=100 pytest tests/faults -k removed` removes so many.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tests.faults.messages import error_classes
from tests.faults.subject import Subject

REMOVALS = int(os.environ.get("MILLPOND_REMOVED_FOLDERS", "1"))
FOLDERS = {
    "storage": "",
    "a table": "tables/main/sales/silver",
    "a table that others read": "tables/main/sales/bronze",
    "a log": "tables/main/sales/silver/_delta_log",
    "a log that others read": "tables/main/sales/bronze/_delta_log",
    "a checkpoint": "checkpoints/main-2esales-2esilver",
    "all checkpoints": "checkpoints",
    "batches in flight": "staging",
    "columns of files": "schemas",
    "the event log": "events",
}
# What the flow `silver` needs in every batch.
NEEDED = ("storage", "a table", "a log")


@pytest.mark.timeout(0)
def test_a_folder_that_is_removed_amid_an_update_costs_no_row(tmp_path, draw, warm):
    for number in range(REMOVALS):
        is_first = number == 0
        name = draw.choice(NEEDED if is_first else list(FOLDERS))
        print(f"{name} is removed")  # noqa: T201 - shown where it fails
        subject = Subject.made(
            tmp_path / str(number), draw.randrange(2**32), maxFilesPerTrigger="1"
        )
        subject.deliver(2)
        began_s = time.monotonic()
        subject.check_complete(warm.run(subject.folder.root))
        whole_s = time.monotonic() - began_s
        subject.deliver(6)
        folder = subject.storage / FOLDERS[name]

        def remove(_pid: int, folder: Path = folder) -> None:
            shutil.rmtree(folder, ignore_errors=True)

        ended = warm.disturbed(
            subject.folder.root,
            after_s=0 if is_first else draw.uniform(0, whole_s),
            disturb=remove,
            once_said="silver: running" if is_first else "",
        )
        told = error_classes(ended)
        assert told or not is_first, ended
        assert bool(ended.code) == bool(told - {"EVENT_LOG_NOT_WRITABLE"}), ended
        _comes_back(subject, warm)


def _comes_back(subject, warm):
    """With the next update, or with what that says is to be done."""
    ended = warm.run(subject.folder.root)
    if "DELTA_LOG_CORRUPT" in ended.err:
        # A commit came right before the last of the older entries were removed.
        error_classes(ended)
        assert "remove the table's folder" in ended.err
        shutil.rmtree(Path(ended.err.split("'")[1]).parent)
        ended = warm.run(subject.folder.root)
    if ended.code:
        error_classes(ended)
        assert "--full-refresh" in ended.err, ended.err
        ended = subject.start("--full-refresh-all").ended()
    assert (ended.code, ended.err) == (0, ""), ended
    subject.check_whole()
