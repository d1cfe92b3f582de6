"""What a table is kept from when the checkpoints of its flows are lost, or their writers live on."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from millpond.errors.spark import SparkCheckpointMissingError
from millpond.runner import run_update
from millpond.runner.spark import flow_run
from tests.pipeline_folder import PipelineFolder
from tests.spark.server import SparkServer
from tests.spark.test_takeover import COPIES, PRICES, on_spark, send, update

ROWS = 40
# After so many commits both queries are at work: appending is quicker.
AT_WORK = {"copies": 5, "prices": 2}
CLIENT = """\
import sys
from pathlib import Path
from millpond.runner import Project, run_update
run_update(Project.open(Path(sys.argv[1]), conf=dict(pair.split("=", 1) for pair in sys.argv[2:])))
"""


def test_a_checkpoint_that_is_gone_is_told_and_nothing_is_read_again(
    folder: PipelineFolder, spark_server: SparkServer
) -> None:
    folder.write("a.sql", PRICES + COPIES)
    send(folder, "acme", "pen", 1)
    conf = on_spark(spark_server)
    update(folder, **conf)
    shutil.rmtree(folder.layout.checkpoints)
    send(folder, "acme", "ink", 2)
    result = run_update(folder.project(**conf))
    errors = [flow.error for flow in result.flows]
    assert all(isinstance(error, SparkCheckpointMissingError) for error in errors), errors
    assert folder.rows("copies") == [("acme", "pen", 1)]
    update_anew(folder, conf)
    assert folder.rows("copies") == [("acme", "ink", 2), ("acme", "pen", 1)]
    assert folder.rows("prices") == [("acme", "ink", 2)]


def test_a_checkpoint_that_is_gone_is_told_also_where_the_history_of_the_table_is_too(
    folder: PipelineFolder, spark_server: SparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_run, "HISTORY_LASTS_S", 0)
    folder.write("a.sql", COPIES)
    send(folder, "acme", "pen", 1)
    conf = on_spark(spark_server)
    update(folder, **conf)
    update(folder, **conf)
    forget_history(folder.table("copies"))
    shutil.rmtree(folder.layout.checkpoints)
    (flow,) = run_update(folder.project(**conf)).flows
    assert isinstance(flow.error, SparkCheckpointMissingError)
    assert folder.rows("copies") == [("acme", "pen", 1)]


def forget_history(path: Path) -> None:
    """Leave the newest commit alone, as Delta does when it cleans up after a while."""
    table = DeltaTable(path)
    table.create_checkpoint()
    for commit in (path / "_delta_log").glob("*.json"):
        if int(commit.stem) < table.version():
            commit.unlink()
    assert len(DeltaTable(path).history()) == 1


def update_anew(folder: PipelineFolder, conf: dict[str, str]) -> None:
    result = run_update(folder.project(**conf), full_refresh_all=True)
    assert [flow.error for flow in result.flows] == [None] * len(result.flows)


@pytest.mark.timeout(900)
def test_queries_that_outlive_their_client_write_nothing_after_a_full_refresh(
    folder: PipelineFolder, lone_spark_server: SparkServer
) -> None:
    folder.write("a.sql", COPIES + PRICES)
    for number in range(ROWS):
        send(folder, f"s{number}", "pen", 1)
    conf = {**on_spark(lone_spark_server), "millpond.maxFilesPerTrigger": "1"}
    tables = [folder.table(name) for name in AT_WORK]
    commits = [
        folder.table(name) / "_delta_log" / f"{number:020}.json" for name, number in AT_WORK.items()
    ]
    program = folder.root / "client.py"
    program.write_text(CLIENT, encoding="utf-8")
    client = subprocess.Popen(
        [
            sys.executable,
            str(program),
            str(folder.root / "spark-pipeline.yml"),
            *(f"{key}={value}" for key, value in conf.items()),
        ]
    )
    while not all(commit.exists() for commit in commits):
        assert client.poll() is None
        time.sleep(0.2)
    client.send_signal(signal.SIGKILL)
    client.wait()
    assert all(DeltaTable(table).version() < ROWS for table in tables)
    update_anew(folder, on_spark(lone_spark_server))
    rows = {table.name: folder.rows(table.name) for table in tables}
    assert {len(found) for found in rows.values()} == {ROWS}
    time.sleep(10)
    assert {table.name: folder.rows(table.name) for table in tables} == rows
