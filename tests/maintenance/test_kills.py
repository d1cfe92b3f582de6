"""Killed at any call of the store, upkeep loses no row, and the next one finishes the work."""

import multiprocessing
import signal

import pytest

from millpond.delta import Table
from tests.delta.tables import append, create, delete_where, sorted_rows
from tests.maintenance.conftest import K_V, make_older, seen_by_all, upkeep
from tests.maintenance.killed_upkeep import by_hand
from tests.readers import read_with_delta_rs

MOMENTS = 400


@pytest.fixture(scope="module")
def processes():
    """Children of a process that has no threads, which a fork would leave without."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.maintenance.killed_upkeep", "duckdb", "deltalake"])
    return context


@pytest.mark.timeout(900)
def test_killed_at_every_moment(tmp_path, processes):
    """Compaction, a checkpoint, a vacuum and a cleaned log, all in one go."""
    properties = {"deletedFileRetentionDuration": "0 hours", "logRetentionDuration": "0 hours"}
    table = create(tmp_path / "t", K_V, **properties)
    for number in range(21):
        append(table, f"SELECT range * 21 + {number} AS k, 'v' AS v FROM range(10)")
    delete_where(table, "k % 5 = 0")
    expected = seen_by_all(table.path)
    for moment in range(1, MOMENTS):
        process = processes.Process(target=by_hand, args=(table.path, moment))
        process.start()
        process.join()
        assert process.exitcode in {0, -signal.SIGKILL}
        assert sorted_rows(read_with_delta_rs(table.path)) == expected, moment
        if process.exitcode == 0:
            break
        # More to do for the next one.
        append(Table(table.path), "SELECT 1 AS k, 'v' AS v")
        expected = sorted([*expected, (1, "v")], key=repr)
    assert process.exitcode == 0
    assert moment > 20
    make_older(table.path, days=1)
    upkeep(Table(table.path), "k").by_hand()
    after = Table(table.path).snapshot()
    assert len(after.files) == 1
    left = {path for path in table.path.rglob("*") if path.is_file()}
    log = {path for path in left if "_delta_log" in path.parts}
    assert {path.name for path in left - log} == {*after.files}
    assert seen_by_all(table.path) == expected
