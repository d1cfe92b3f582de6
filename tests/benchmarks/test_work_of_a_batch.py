"""How much work a batch is, counted and not timed: the same on every machine, however busy.

Counts may fall; then lower the limit here. One that rises is what a benchmark would find later, as
time. Files and rows are those that DuckDB says it has scanned.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest
from benchmarks.measuring import folder_bytes
from benchmarks.peers.millpond import Flow, Pipeline
from benchmarks.workload import Workload, make_batches, make_table

from millpond.delta import shared_connection
from millpond.storage import LocalStore


class Counting:
    """A connection of DuckDB that adds up what its statements scan."""

    def __init__(self, connection, counts):
        self._connection = connection
        self._counts = counts
        self._pending = False
        connection.execute("SET enable_profiling = 'no_output'")

    def execute(self, *words):
        self._settle()
        self._counts["statements"] += 1
        self._pending = True
        return self._connection.execute(*words)

    def cursor(self):
        return Counting(self._connection.cursor(), self._counts)

    def close(self):
        self._settle()
        self._connection.close()

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def _settle(self):
        """Count the last statement, whose result has been fetched by now."""
        if self._pending:
            self._pending = False
            text = self._connection.get_profiling_information()
            for operator in json.loads(text or "{}").get("operator", []):
                self._add(operator)

    def _add(self, operator):
        files = operator.get("extra_info", {}).get("Total Files Read")
        if files is not None:
            self._counts["files scanned"] += int(files)
            self._counts["rows scanned"] += operator["rows_scanned"]
            self._counts["bytes scanned"] += operator["bytes_scanned"]
        for child in operator.get("children", []):
            self._add(child)


@pytest.fixture
def counts(monkeypatch):
    """Counts of the work since the last `clear`, of flows and of the store."""
    found: Counter[str] = Counter()
    opened = shared_connection._open
    monkeypatch.setattr(shared_connection, "_open", lambda: Counting(opened(), found))
    for name in ("read", "list", "put", "put_if_absent", "append", "sync", "exists"):
        monkeypatch.setattr(LocalStore, name, counted(name, getattr(LocalStore, name), found))
    return found


def counted(name, method, found):
    def call(store, *words):
        found[f"store: {name}"] += 1
        result = method(store, *words)
        if name == "list":
            found["names listed"] += len(result)
        return result

    return call


RANDOM = Workload(keys=3_000, files=16, batches=4, batch_keys=40)
CLUSTERED = Workload(keys=3_000, files=16, batches=4, batch_keys=40, clustered=True)
ROWS = 40 * 20

# The work of the fourth batch: files that earlier ones wrote are part of it.
OF_A_BATCH = {
    "random": Counter(
        {
            "statements": 11,
            "files scanned": 22,
            # Four times those of the batch: it is read three times, and of the table its keys' rows.
            "rows scanned": 4 * ROWS,
            "bytes scanned": 38_000,
            "store: exists": 1,
            "store: read": 4,
            "store: sync": 1,
            "store: put_if_absent": 2,
            "bytes on disk": 40_000,
        }
    ),
    "clustered": Counter(
        {
            "statements": 10,
            # Of the 16 files of the table one, beside the batch's own.
            "files scanned": 4,
            "rows scanned": 4 * ROWS,
            "bytes scanned": 29_000,
            "store: exists": 1,
            "store: read": 2,
            "store: sync": 1,
            "store: put_if_absent": 2,
            "bytes on disk": 22_000,
        }
    ),
}
# With some to spare of what does not depend on rows alone.
OF_AN_UPDATE = Counter(
    {
        "statements": 11,
        "files scanned": 7,
        "rows scanned": 4 * ROWS,
        "bytes scanned": 44_000,
        "store: exists": 30,
        # Of both tables' logs, each entry since the last checkpoint of the log.
        "store: read": 52,
        "store: list": 14,
        "names listed": 56,
        "store: append": 13,
        "store: sync": 3,
        "store: put_if_absent": 5,
    }
)


@pytest.mark.parametrize(
    ("workload", "most"),
    [(RANDOM, OF_A_BATCH["random"]), (CLUSTERED, OF_A_BATCH["clustered"])],
    ids=OF_A_BATCH,
)
def test_a_batch_of_a_flow_is_no_more_work_than_it_was(tmp_path, counts, workload, most):
    make_table(workload, tmp_path / "table", vectors=True)
    peer = Flow(tmp_path)
    peer.open()
    for number, batch in enumerate(make_batches(workload, tmp_path / "batches")):
        counts.clear()
        before = folder_bytes(peer.table)
        peer.apply(number, batch)
    counts["bytes on disk"] = folder_bytes(peer.table) - before
    assert counts <= most, sorted((counts - most).items())


def test_an_update_of_a_pipeline_is_no_more_work_than_it_was(tmp_path, counts):
    make_table(RANDOM, tmp_path / "base", vectors=True)
    peer = Pipeline(tmp_path)
    peer.prepare(sorted((tmp_path / "base").glob("*.parquet")))
    peer.open()
    for number, batch in enumerate(make_batches(RANDOM, tmp_path / "batches")):
        staged = peer.stage(number, batch)
        counts.clear()
        peer.apply(number, staged)
    assert counts <= OF_AN_UPDATE, sorted((counts - OF_AN_UPDATE).items())


def test_a_late_commit_of_a_long_log_is_no_more_work_than_an_early_one(tmp_path, counts):
    """Where nobody puts files together: what a commit reads of the log does not grow with it."""
    workload = Workload(keys=500, files=1, batches=35, batch_keys=5, clustered=True)
    make_table(workload, tmp_path / "table", vectors=True)
    peer = Flow(tmp_path)
    peer.open()
    reads = []
    for number, batch in enumerate(make_batches(workload, tmp_path / "batches")):
        counts.clear()
        peer.apply(number, batch)
        reads.append(counts["store: read"] + counts["store: exists"] + counts["store: list"])
    assert max(reads) <= 6
