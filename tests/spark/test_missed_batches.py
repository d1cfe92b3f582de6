"""Batches of append flows of which Spark no longer tells when a client asks are counted, or told."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from millpond.cli.run import _warn
from millpond.events import Event
from millpond.runner import read_events, run_update
from millpond.runner.spark import appended_batches, flow_run
from millpond.runner.spark.progress import TELLING
from tests.pipeline_folder import PipelineFolder
from tests.spark.server import SparkServer
from tests.spark.test_takeover import COPIES, on_spark, send

FAILING = """\
CREATE OR REFRESH STREAMING TABLE copies (CONSTRAINT sent EXPECT (sent > 0) ON VIOLATION FAIL UPDATE)
AS SELECT * FROM STREAM lists;
"""
DROPPING = FAILING.replace("FAIL UPDATE", "DROP ROW")
BATCHES = 7
REMEMBERED = 2
FREEZE_S = 120


@pytest.fixture(autouse=True)
def _few_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = "spark.sql.streaming.numRecentProgressUpdates"
    assert TELLING[setting] == str(appended_batches.REMEMBERED + 1)
    monkeypatch.setitem(TELLING, setting, str(REMEMBERED + 1))
    monkeypatch.setattr(appended_batches, "REMEMBERED", REMEMBERED)


def wait_for_rows(table: Path, number: int) -> None:
    until = time.monotonic() + FREEZE_S
    while time.monotonic() < until:
        if DeltaTable.is_deltatable(str(table)) and DeltaTable(table).count() >= number:
            return
        time.sleep(0.2)
    raise AssertionError(number)


def frozen_after_first_batch(table: Path) -> Callable[[Event], None]:
    """Keeps the client from asking, from the first batch that it hears of until all are there."""
    heard: list[int] = []

    def listen(event: Event) -> None:
        if event.origin.batch_id is None or heard:
            return
        heard.append(event.origin.batch_id)
        wait_for_rows(table, BATCHES)
        # The last batch is told of, and the end after it.
        time.sleep(3)

    return listen


def counted(events: list[Event]) -> dict[int, Any]:
    """The details of each batch that an event counts."""
    batches = [event for event in events if "metrics" in event.detail]
    found = {event.origin.batch_id: event.detail for event in batches}
    assert len(found) == len(batches)
    return found


def warnings(events: list[Event]) -> list[Any]:
    return [event.detail["not_counted"] for event in events if "not_counted" in event.detail]


def run(folder: PipelineFolder, server: SparkServer, *listeners: Any) -> list[Event]:
    events: list[Event] = []
    conf = {**on_spark(server), "millpond.maxFilesPerTrigger": "1"}
    result = run_update(folder.project(**conf), listeners=[events.append, *listeners])
    assert not result.problems
    assert [flow.error for flow in result.flows] == [None]
    return events


@pytest.mark.parametrize("text", [COPIES, FAILING])
def test_a_batch_that_spark_has_forgotten_is_counted_by_its_commit(
    folder: PipelineFolder, spark_server: SparkServer, text: str
) -> None:
    folder.write("a.sql", text)
    for number in range(BATCHES):
        send(folder, f"s{number}", "pen", 1)
    events = run(folder, spark_server, frozen_after_first_batch(folder.table("copies")))
    found = counted(events)
    assert sorted(found) == list(range(BATCHES))
    for detail in found.values():
        assert (detail["metrics"]["rows_read"], detail["metrics"]["num_output_rows"]) == (1, 1)
        checks = detail.get("data_quality", {}).get("expectations", [])
        assert [check["passed_records"] for check in checks] == [1] * text.count("CONSTRAINT")
    assert not warnings(events)


def test_what_expectations_did_in_a_batch_that_spark_has_forgotten_is_told_not_to_be_counted(
    folder: PipelineFolder, spark_server: SparkServer, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.write("a.sql", DROPPING)
    for number in range(BATCHES):
        rows = [{"supplier": f"s{number}", "article": "pen", "sent": sent} for sent in (1, -1)]
        folder.feed("lists", rows)
    events = run(folder, spark_server, frozen_after_first_batch(folder.table("copies")), _warn)
    assert sum(detail["metrics"]["num_output_rows"] for detail in counted(events).values()) == 7
    (warned,) = warnings(events)
    first, last = warned["first_batch"], warned["last_batch"]
    assert warned["rows_are_counted"]
    assert 1 <= first <= last < BATCHES - 1
    for number, detail in counted(events).items():
        dropped = 0 if first <= number <= last else 1
        assert detail["metrics"]["num_dropped_rows"] == dropped
        assert ("data_quality" in detail) == bool(dropped)
    assert (
        f"warning: Of batches {first} to {last} of flow main.sales.copies"
        in capsys.readouterr().err
    )


def test_batches_before_the_first_answer_are_counted_by_their_commits(
    folder: PipelineFolder, spark_server: SparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that the query has ended before it is asked about its batches.
    monkeypatch.setattr(flow_run, "POLL_S", FREEZE_S)
    folder.write("a.sql", COPIES)
    for update in range(2):
        for number in range(BATCHES):
            send(folder, f"s{update}{number}", "pen", 1)
        events = run(folder, spark_server)
        assert sorted(counted(events)) == list(range(update * BATCHES, (update + 1) * BATCHES))
        assert not warnings(events)


def test_a_client_that_is_stopped_counts_what_was_written_until_then(
    folder: PipelineFolder, spark_server: SparkServer
) -> None:
    folder.configure({**on_spark(spark_server), "millpond.maxFilesPerTrigger": "1"})
    folder.write("a.sql", COPIES)
    for number in range(4 * BATCHES):
        send(folder, f"s{number}", "pen", 1)
    table = folder.table("copies")
    millpond = Path(sys.executable).with_name("millpond")
    with subprocess.Popen([millpond, "run"], cwd=folder.root) as client:
        wait_for_rows(table, 2)
        client.send_signal(signal.SIGSTOP)
        try:
            wait_for_rows(table, BATCHES)
        finally:
            client.send_signal(signal.SIGTERM)
            client.send_signal(signal.SIGCONT)
        assert client.wait(FREEZE_S) != 0
    written = DeltaTable(table).count()
    assert BATCHES <= written < 4 * BATCHES
    assert sorted(counted(list(read_events(folder.project())))) == list(range(written))
