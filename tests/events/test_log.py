"""The event log: nothing is lost when a process dies, and nothing is there twice."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

from millpond.errors.events import EventLogReadError, EventLogWriteError
from millpond.events import EventLog, FlowMetrics, FlowStatus, UpdateState
from millpond.storage import LocalStore


def states(events):
    return [(event.origin.update_id, event.details["update_progress"]["state"]) for event in events]


def test_what_was_recorded_is_read_back_unchanged(record, folder, heard):
    recorder = record()
    recorder.create_update()
    recorder.flow_progress(
        "orders",
        "main.shop.orders",
        FlowStatus.RUNNING,
        metrics=FlowMetrics(rows_read=2**40),
        batch_id=0,
    )
    recorder.update_progress(UpdateState.FAILED, error=ValueError("not 'so' \"good\": é\n🦆"))
    assert EventLog(folder).read() == heard  # still pending
    recorder.close()
    read = EventLog(folder).read()
    assert read == heard  # in the table
    assert [event.to_record() for event in read] == [event.to_record() for event in heard]


def test_an_event_log_that_does_not_exist_is_empty(folder):
    assert EventLog(folder).read() == []
    assert not folder.exists()


def test_updates_come_in_the_order_in_which_they_began(record, folder):
    for name in ("zulu", "alpha", "mike"):
        recorder = record(name)
        recorder.update_progress(UpdateState.RUNNING)
        recorder.update_progress(UpdateState.COMPLETED)
        recorder.close()
    assert states(EventLog(folder).read()) == [
        (name, state) for name in ("zulu", "alpha", "mike") for state in ("RUNNING", "COMPLETED")
    ]


def test_the_log_is_a_delta_table_that_others_read(record, folder, heard):
    recorder = record()
    recorder.flow_progress("orders", "main.shop.orders", FlowStatus.FAILED, error=KeyError("id"))
    recorder.update_progress(UpdateState.COMPLETED)
    recorder.close()
    frame = pl.read_delta(str(folder)).sort(
        pl.col("sequence").struct.field("data_plane_id").struct.field("seq_no")
    )
    assert frame["id"].to_list() == [event.id for event in heard]
    assert frame["timestamp"].to_list() == [event.timestamp for event in heard]
    first = frame.row(0, named=True)
    assert first["origin"]["flow_name"] == "orders"
    assert first["error"]["exceptions"][0]["class_name"] == "KeyError"
    assert json.loads(first["details"]) == {"flow_progress": {"status": "FAILED"}}
    rows = DeltaTable(folder).to_pyarrow_table().to_pylist()
    assert {row["id"] for row in rows} == {event.id for event in heard}


def test_an_update_is_one_commit(record, folder):
    for number in range(3):
        recorder = record(f"update-{number}")
        for _ in range(5):
            recorder.update_progress(UpdateState.RUNNING)
        recorder.close()
    # The first version creates the table.
    assert DeltaTable(folder).version() == 3


def test_an_update_of_no_events_commits_nothing(record, folder):
    record().close()
    assert not folder.exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from millpond.events import EventLog, Recorder, UpdateState
recorder = Recorder(
    pipeline_name="shop", pipeline_id="p", update_id="killed", log=EventLog(Path(sys.argv[1]))
)
recorder.update_progress(UpdateState.RUNNING)
recorder.update_progress(UpdateState.STOPPING)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_events_of_a_killed_update_are_kept_and_moved_by_the_next(record, folder):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False)
    assert killed.returncode == -signal.SIGKILL
    expected = [("killed", "RUNNING"), ("killed", "STOPPING")]
    assert states(EventLog(folder).read()) == expected
    recorder = record("next")
    recorder.update_progress(UpdateState.COMPLETED)
    recorder.close()
    assert states(EventLog(folder).read()) == [*expected, ("next", "COMPLETED")]
    assert list((folder / "_pending").iterdir()) == []


def test_a_kill_at_any_point_loses_nothing_and_repeats_nothing(folder):
    program = Path(__file__).with_name("dying_updates.py")
    ended = subprocess.run(
        [sys.executable, program, folder], check=True, capture_output=True, text=True
    )
    point = int(ended.stdout)
    assert point > 5
    # The first died before its first event, the second before its second one.
    expected = [("update-01", "RUNNING")] + [
        (f"update-{number:02}", state)
        for number in range(2, point + 1)
        for state in ("RUNNING", "COMPLETED")
    ]
    assert states(EventLog(folder).read()) == expected
    rows = pl.read_delta(str(folder))
    assert rows.height == len(expected)
    assert rows["id"].n_unique() == rows.height


def test_a_line_that_was_cut_short_is_no_event(record, folder):
    record("torn").update_progress(UpdateState.RUNNING)
    (file,) = (folder / "_pending").iterdir()
    with file.open("a") as stream:
        stream.write('{"id": "half a rec')
    assert states(EventLog(folder).read()) == [("torn", "RUNNING")]
    recorder = record("next")
    recorder.update_progress(UpdateState.RUNNING)
    recorder.close()
    assert states(EventLog(folder).read()) == [("torn", "RUNNING"), ("next", "RUNNING")]


class FullStore(LocalStore):
    """Has room for half of the second line."""

    def __init__(self) -> None:
        self.appended = 0

    def append(self, path, data):
        self.appended += 1
        if self.appended == 2:
            super().append(path, data[: len(data) // 2])
            raise OSError(28, "No space left on device", str(path))
        super().append(path, data)


def test_an_event_that_the_disk_had_no_room_for_spoils_no_other(folder, record):
    from millpond.events import Recorder

    recorder = Recorder(
        pipeline_name="shop",
        pipeline_id="p",
        update_id="full",
        log=EventLog(folder, FullStore()),
    )
    for state in (UpdateState.INITIALIZING, UpdateState.RUNNING, UpdateState.COMPLETED):
        recorder.update_progress(state)
    with pytest.raises(EventLogWriteError, match="No space left on device"):
        recorder.close()
    assert states(EventLog(folder).read()) == [("full", "INITIALIZING"), ("full", "COMPLETED")]


def test_a_folder_that_holds_something_else_is_refused_by_name(folder):
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("not a log")
    with pytest.raises(EventLogReadError) as caught:
        EventLog(folder).read()
    assert str(folder) in caught.value.what


def test_an_update_can_be_read_while_it_runs(record, folder):
    done = record("done")
    done.update_progress(UpdateState.COMPLETED)
    done.close()
    record("running").update_progress(UpdateState.RUNNING)
    assert states(EventLog(folder).read()) == [("done", "COMPLETED"), ("running", "RUNNING")]


def test_the_log_of_many_updates_stays_in_few_files(record, folder, heard, monkeypatch):
    monkeypatch.setattr("millpond.events.table.SMALL_FILES", 5)
    for number in range(12):
        recorder = record(f"update-{number:02}")
        recorder.update_progress(UpdateState.COMPLETED)
        recorder.close()
    assert len(DeltaTable(folder).file_uris()) <= 5
    assert EventLog(folder).read() == heard
    assert pl.read_delta(str(folder)).height == 12
