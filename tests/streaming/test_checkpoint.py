"""The checkpoint: planned batches are written once, read back whole, or refused."""

import pytest

from millpond.errors.streaming import CheckpointConflictError, CheckpointUnreadableError
from millpond.storage import LocalStore
from millpond.streaming.checkpoint import Checkpoint, PlannedBatch, SourceRange

BATCH = PlannedBatch(
    3,
    {
        "main.shop.`örders`#2": SourceRange(
            identity="7a1b",
            start={"version": 4, "index": -1, "initial_snapshot": False},
            end={"version": 5, "index": 2, "initial_snapshot": False},
            columns={"type": "struct", "fields": []},
        )
    },
)


@pytest.fixture
def checkpoint(tmp_path):
    return Checkpoint(tmp_path / "flow", LocalStore())


def test_a_planned_batch_is_read_back_as_it_was_written(checkpoint, tmp_path):
    assert checkpoint.numbers() == []
    checkpoint.plan(BATCH)
    again = Checkpoint(tmp_path / "flow", LocalStore())
    assert again.numbers() == [3]
    assert again.read(3) == BATCH


def test_a_batch_is_planned_once(checkpoint):
    checkpoint.plan(BATCH)
    with pytest.raises(CheckpointConflictError):
        checkpoint.plan(PlannedBatch(3))
    assert checkpoint.read(3) == BATCH


def test_numbers_are_in_the_order_of_numbers(checkpoint):
    for number in (0, 1, 2, 9, 10, 11):
        checkpoint.plan(PlannedBatch(number))
    assert checkpoint.numbers() == [0, 1, 2, 9, 10, 11]


def test_every_torn_file_is_refused(checkpoint):
    checkpoint.plan(BATCH)
    path = checkpoint.folder / "offsets" / "3"
    whole = path.read_bytes()
    for length in range(len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointUnreadableError, match="offsets/3"):
            checkpoint.read(3)


@pytest.mark.parametrize(
    "content",
    [
        b"\x00\xff\xfe",
        b"null",
        b"[]",
        b"17",
        b'{"batch": 3}',
        b'{"format": "1", "batch": 3, "sources": {}}',
        b'{"format": 1, "batch": 2, "sources": {}}',
        b'{"format": 1, "batch": 3}',
        b'{"format": 1, "batch": 3, "sources": []}',
        b'{"format": 1, "batch": 3, "sources": {"t": 5}}',
        b'{"format": 1, "batch": 3, "sources": {"t": {"identity": "a"}}}',
        b'{"format": 1, "batch": 3, "sources": {"t": {"identity": "a", "start": 1, "end": 2, "columns": {}}}}',
    ],
)
def test_a_file_that_holds_something_else_is_refused(checkpoint, content):
    path = checkpoint.folder / "offsets" / "3"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(CheckpointUnreadableError):
        checkpoint.read(3)


def test_a_file_of_a_newer_format_says_so(checkpoint):
    path = checkpoint.folder / "offsets" / "0"
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"format": 2, "batch": 0, "sources": {}}')
    with pytest.raises(CheckpointUnreadableError, match="format 2") as refused:
        checkpoint.read(0)
    assert "newer millpond" in (refused.value.hint or "")


def test_a_missing_file_is_refused(checkpoint):
    with pytest.raises(CheckpointUnreadableError, match="missing"):
        checkpoint.read(0)


def test_pruning_keeps_the_newest_and_all_that_is_not_committed(checkpoint):
    for number in range(8):
        checkpoint.plan(PlannedBatch(number))
    checkpoint.prune(committed=5, keep=3)
    assert checkpoint.numbers() == [3, 4, 5, 6, 7]


def test_pruning_removes_what_killed_writes_left_and_nothing_foreign(checkpoint):
    checkpoint.plan(PlannedBatch(0))
    offsets = checkpoint.folder / "offsets"
    (offsets / ".1.0123.tmp").write_bytes(b"{")
    (offsets / "notes.txt").write_text("mine")
    (offsets / "0.bak").write_text("mine")
    checkpoint.prune(committed=0)
    assert sorted(path.name for path in offsets.iterdir()) == ["0", "0.bak", "notes.txt"]
