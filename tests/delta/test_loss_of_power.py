"""What a loss of power takes, and what must not rest on it."""

from __future__ import annotations

import random
import time
from collections import Counter

import pytest
from deltalake import DeltaTable

from millpond.delta import Metadata, Table
from millpond.maintenance.log_cleanup import clean_log
from millpond.storage import LocalStore
from millpond.streaming import DeltaSource
from tests.delta.tables import KEY_VALUE, TABLE_ID, append
from tests.readers import READERS
from tests.simulation.durability import Durability
from tests.simulation.faulty_disk import Died, FaultyDisk

SEEDS = range(6)


@pytest.fixture
def durability(tmp_path):
    for name in ("root", "vault"):
        (tmp_path / name).mkdir()
    return Durability(tmp_path / "root", tmp_path / "vault")


@pytest.fixture
def table(durability):
    table = Table(durability.root / "t", LocalStore(FaultyDisk(durability)))
    table.create(Metadata(TABLE_ID, KEY_VALUE, (), {"delta.checkpointInterval": "2"}))
    return table


@pytest.mark.parametrize("seed", SEEDS)
def test_a_checkpoint_is_whole_or_not_there(durability, table, seed):
    """Other readers fail at half a checkpoint under its full name."""
    for number in range(3):
        append(table, f"SELECT {number} AS k, 'a' AS v")
    assert list((table.path / "_delta_log").glob("*.checkpoint.parquet"))
    durability.lose_power(random.Random(seed))
    assert Counter(row["k"] for row in READERS["delta-rs"](table.path)) == Counter(range(3))
    assert DeltaTable(table.path).version() == 3


class DyingAfterCommit(FaultyDisk):
    """A process that dies once version 1 has its name, before the name is durable."""

    def sync(self, path):
        if (path / f"{1:020}.json").exists():
            raise Died
        super().sync(path)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_batch_is_planned_over_commits_that_are_durable(durability, table, seed):
    """Else its plan says that a version was read which, later, may be another one."""
    with pytest.raises(Died):
        append(
            Table(table.path, LocalStore(DyingAfterCommit(durability))), "SELECT 1 AS k, 'a' AS v"
        )
    source = DeltaSource(Table(table.path, LocalStore(FaultyDisk(durability))))
    assert source.latest_offset()["version"] == 2
    durability.lose_power(random.Random(seed))
    assert Table(table.path).snapshot().version == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_entries_are_cleaned_up_once_the_checkpoint_that_stands_for_them_is_durable(
    durability, table, seed
):
    append(table, "SELECT 1 AS k, 'a' AS v")
    DeltaTable(table.path).create_checkpoint()
    in_a_year_ms = time.time_ns() // 1_000_000 + 365 * 24 * 3600 * 1000
    snapshot = table.snapshot()
    report = clean_log(table, snapshot, retention_ms=0, now_ms=in_a_year_ms)
    assert report.log_files_removed == 1
    durability.synced(table.path / "_delta_log")
    durability.lose_power(random.Random(seed))
    assert Table(table.path).snapshot().version == 1
