"""Killed at any write, an update loses nothing and repeats nothing when it runs again."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from millpond.events import UpdateState
from tests.runner.killed_update import killed_update

PIPELINE = """
CREATE STREAMING TABLE bronze AS SELECT * FROM STREAM(landing);
CREATE STREAMING TABLE silver
FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT k, v, s FROM STREAM(bronze);
CREATE STREAMING TABLE copied TBLPROPERTIES (delta.enableDeletionVectors = false)
FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT k, v, s FROM STREAM(bronze);
CREATE MATERIALIZED VIEW gold AS SELECT count(*) AS n, sum(v) AS total FROM silver;
"""
MAX_CALLS = 300
# Each fifth call in turn, from one of the first five on; all of them if this is set.
STEP = 1 if "MILLPOND_EVERY_KILL" in os.environ else 5
# Right after a call is as good as before the next: one of both is tried of each.
PHASES = ("before", "after")


def newest_rows(rows):
    """The closed form: of each key, the rows at its highest sequence."""
    highest = {}
    for k, _, s in rows:
        highest[k] = max(highest.get(k, s), s)
    return Counter(row for row in rows if row[2] == highest[row[0]])


def batch(random_source, count=12):
    return [
        {
            "k": random_source.choice([None, "a", "b", "c", "d"]),
            "v": number,
            "s": random_source.randint(0, 6),
        }
        for number in range(count)
    ]


def check(folder, fed):
    assert Counter(folder.rows("bronze")) == Counter(fed)
    expected = newest_rows(fed)
    assert Counter(folder.rows("silver")) == expected
    assert Counter(folder.rows("copied")) == expected
    total = sum(row[1] * n for row, n in expected.items())
    assert folder.rows("gold") == [(expected.total(), total)]


def calls():
    """The calls of the store at which an update is to die, one after the other."""
    for call in range(random.randint(1, STEP), MAX_CALLS, STEP):
        print(f"dies at call {call}, {PHASES[call % 2]} it")  # noqa: T201 - told if a test fails
        yield call


# What an update imports when it gets there: a child of a process that has it all starts sooner.
PRELOADED = (
    "tests.conftest",
    "tests.runner.killed_update",
    "deltalake",
    "duckdb",
    "millpond.engine.embedded.engine",
    "millpond.runner.embedded.runtime",
    "millpond.sql.file",
    "millpond.state",
    "pysail",
    "pyspark.sql.connect.session",
)


@pytest.fixture(scope="module")
def dies():
    """Run an update that is to die at a call of the store; whether it did."""
    # Children of a process that has no threads, which a fork would leave without.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED])

    def update(folder, call, **arguments):
        spec = folder.root / "spark-pipeline.yml"
        process = context.Process(
            target=killed_update, args=(spec, call, PHASES[call % 2]), kwargs=arguments
        )
        process.start()
        process.join()
        assert process.exitcode in {0, -signal.SIGKILL}
        return process.exitcode != 0

    return update


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "refresh", [(), ("bronze", "silver", "copied", "gold")], ids=["update", "refresh"]
)
def test_killed_at_every_write_and_run_again(folder, dies, refresh):
    random_source = random.Random(f"{refresh}")
    folder.write("pipeline.sql", PIPELINE)
    fed = []
    foreign = folder.table("silver") / "not-of-this-table.parquet"
    for call in calls():
        new = batch(random_source)
        folder.feed("landing", new)
        fed += [tuple(row.values()) for row in new]
        died = dies(folder, call, full_refresh=refresh)
        if len(fed) == len(new):
            foreign.parent.mkdir(parents=True, exist_ok=True)
            foreign.write_bytes(b"belongs to someone else")
        if not died:
            check(folder, fed)
            assert call > 20
            assert foreign.read_bytes() == b"belongs to someone else"
            return
        assert folder.run().state is UpdateState.COMPLETED
        check(folder, fed)
    pytest.fail(f"the update did not end within {MAX_CALLS} calls")


STATEFUL = """
CREATE STREAMING TABLE seen
FLOW REPLACE USING (id) SEQUENCE BY ts BY NAME SELECT DISTINCT id, ts FROM STREAM(a);
CREATE STREAMING TABLE timed AS
SELECT 'met' AS part, a.id, b.id AS other, CAST(NULL AS BIGINT) AS n FROM STREAM(a) JOIN STREAM(b) ON a.id = b.id
UNION ALL
SELECT 'outer', x.id, y.id, CAST(NULL AS BIGINT) FROM STREAM(a) WATERMARK ts DELAY OF INTERVAL 1 MINUTE AS x
LEFT JOIN STREAM(b) WATERMARK ts DELAY OF INTERVAL 1 MINUTE AS y
ON x.id = y.id AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 5 MINUTES
UNION ALL
SELECT 'window' AS part, minute(window.start) AS id, CAST(NULL AS BIGINT) AS other, count(*) AS n
FROM STREAM(a) WATERMARK ts DELAY OF INTERVAL 1 MINUTE GROUP BY window(ts, '5 minutes');
"""
START = datetime(2024, 1, 1, tzinfo=UTC)


class Hours:
    """An hour of events an update, in two streams, and what must have come out of them by then.

    Ids are of the hour. The last event of an hour, at 45 minutes, lets out what is before, and is
    itself let out by the next hour's. No row is late.
    """

    def __init__(self):
        self.seen: list[tuple[object, ...]] = []
        self.timed: list[tuple[object, ...]] = []
        self.pending: list[tuple[object, ...]] = []
        self.hour = 0

    def next(self, folder):
        base = self.hour * 100
        # By id: minutes in a, in b. The third come too late for the range of time.
        events = {1: ([0, 0], [2]), 2: ([3], []), 3: ([7], [20]), 4: ([], [8]), 5: ([11], [11])}
        a = [(base + n, minute) for n, (minutes, _) in events.items() for minute in minutes]
        b = [(base + n, minute) for n, (_, minutes) in events.items() for minute in minutes]
        folder.feed("a", [self._row(*each) for each in [*a, (base + 6, 45)]])
        folder.feed("b", [self._row(*each) for each in [*b, (base + 7, 45)]])
        self.seen += {(n, self._time(minute)) for n, minute in [*a, (base + 6, 45)]}
        in_b = dict(b)
        self.timed += self.pending
        for n, minute in a:
            if n in in_b:
                self.timed.append(("met", n, n, None))
            met = n in in_b and minute <= in_b[n] <= minute + 5
            self.timed.append(("outer", n, n if met else None, None))
        self.timed += [("window", 0, None, 3), ("window", 5, None, 1), ("window", 10, None, 1)]
        self.pending = [("outer", base + 6, None, None), ("window", 45, None, 1)]
        self.hour += 1

    def _time(self, minute):
        return START + timedelta(hours=self.hour, minutes=minute)

    def _row(self, number, minute):
        return {"id": number, "ts": self._time(minute)}


def orphans(folder):
    """Files of rows that no version of the state names."""
    found: set[Path] = set()
    for state in folder.layout.checkpoints.glob("*/*/state"):
        versions = [json.loads(path.read_text()) for path in (state / "versions").iterdir()]
        named = {
            file["name"]
            for version in versions
            for parts in version["rows"].values()
            for part in parts.values()
            for run in part["runs"]
            for file in run
        }
        found |= {path for path in (state / "rows").glob("*/*") if path.name not in named}
    return found


@pytest.mark.timeout(1200)
def test_killed_at_every_write_of_state_and_commits_and_run_again(folder, dies):
    folder.write("pipeline.sql", STATEFUL)
    hours = Hours()
    left_behind = set()
    for call in calls():
        hours.next(folder)
        died = dies(folder, call, within=["state", "tables"])
        if died:
            assert folder.run().state is UpdateState.COMPLETED
        assert Counter(folder.rows("seen")) == Counter(hours.seen)
        assert Counter(folder.rows("timed")) == Counter(hours.timed)
        # What a killed attempt leaves goes with the next batch, at the latest.
        assert not left_behind & orphans(folder)
        left_behind = orphans(folder)
        if not died:
            assert call > 10
            assert not left_behind
            return
    pytest.fail(f"the update did not end within {MAX_CALLS} calls")
