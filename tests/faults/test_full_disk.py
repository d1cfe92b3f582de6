"""A disk that is full at some point of an update costs that update, in words, and nothing else.

The first point is one that an update surely comes to;
`MILLPOND_FULL_DISKS=200 pytest tests/faults -k full_disk` tries so many.
"""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from tests.faults.messages import error_classes
from tests.faults.small_disk import LimitedFiles, limited, small_disk
from tests.faults.subject import Subject

POINTS = int(os.environ.get("MILLPOND_FULL_DISKS", "1"))
# About what the first updates write. Later ones write less, and may find room enough.
MOST_BYTES = 400_000
TOLD = {"STORAGE_NOT_WRITABLE", "EVENT_LOG_NOT_WRITABLE"}


@pytest.mark.timeout(0)
def test_a_full_disk_costs_an_update_and_no_row(tmp_path, draw):
    subject = Subject.made(tmp_path / "pipeline", draw.randrange(2**32), maxFilesPerTrigger="1")
    subject.storage.mkdir()
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(subject.storage)) or LimitedFiles(subject.storage)
        subject.storage, subject.inside = disk.seen, disk.inside
        subject.deliver(2)
        ended = subject.run(inside=disk.leave(draw.randrange(disk.too_few_bytes)))
        assert error_classes(ended) & TOLD, ended
        disk.clear()
        for _ in range(POINTS - 1):
            subject.deliver(2)
            ended = subject.run(inside=disk.leave(draw.randrange(MOST_BYTES)))
            assert error_classes(ended) <= TOLD, ended.err
            disk.clear()
        assert not error_classes(subject.complete())


def test_upkeep_by_hand_on_a_full_disk_is_told_and_leaves_the_rows(tmp_path):
    subject = Subject.made(tmp_path / "pipeline", 1)
    subject.storage.mkdir()
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(subject.storage)) or LimitedFiles(subject.storage)
        subject.storage, subject.inside = disk.seen, disk.inside
        for _ in range(3):
            subject.deliver()
            subject.complete()
        ended = subject.start(command="maintain", inside=disk.leave(0)).ended()
        assert error_classes(ended) == {"STORAGE_NOT_WRITABLE"}, ended
        disk.clear()
        ended = subject.start(command="maintain").ended()
        assert (ended.code, ended.err) == (0, "")
        assert not error_classes(subject.complete())


def test_a_disk_that_is_full_from_the_start_is_told_of_at_once(tmp_path):
    subject = Subject.made(tmp_path / "pipeline", 1)
    subject.deliver()
    ended = subject.run(inside=limited("f", 0))
    assert (ended.code, ended.out) == (1, "")
    assert error_classes(ended) == {"STORAGE_NOT_WRITABLE"}
    assert str(subject.storage) in ended.err


def test_a_folder_for_temporary_files_that_is_full_or_gone_costs_nothing(tmp_path):
    """Another one is taken. Where no disk can be mounted, it is a folder that is not there."""
    subject = Subject.made(tmp_path / "pipeline", 1)
    subject.deliver(2)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(temporary))
        if disk is not None:
            subject.inside = disk.inside
            disk.leave(0)
            with pytest.raises(OSError, match="No space"):
                (disk.seen / "file").write_bytes(b"x")
        subject.complete(environment={"TMPDIR": str(temporary if disk else tmp_path / "gone")})
