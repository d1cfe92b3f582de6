"""However many batches there were, the files are few, and rows are rarely written again."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from millpond.state import compaction
from millpond.state.compaction import RUNS_MERGED, runs_to_merge
from millpond.state.version import RowFile, Versions
from millpond.storage import LocalStore

MEGABYTE = 1 << 20


def run_of(size_bytes):
    return (RowFile("f", rows=1, size_bytes=size_bytes, hash_min=0, hash_max=1),)


@pytest.mark.parametrize("sizes", ["equal", "growing", "random"])
def test_runs_stay_few_and_bytes_are_written_a_logarithmic_number_of_times(sizes):
    draw = random.Random(7)
    runs, arrived, written = [], 0, 0
    for number in range(2000):
        size = {"equal": MEGABYTE, "growing": number * 2000, "random": draw.randrange(MEGABYTE)}
        runs.append(run_of(size[sizes] + 1))
        arrived += size[sizes] + 1
        merged = runs_to_merge(runs)
        if merged:
            runs = [run for run in runs if not any(run is other for other in merged)]
            runs.append(run_of(sum(file.size_bytes for run in merged for file in run)))
            written += runs[-1][0].size_bytes
        sizes_grown = math.log(max(arrived / (MEGABYTE / 4), 2), RUNS_MERGED)
        assert len(runs) <= (RUNS_MERGED - 1) * (sizes_grown + 2)
    assert written <= arrived * (sizes_grown + 1)


def test_a_merge_that_fills_the_next_size_takes_that_in_too():
    small, larger = [run_of(MEGABYTE)] * RUNS_MERGED, [run_of(8 * MEGABYTE)] * (RUNS_MERGED - 1)
    assert len(runs_to_merge([*small, *larger])) == len(small) + len(larger)
    assert len(runs_to_merge([*small, *larger[1:]])) == len(small)
    assert runs_to_merge([*small[1:], *larger]) == []


def newest(tmp_path, batch):
    stored = Versions(tmp_path / "state" / "versions", LocalStore()).read(batch).rows
    return stored["o", "rows"]


def test_batches_of_any_number_leave_few_files_and_all_rows(
    state, connection, tmp_path, monkeypatch
):
    monkeypatch.setattr(compaction, "_FILE_BYTES", 4000)
    for number in range(30):
        batch = state.begin(number)
        stored = batch.rows("o")
        stored.add(connection, f"SELECT range * 30 + {number} AS k FROM range(50)", keys=["k"])
        given = stored.live()
        batch.commit({})
        state.prune(committed=number)
        (rows,) = connection.execute(f"SELECT list(k ORDER BY k) FROM ({given})").fetchone()
        assert rows == sorted(i * 30 + n for i in range(50) for n in range(number + 1))
    after = newest(tmp_path, 29)
    assert len(after.runs) <= RUNS_MERGED
    largest = max(after.runs, key=len)
    assert len(largest) > 2
    for left, right in itertools.pairwise(largest):
        assert left.hash_max < right.hash_min
    stored = state.begin(30).rows("o")
    select = stored.matching(connection, "SELECT unnest([7, 1499, 9999]) AS k", keys=["k"])
    assert sorted(row[0] for row in connection.execute(select).fetchall()) == [7, 1499]


def test_rows_of_one_key_are_merged_like_any(state, connection):
    for number in range(20):
        batch = state.begin(number)
        batch.rows("o").add(
            connection, "SELECT NULL::INT AS k, range AS v FROM range(9)", keys=["k"]
        )
        batch.commit({})
    found = state.begin(20).rows("o").matching(connection, "SELECT NULL::INT AS k", keys=["k"])
    assert len(connection.execute(found).fetchall()) == 180


def test_a_merge_leaves_dead_rows_out(state, connection, tmp_path):
    for number in range(RUNS_MERGED):
        batch = state.begin(number)
        select = f"SELECT {number} AS k, unnest([{number}, NULL]) AS d"
        batch.rows("o").add(connection, select, keys=["k"], due="d")
        batch.rows("o").expire(RUNS_MERGED - 3)
        batch.commit({})
    (run,) = newest(tmp_path, RUNS_MERGED - 1).runs
    assert sum(file.rows for file in run) == RUNS_MERGED + 2


def test_a_file_of_which_half_is_dead_is_written_again(state, connection, tmp_path):
    batch = state.begin(0)
    batch.rows("o").add(
        connection, "SELECT range AS k, range AS d FROM range(20000)", keys=["k"], due="d"
    )
    batch.commit({})
    held = []
    for number, floor in enumerate([4000, 11000, 11001, 30000], start=1):
        batch = state.begin(number)
        stored = batch.rows("o")
        stored.expire(floor)
        stored.add(connection, "SELECT 0::BIGINT AS k, 99999::BIGINT AS d", keys=["k"], due="d")
        batch.commit({})
        held.append(max(file.rows for file in newest(tmp_path, number).files))
    assert held == [20000, 20000, 8999, 1]
