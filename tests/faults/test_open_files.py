"""A process that may open few files says so, and loses nothing.

The first limit is too low for any update, others may do;
`MILLPOND_OPEN_FILES=60 pytest tests/faults -k open_files` tries so many.
"""

from __future__ import annotations

import os

import pytest

from tests.faults.messages import error_classes
from tests.faults.small_disk import limited
from tests.faults.subject import Subject

LIMITS = int(os.environ.get("MILLPOND_OPEN_FILES", "1"))
TOLD = {"STORAGE_NOT_WRITABLE", "EVENT_LOG_NOT_WRITABLE", "ENGINE_START_FAILED"}


@pytest.mark.timeout(0)
def test_too_few_open_files_cost_an_update_and_no_row(tmp_path, draw):
    """A limit that may be raised is: macOS has a low one."""
    subject = Subject.made(tmp_path / "pipeline", draw.randrange(2**32), maxFilesPerTrigger="1")
    subject.deliver(2)
    assert error_classes(subject.run(inside=limited("n", 12))) == {"ENGINE_START_FAILED"}
    for _ in range(LIMITS - 1):
        subject.deliver(2)
        ended = subject.run(inside=limited("n", draw.randint(12, 64)))
        assert error_classes(ended) <= TOLD, ended.err
    subject.complete(inside=limited("S -n", 20))
