"""Storage that can't be written is told of, and nothing in it changes."""

from __future__ import annotations

from contextlib import ExitStack

from tests.faults.messages import error_classes
from tests.faults.small_disk import limited, small_disk
from tests.faults.subject import Subject


def test_read_only_storage_costs_an_update_and_no_row(tmp_path):
    """Where no disk can be mounted, no file can get any content instead."""
    subject = Subject.made(tmp_path / "pipeline", 1)
    subject.storage.mkdir()
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(subject.storage))
        if disk is not None:
            subject.storage, subject.inside = disk.seen, disk.inside
        subject.deliver(2)
        subject.complete()
        before = sorted(subject.storage.rglob("*"))
        subject.deliver(2)
        if disk is not None:
            disk.read_only()
        ended = subject.run(inside=() if disk else limited("f", 0))
        assert ended.code == 1
        assert error_classes(ended) == {"STORAGE_NOT_WRITABLE"}
        assert str(tmp_path / "pipeline" / "storage") in ended.err
        assert sorted(subject.storage.rglob("*")) == before
        if disk is not None:
            disk.read_only(is_so=False)
        subject.complete()
