"""A batch starts from the state after the one before; what changed so that it can't is refused."""

from __future__ import annotations

import json

import pytest

from millpond.errors.state import StateIncompatibleError, StateMissingError, StateUnreadableError
from millpond.state import FlowState
from millpond.storage import LocalStore


@pytest.fixture
def state(tmp_path) -> FlowState:
    return FlowState(tmp_path / "state", LocalStore())


def test_a_batch_whose_version_before_is_gone_is_refused(state):
    with pytest.raises(StateMissingError, match="after batch 3 is missing"):
        state.begin(4)


@pytest.mark.parametrize("content", ["", '{"format":1,"batch":0', "[]", '{"format":1,"batch":7}'])
def test_a_version_that_is_torn_or_another_batchs_is_refused(state, tmp_path, content):
    path = tmp_path / "state" / "versions" / "0"
    LocalStore().put(path, content.encode())
    with pytest.raises(StateUnreadableError, match="can't be read"):
        state.begin(1)


def test_a_version_of_a_newer_millpond_is_refused(state, tmp_path):
    path = tmp_path / "state" / "versions" / "0"
    LocalStore().put(path, json.dumps({"format": 99, "batch": 0}).encode())
    with pytest.raises(StateUnreadableError, match="of format 99"):
        state.begin(1)


def test_a_description_that_differs_is_refused_by_operator(state):
    distinct = {"keys": ["a"], "kind": "deduplicate", "name": "DISTINCT", "where": ["a.sql", 1, 8]}
    state.begin(0).commit({"1-distinct": distinct})
    state.check(0, {"1-distinct": {**distinct, "keys": ("a",)}})
    with pytest.raises(StateIncompatibleError, match=r"that DISTINCT compares .* from a to b"):
        state.check(0, {"1-distinct": {**distinct, "keys": ["b"]}})
    with pytest.raises(StateIncompatibleError, match="kind of DISTINCT changed"):
        state.check(0, {"1-distinct": {**distinct, "kind": "other"}})
    with pytest.raises(StateIncompatibleError, match=r"flow sales\.f .* no longer has DISTINCT"):
        state.check(0, {}, flow="sales.f")
    with pytest.raises(StateIncompatibleError, match="JOIN came in") as caught:
        state.check(
            0, {"1-distinct": distinct, "2-join": {"name": "JOIN", "where": ["b.sql", 3, 4]}}
        )
    assert str(caught.value.where) == "b.sql:3:4"


def test_where_an_operator_stands_and_what_it_is_called_makes_no_difference(state):
    state.begin(0).commit({"1-distinct": {"keys": ["a"], "name": "DISTINCT", "where": None}})
    state.check(0, {"1-distinct": {"keys": ["a"], "name": "distinct()", "where": ["b.py", 9]}})


def add_batch(state, connection, number, *, commit=True):
    batch = state.begin(number)
    batch.rows("o").add(connection, f"SELECT {number} AS k", keys=["k"])
    batch.numbers("o")["batches"] = batch.numbers("o").get("batches", 0) + 1
    if commit:
        batch.commit({})


def keys_after(state, connection, number):
    select = state.begin(number + 1).rows("o").live()
    return sorted(row[0] for row in connection.execute(select).fetchall())


def test_a_second_attempt_starts_where_the_first_did(state, connection):
    add_batch(state, connection, 0)
    for commit in (False, True, True):
        add_batch(state, connection, 1, commit=commit)
    assert keys_after(state, connection, 1) == [0, 1]
    assert state.begin(2).numbers("o") == {"batches": 2}
    # The first batch again, as after a crash before the target held it.
    add_batch(state, connection, 0)
    assert keys_after(state, connection, 0) == [0]


def test_what_a_batch_leaves_alone_stays(state, connection):
    add_batch(state, connection, 0)
    state.begin(1).commit({})
    assert keys_after(state, connection, 1) == [0]
    assert state.begin(2).numbers("o") == {"batches": 1}


def test_versions_within_reach_can_be_gone_back_to_and_older_ones_are_removed(
    state, connection, tmp_path
):
    for number in range(15):
        add_batch(state, connection, number)
        state.prune(committed=number)
    versions = tmp_path / "state" / "versions"
    assert sorted(int(path.name) for path in versions.iterdir()) == list(range(5, 15))
    for number in range(5, 15):
        assert keys_after(state, connection, number) == list(range(number + 1))
    with pytest.raises(StateMissingError):
        state.begin(5)


def test_files_that_no_version_names_are_removed(state, connection, tmp_path):
    add_batch(state, connection, 0)
    rows = tmp_path / "state" / "rows"
    (named,) = (rows / "o").iterdir()
    add_batch(state, connection, 1, commit=False)
    (rows / "o" / "tmp_torn.parquet").write_bytes(b"PAR1")
    (rows / "gone").mkdir()
    (rows / "gone" / "rows-1.parquet").write_bytes(b"PAR1")
    (tmp_path / "state" / "versions" / ".1.abc.tmp").write_bytes(b"{")
    state.prune(committed=0)
    assert [path for path in rows.rglob("*") if path.is_file()] == [named]
    assert [path.name for path in (tmp_path / "state" / "versions").iterdir()] == ["0"]


def test_the_state_of_a_batch_that_the_target_lacks_is_not_pruned(state, connection):
    for number in range(12):
        add_batch(state, connection, number)
    state.prune(committed=10)
    assert keys_after(state, connection, 11) == list(range(12))


def test_a_file_of_rows_that_is_missing_or_cut_short_is_found_at_once(state, connection, tmp_path):
    add_batch(state, connection, 0)
    (path,) = (tmp_path / "state" / "rows" / "o").iterdir()
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(StateUnreadableError, match=r"it has \d+ bytes"):
        state.begin(1)
    path.unlink()
    with pytest.raises(StateMissingError, match=r"which .*/versions/0 names"):
        state.begin(1)


def test_state_is_durable_with_each_folder_before_a_version_names_it(
    tmp_path, connection, monkeypatch
):
    calls = []

    class Recording(LocalStore):
        def sync(self, paths):
            calls.append({path.relative_to(tmp_path).as_posix() for path in paths})
            super().sync(paths)

        def put(self, path, data):
            calls.append(path.relative_to(tmp_path).as_posix())
            super().put(path, data)

    state = FlowState(tmp_path / "state", Recording())
    rows = tmp_path / "state" / "rows" / "o"
    add_batch(state, connection, 0)
    first = {f"state/rows/o/{path.name}" for path in rows.iterdir()}
    assert calls == [{"state", "state/rows", "state/rows/o", *first}, "state/versions/0"]
    calls.clear()
    add_batch(state, connection, 1)
    second = {f"state/rows/o/{path.name}" for path in rows.iterdir()} - first
    assert calls == [second, "state/versions/1"]


def test_a_watermark_lags_behind_the_slowest_and_never_falls(state):
    def batch(number, **newest_s):
        begun = state.begin(number)
        for operator, newest in newest_s.items():
            newest_us = None if newest is None else int(newest * 1_000_000)
            begun.observe(operator, newest_us=newest_us, delay_us=10_000_000)
        begun.commit({})
        moves = state.watermark_moves_after(number)
        return begun.late_watermark_us / 1e6, begun.watermark_us / 1e6, moves

    # The watermark is at 1970 until every one of them has seen an event.
    assert batch(0, a=100, b=None) == (0, 0, False)
    assert batch(1, a=90, b=50.0019) == (0, 0, True)
    # Whole milliseconds count.
    assert batch(2, a=None, b=80) == (0, 40.001, True)
    assert batch(3, a=95, b=None) == (40.001, 70, False)
    assert batch(4) == (70, 70, False)
    assert batch(5, a=200, b=200) == (70, 70, True)
    assert batch(6) == (70, 190, False)


def test_a_watermark_is_never_before_1970(state):
    begun = state.begin(0)
    begun.observe("w", newest_us=5_000_000, delay_us=60_000_000)
    begun.commit({})
    assert not state.watermark_moves_after(0)
    assert state.begin(1).watermark_us == 0
