"""A batch is applied only once its plan is durable, whoever wrote the plan."""

from __future__ import annotations

import random

import pytest

from millpond.files import ListedFile
from millpond.storage import LocalStore
from millpond.streaming import Checkpoint
from millpond.streaming.file_log import Entry, FileLog, Unread
from millpond.streaming.micro_batches import run_once
from tests.simulation.durability import Durability
from tests.simulation.faulty_disk import Died, FaultyDisk
from tests.streaming.toy_flow import Stream, append, expected

SEEDS = range(6)


class DyingDisk(FaultyDisk):
    """A process that dies once a file has its name, before the name is durable."""

    def __init__(self, durability, name):
        super().__init__(durability)
        self.name = name

    def sync(self, path):
        if (path / self.name).exists():
            raise Died
        super().sync(path)


@pytest.fixture
def durability(tmp_path):
    for name in ("root", "vault"):
        (tmp_path / name).mkdir()
    return Durability(tmp_path / "root", tmp_path / "vault")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_of_a_killed_process_is_durable_before_its_batch_is_applied(durability, seed):
    source, flow = durability.root / "source", durability.root / "flow"
    append(source, range(3))
    stream = Stream(flow, {"s": source}, LocalStore(FaultyDisk(durability)))
    durability.settle(durability.root)
    with pytest.raises(Died):
        Stream(flow, {"s": source}, LocalStore(DyingDisk(durability, "0"))).run()
    stream.run()
    durability.settle(stream.target.folder)
    durability.lose_power(random.Random(seed))
    stream.run()
    assert stream.target.rows() == expected(range(3))


@pytest.mark.parametrize("seed", SEEDS)
def test_so_is_that_of_a_flow_that_runs_once(durability, seed):
    def run(disk):
        checkpoint = Checkpoint(durability.root / "flow", LocalStore(disk))
        return list(run_once(checkpoint=checkpoint, committed=lambda: None, apply=lambda _: 1))

    with pytest.raises(Died):
        run(DyingDisk(durability, "0"))
    assert run(FaultyDisk(durability)) == [1]
    durability.lose_power(random.Random(seed))
    assert Checkpoint(durability.root / "flow", LocalStore()).numbers() == [0]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_killed_attempt_left_unread_stays_unread(durability, seed):
    """Else the table holds a batch of which a file counts as read that was not."""
    entry = Entry((ListedFile("file:/a", 1, 1), ListedFile("file:/b", 1, 1)))
    unread = Unread(left=frozenset({"file:/b"}))
    FileLog(durability.root / "log", LocalStore(FaultyDisk(durability))).write(1, entry)
    with pytest.raises(Died):
        FileLog(durability.root / "log", LocalStore(DyingDisk(durability, "1.unread.json"))).leave(
            1, unread
        )
    FileLog(durability.root / "log", LocalStore(FaultyDisk(durability))).leave(1, unread)
    durability.lose_power(random.Random(seed))
    assert FileLog(durability.root / "log", LocalStore()).unread(1) == unread
