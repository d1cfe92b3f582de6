"""Rows that outgrow DuckDB's memory are stored, found and merged all the same."""

from __future__ import annotations

from contextlib import closing

import pytest

from millpond.delta import connect
from millpond.state import compaction, row_files
from millpond.state.version import Versions
from millpond.storage import LocalStore


@pytest.fixture
def small(tmp_path):
    """A DuckDB that can't sort what the tests store."""
    spill = tmp_path / "spill"
    with closing(connect(temporary_folder=spill, memory_limit="60MB", threads=2)) as opened:
        yield opened


def counts(connection, select):
    return connection.execute(
        f"SELECT count(*), count(DISTINCT row_id), min(length(v)), max(length(v)) FROM ({select})"
    ).fetchone()


@pytest.mark.parametrize("key", ["r", "r % 2"])
def test_rows_longer_than_can_be_sorted_are_stored_and_merged(
    state, small, tmp_path, monkeypatch, key
):
    monkeypatch.setattr(compaction, "RUNS_MERGED", 3)
    monkeypatch.setattr(row_files, "_ROW_GROUPS", "ROW_GROUP_SIZE 2048")
    batch = state.begin(0)
    select = f"SELECT {key} AS k, repeat(md5(CAST(r AS VARCHAR)), 120) AS v FROM range(20000) t (r)"
    added = batch.rows("o").add(small, select, keys=["k"])
    assert counts(small, added) == (20000, 20000, 3840, 3840)
    batch.commit({})
    stored = state.begin(1).rows("o")
    assert counts(small, stored.live()) == (20000, 20000, 3840, 3840)
    one = stored.matching(small, "SELECT 1 AS k", keys=["k"])
    assert counts(small, one)[0] == {"r": 1, "r % 2": 10000}[key]
    version = Versions(tmp_path / "state" / "versions", LocalStore()).read(0)
    assert any(len(run) > 1 for run in version.rows["o", "rows"].runs)
