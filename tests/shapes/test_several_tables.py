"""Rows that are kept stay themselves where the query above names columns of several tables."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tests.pipeline_folder import SPEC, PipelineFolder
from tests.readers import read_with_delta_rs

ORDERS = pa.schema([("id", pa.int64()), ("k", pa.string()), ("at", pa.timestamp("us", "UTC"))])
WINDOWS = (
    "SELECT {columns}, sum(o.id) AS ids FROM "
    "(SELECT * FROM STREAM orders WATERMARK at DELAY OF INTERVAL 0 MINUTES) AS o "
    "JOIN names AS n ON o.k = n.k GROUP BY {keys}"
)
JOINS = (
    "SELECT a.id AS a, b.id AS b, c.id AS c FROM STREAM orders AS a "
    "JOIN STREAM payments AS b ON a.k = b.k JOIN STREAM parcels AS c ON a.k = c.k AND b.k = c.k"
)


@pytest.fixture
def folder(tmp_path: Path) -> PipelineFolder:
    (tmp_path / "spark-pipeline.yml").write_text(SPEC, encoding="utf-8")
    found = PipelineFolder(tmp_path)
    found.feed("names", pa.table({"k": ["a", "b"], "name": ["Ann", "Bo"]}))
    for name in ("orders", "payments", "parcels"):
        found.feed(name, ORDERS.empty_table())
    return found


def update(folder: PipelineFolder, query: str, **rows: list[tuple[int, str, int]]) -> None:
    """Feed rows, each with its minute past ten, and run the query as a flow."""
    for name, found in rows.items():
        values = [
            {"id": number, "k": key, "at": datetime(2026, 1, 1, 10, minute, tzinfo=UTC)}
            for number, key, minute in found
        ]
        folder.feed(name, pa.Table.from_pylist(values, schema=ORDERS))
    folder.write("t.sql", f"CREATE OR REFRESH STREAMING TABLE t AS {query}")
    result = folder.run()
    assert [flow.error for flow in result.flows if flow.error] == []


def rows(folder: PipelineFolder) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in read_with_delta_rs(folder.table("t")))


@pytest.mark.parametrize(
    "time", ["window(o.at, '10 minutes')", "session_window(o.at, '3 minutes')"]
)
def test_windows_count_each_row_of_every_batch_once(folder: PipelineFolder, time: str) -> None:
    query = WINDOWS.format(columns="n.name", keys=f"{time}, o.k, n.name")
    for row in ((1, "a", 1), (2, "b", 2), (3, "a", 3), (4, "a", 50)):
        update(folder, query, orders=[row])
    assert rows(folder) == [("Ann", 4), ("Bo", 2)]


def test_joins_give_each_pair_of_every_batch_once(folder: PipelineFolder) -> None:
    update(folder, JOINS, orders=[(1, "a", 1)], payments=[(10, "a", 1)])
    update(folder, JOINS, orders=[(2, "a", 1)])
    update(folder, JOINS, parcels=[(100, "a", 1)])
    assert rows(folder) == [(1, 10, 100), (2, 10, 100)]


def test_a_second_table_can_be_named_while_windows_are_open(folder: PipelineFolder) -> None:
    window = "window(o.at, '10 minutes')"
    update(folder, WINDOWS.format(columns="'one' AS a", keys=window), orders=[(1, "a", 1)])
    query = WINDOWS.format(columns="max(n.name) AS a", keys=window)
    update(folder, query, orders=[(2, "b", 2)])
    update(folder, query, orders=[(3, "a", 50)])
    assert rows(folder) == [("Bo", 3)]
