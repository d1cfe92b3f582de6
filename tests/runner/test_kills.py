"""Killed at any write, an update loses nothing and repeats nothing when it runs again."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from millpond.events import UpdateState

PROGRAM = Path(__file__).parent / "killed_update.py"

PIPELINE = """
CREATE STREAMING TABLE bronze AS SELECT * FROM STREAM(landing);
CREATE STREAMING TABLE silver
FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT k, v, s FROM STREAM(bronze);
CREATE STREAMING TABLE copied TBLPROPERTIES (delta.enableDeletionVectors = false)
FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT k, v, s FROM STREAM(bronze);
CREATE MATERIALIZED VIEW gold AS SELECT count(*) AS n, sum(v) AS total FROM silver;
"""
MAX_CALLS = 300


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


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize(
    "refresh", [(), ("bronze", "silver", "copied", "gold")], ids=["update", "refresh"]
)
def test_killed_at_every_write_and_run_again(folder, phase, refresh):
    random_source = random.Random(f"{phase}{refresh}")
    folder.write("pipeline.sql", PIPELINE)
    fed = []
    foreign = folder.table("silver") / "not-of-this-table.parquet"
    for call in range(1, MAX_CALLS):
        new = batch(random_source)
        folder.feed("landing", new)
        fed += [tuple(row.values()) for row in new]
        process = subprocess.run(
            [
                sys.executable,
                PROGRAM,
                folder.root / "spark-pipeline.yml",
                str(call),
                phase,
                *refresh,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if call == 1 or process.returncode == 0:
            foreign.parent.mkdir(parents=True, exist_ok=True)
            foreign.write_bytes(b"belongs to someone else")
        if process.returncode == 0:
            check(folder, fed)
            assert call > 20
            assert foreign.read_bytes() == b"belongs to someone else"
            return
        assert process.returncode == -signal.SIGKILL, process.stderr
        assert folder.run().state is UpdateState.COMPLETED
        check(folder, fed)
    pytest.fail(f"the update did not end within {MAX_CALLS} calls")
