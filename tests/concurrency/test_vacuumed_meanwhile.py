"""A vacuum that keeps nothing takes files away that a batch is about to read."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable
from pyspark.sql.types import LongType, StringType

from millpond.errors.delta import DataFileMissingError
from tests.flows.target import Target, columns

SCHEMA = columns(k=StringType(), v=LongType(), s=LongType())


@pytest.fixture
def prices(tmp_path):
    target = Target(tmp_path, SCHEMA, keys=("k",), sequence="s")
    for number in range(3):
        target.apply([row(f"key {number}", number, 1)])
    return target


def row(key, value, sequence):
    return {"k": key, "v": value, "s": sequence}


def test_a_batch_whose_files_were_compacted_and_vacuumed_is_applied_to_the_new_ones(
    prices, monkeypatch
):
    begin = prices.table.begin
    raced = []

    def begin_and_be_overtaken():
        transaction = begin()
        if not raced:
            raced.append(True)
            table = DeltaTable(prices.table.path)
            table.optimize.compact()
            table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        return transaction

    monkeypatch.setattr(prices.table, "begin", begin_and_be_overtaken)
    assert prices.apply([row("key 1", 9, 2)]).rows_deleted == 1
    held = sorted(prices.rows(), key=lambda found: found["k"])
    assert held == [row("key 0", 0, 1), row("key 1", 9, 2), row("key 2", 2, 1)]


def test_a_file_that_the_newest_version_names_and_that_is_gone_fails_the_batch(prices):
    for path in prices.table.path.glob("*.parquet"):
        path.unlink()
    with pytest.raises(DataFileMissingError):
        prices.apply([row("key 1", 9, 2)])
