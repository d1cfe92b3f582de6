"""Each planned batch is applied exactly once, whatever stops an update and wherever."""

import json
import shutil

import pytest

from millpond.delta import Table
from millpond.errors.streaming import (
    CheckpointAheadOfTableError,
    CheckpointBehindTableError,
    CheckpointSourceChangedError,
    CheckpointUnreadableError,
)
from millpond.storage import LocalStore
from millpond.streaming import Checkpoint, DeltaSource, run_batches, run_once
from tests.streaming.toy_flow import Stream, append, expected


class InterruptionError(Exception):
    pass


class InterruptedStore(LocalStore):
    """Raises at the n-th call, counted over all methods, before or after doing its work."""

    def __init__(self, calls, *, after):
        self.calls_left = calls
        self.after = after

    def _step(self, method, *arguments):
        self.calls_left -= 1
        if self.calls_left == 0 and not self.after:
            raise InterruptionError
        result = getattr(LocalStore, method)(self, *arguments)
        if self.calls_left == 0:
            raise InterruptionError
        return result

    def read(self, path):
        return self._step("read", path)

    def exists(self, path):
        return self._step("exists", path)

    def list(self, folder):
        return self._step("list", folder)

    def put_if_absent(self, path, data):
        return self._step("put_if_absent", path, data)

    def remove(self, path):
        return self._step("remove", path)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_update_interrupted_at_any_call_of_the_store_loses_and_repeats_nothing(
    tmp_path, table, after
):
    for number in range(4):
        append(table, [number])
    calls = 0
    interrupted = True
    while interrupted:
        calls += 1
        folder = tmp_path / f"flow-{calls}"
        store = InterruptedStore(calls, after=after)
        interrupted = False
        try:
            Stream(folder, {"s": table}, store).run(maxFilesPerTrigger="2")
        except InterruptionError:
            interrupted = True
        # The options may differ when the update runs again: what was planned stays as it was.
        again = Stream(folder, {"s": table})
        again.run(maxFilesPerTrigger="3")
        assert again.target.rows() == expected(range(4))
        assert again.target.numbers() == list(range(len(again.target.numbers())))
    assert calls > 10


def test_a_batch_that_failed_runs_again_with_the_range_it_was_planned_with(stream, table):
    append(table, [0])
    append(table, [1])

    def fail(batch):
        raise InterruptionError

    sources = stream.sources({"maxFilesPerTrigger": "1"})
    with pytest.raises(InterruptionError):
        list(
            run_batches(
                checkpoint=stream.checkpoint(), sources=sources, committed=lambda: None, apply=fail
            )
        )
    append(table, [2])
    batches = stream.run()
    assert [[row[0] for row in rows] for rows in stream.target.batches()] == [[0], [1, 2]]
    assert [batch.backlog_size.files for batch in batches] == [2, 0]


def test_a_batch_committed_but_not_noted_is_not_run_again(stream, table):
    append(table, [0])

    def commit_and_die(batch):
        stream.target.commit(batch.number, [(0, "row 0")])
        raise InterruptionError

    with pytest.raises(InterruptionError):
        list(
            run_batches(
                checkpoint=stream.checkpoint(),
                sources=stream.sources({}),
                committed=stream.target.committed,
                apply=commit_and_die,
            )
        )
    assert stream.run() == []
    assert stream.target.rows() == expected([0])


def test_the_end_is_captured_when_the_update_starts(stream, table):
    append(table, [0])
    append(table, [1])
    steps = stream.steps(maxFilesPerTrigger="1")
    next(steps)
    append(table, [2])
    list(steps)
    assert stream.target.rows() == expected([0, 1])
    stream.run()
    assert stream.target.rows() == expected([0, 1, 2])


def test_old_batches_are_removed_from_the_checkpoint(stream, table):
    for number in range(105):
        append(table, [number])
    stream.run(maxFilesPerTrigger="1")
    assert stream.checkpoint().numbers() == list(range(5, 105))
    append(table, [105])
    stream.run()
    assert stream.target.rows() == expected(range(106))


def test_a_lost_checkpoint_is_not_taken_for_a_new_stream(stream, table):
    append(table, [0])
    stream.run()
    shutil.rmtree(stream.checkpoint_folder)
    append(table, [1])
    with pytest.raises(CheckpointBehindTableError, match="holds no batch"):
        stream.run()
    assert stream.target.rows() == expected([0])


def test_an_older_copy_of_the_checkpoint_is_refused(stream, table, tmp_path):
    append(table, [0])
    stream.run()
    shutil.copytree(stream.checkpoint_folder, tmp_path / "backup")
    append(table, [1])
    stream.run()
    shutil.rmtree(stream.checkpoint_folder)
    shutil.copytree(tmp_path / "backup", stream.checkpoint_folder)
    with pytest.raises(CheckpointBehindTableError, match="ends at batch 0"):
        stream.run()


def test_batches_that_an_older_copy_of_the_target_lacks_run_again_in_order(stream, table):
    for number in range(4):
        append(table, [number])
    stream.run(maxFilesPerTrigger="1")
    before = stream.target.batches()
    for number in (2, 3):
        (stream.target.folder / f"{number}.json").unlink()
    append(table, [4])
    stream.run()
    assert stream.target.batches()[:4] == before
    assert stream.target.rows() == expected(range(5))


def test_an_older_target_whose_batches_are_no_longer_on_record_is_refused(stream, table):
    for number in range(4):
        append(table, [number])
    stream.run(maxFilesPerTrigger="1")
    (stream.checkpoint_folder / "offsets" / "1").unlink()
    for number in (1, 2, 3):
        (stream.target.folder / f"{number}.json").unlink()
    with pytest.raises(CheckpointAheadOfTableError, match="batch 1"):
        stream.run()
    assert stream.target.numbers() == [0]


def test_a_torn_checkpoint_stops_the_update_and_changes_nothing(stream, table):
    append(table, [0])
    stream.run()
    path = stream.checkpoint_folder / "offsets" / "0"
    path.write_bytes(path.read_bytes()[:30])
    append(table, [1])
    with pytest.raises(CheckpointUnreadableError):
        stream.run()
    assert stream.target.rows() == expected([0])


@pytest.mark.parametrize(
    "offset", [{}, {"version": "1", "index": -1, "initial_snapshot": False}, {"files": 3}]
)
def test_an_offset_of_another_kind_stops_the_update(stream, table, offset):
    append(table, [0])
    stream.run()
    path = stream.checkpoint_folder / "offsets" / "0"
    content = json.loads(path.read_text())
    content["sources"]["main.shop.source"]["end"] = offset
    path.write_text(json.dumps(content))
    with pytest.raises(CheckpointUnreadableError, match="no place"):
        stream.run()


@pytest.fixture
def two(tmp_path, table):
    """A flow with two sources, of which all is read."""
    other = tmp_path / "other"
    append(table, [0, 1])
    append(other, [10])
    stream = Stream(tmp_path / "flow", {"a": table, "b": other})
    stream.run()
    return stream


def test_a_batch_reads_what_is_new_of_every_source(two):
    assert two.target.rows() == expected([0, 1, 10])
    append(two.tables["b"], [11])
    batches = two.run()
    assert [(batch.sizes["a"].files, batch.sizes["b"].files) for batch in batches] == [(0, 1)]
    append(two.tables["a"], [2])
    append(two.tables["b"], [12])
    assert len(two.run()) == 1
    assert two.target.rows() == expected([0, 1, 2, 10, 11, 12])


def test_the_same_table_read_twice_gives_its_rows_twice(tmp_path, table):
    append(table, [0])
    stream = Stream(tmp_path / "flow", {"t": table, "t#2": table})
    stream.run()
    append(table, [1])
    stream.run()
    assert stream.target.rows() == expected([0, 0, 1, 1])


def test_an_added_source_starts_from_its_beginning(two, tmp_path):
    append(tmp_path / "third", [20])
    append(tmp_path / "third", [21])
    two.tables["c"] = tmp_path / "third"
    two.run()
    assert two.run() == []
    assert two.target.rows() == expected([0, 1, 10, 20, 21])


def test_a_batch_planned_before_a_source_was_added_reads_nothing_of_it(two, tmp_path):
    append(two.tables["a"], [2])

    def fail(batch):
        raise InterruptionError

    with pytest.raises(InterruptionError):
        list(
            run_batches(
                checkpoint=two.checkpoint(),
                sources=two.sources({}),
                committed=two.target.committed,
                apply=fail,
            )
        )
    append(tmp_path / "third", [20])
    two.tables["c"] = tmp_path / "third"
    two.run()
    assert two.target.batches()[1:] == [[(2, "row 2")], [(20, "row 20")]]


def test_a_removed_source_needs_a_full_refresh(two):
    del two.tables["b"]
    told = "no longer reads b as a stream, .* what it reads now is a"
    with pytest.raises(CheckpointSourceChangedError, match=told) as refused:
        two.run()
    assert "--full-refresh" in (refused.value.hint or "")


def test_another_table_under_the_same_name_needs_a_full_refresh(two, tmp_path):
    append(tmp_path / "third", [20])
    two.tables["b"] = tmp_path / "third"
    with pytest.raises(CheckpointSourceChangedError, match="b is no longer what"):
        two.run()
    assert two.target.rows() == expected([0, 1, 10])


def test_a_table_that_was_moved_is_the_same_source(two, tmp_path):
    shutil.move(two.tables["b"], tmp_path / "moved")
    two.tables["b"] = tmp_path / "moved"
    append(tmp_path / "moved", [11])
    two.run()
    assert two.target.rows() == expected([0, 1, 10, 11])


def test_a_table_that_comes_under_the_name_of_its_new_place_is_the_same_source(two, tmp_path):
    shutil.move(two.tables.pop("b"), tmp_path / "moved")
    two.tables["moved"] = tmp_path / "moved"
    append(tmp_path / "moved", [11])
    two.run()
    assert two.target.rows() == expected([0, 1, 10, 11])
    append(tmp_path / "moved", [12])
    two.run()
    assert two.target.rows() == expected([0, 1, 10, 11, 12])


def test_a_batch_that_has_to_run_again_finds_its_source_under_a_new_name(two, tmp_path):
    append(two.tables["b"], [11])
    two.run()
    (two.target.folder / "1.json").unlink()
    shutil.move(two.tables.pop("b"), tmp_path / "moved")
    two.tables["moved"] = tmp_path / "moved"
    two.run()
    assert two.target.batches() == [expected([0, 1, 10]), expected([11])]


def test_a_flow_that_runs_once_has_batch_0_alone(tmp_path):
    store = LocalStore()
    checkpoint = Checkpoint(tmp_path / "checkpoint", store)
    applied = []

    def committed():
        return applied[-1] if applied else None

    def fail(batch):
        raise InterruptionError

    with pytest.raises(InterruptionError):
        list(run_once(checkpoint=checkpoint, committed=committed, apply=fail))
    assert checkpoint.numbers() == [0]
    for _ in range(2):
        list(
            run_once(
                checkpoint=checkpoint,
                committed=committed,
                apply=lambda batch: applied.append(batch.number),
            )
        )
    assert applied == [0]


def test_a_stream_that_is_given_up_midway_goes_on_later(stream, table):
    for number in range(3):
        append(table, [number])
    steps = stream.steps(maxFilesPerTrigger="1")
    next(steps)
    steps.close()
    stream.run()
    assert stream.target.rows() == expected(range(3))


def test_sources_tell_their_flow_in_messages(table):
    append(table, [0])
    source = DeltaSource(
        Table(table), {"startingVersion": "7"}, name="main.shop.source", flow="to_silver"
    )
    with pytest.raises(LookupError, match=r"main\.shop\.source \(a stream of flow to_silver\)"):
        source.first_offset(source.latest_offset())
