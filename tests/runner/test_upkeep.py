"""An update looks after its tables on the way, and nobody but who looks at files notices."""

import json
import os

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from millpond.delta import Table
from millpond.errors.maintenance import MaintenanceElsewhereError
from millpond.errors.runner import StorageNotWritableError
from millpond.events import EventType, Level, UpdateState
from millpond.maintenance import Upkeep
from millpond.runner import Project, maintain
from tests.maintenance.conftest import make_older, seen_by_all

PIPELINE = """
CREATE STREAMING TABLE bronze {properties} AS SELECT * FROM STREAM(landing);
CREATE STREAMING TABLE current {properties}
FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT k, v, s FROM STREAM(landing);
CREATE STREAMING TABLE below AS SELECT k, v FROM STREAM(bronze);
CREATE MATERIALIZED VIEW total AS SELECT sum(v) AS v FROM current;
"""
KEYS = 5


@pytest.fixture
def one_file_a_batch(folder):
    folder.configure({"millpond.maxFilesPerTrigger": "1"})
    folder.write("p.sql", PIPELINE.format(properties=""))
    return folder


def feed(folder, numbers):
    for number in numbers:
        folder.feed("landing", [{"k": number % KEYS, "v": number, "s": number}])


def files_of(folder, table):
    return list(Table(folder.table(table)).snapshot().files.values())


def maintenance(events):
    return [event for event in events if event.event_type is EventType.MAINTENANCE_PROGRESS]


def check(folder, count):
    everything = [(n % KEYS, n, n) for n in range(count)]
    assert folder.rows("bronze") == sorted(everything, key=repr)
    assert folder.rows("current") == sorted(everything[-KEYS:], key=repr)
    assert folder.rows("below") == sorted(((k, v) for k, v, _ in everything), key=repr)


def test_an_update_of_many_batches_leaves_few_files(one_file_a_batch):
    folder, events = one_file_a_batch, []
    feed(folder, range(40))
    assert folder.run(listeners=[events.append]).state is UpdateState.COMPLETED
    check(folder, 40)
    assert len(files_of(folder, "bronze")) <= 8
    assert len(files_of(folder, "current")) <= 8
    told = {event.origin.dataset_name: event for event in maintenance(events)}
    assert told["main.sales.bronze"].level is Level.INFO
    assert told["main.sales.bronze"].detail["metrics"]["files_compacted"] >= 32
    assert "files compacted into" in told["main.sales.bronze"].message


def test_many_updates_leave_few_files_and_streams_below_see_each_row_once(folder):
    folder.write("p.sql", PIPELINE.format(properties=""))
    for number in range(12):
        feed(folder, [number])
        assert folder.run().state is UpdateState.COMPLETED
    check(folder, 12)
    for table in ("bronze", "current", "below"):
        assert len(files_of(folder, table)) <= 8
        seen_by_all(folder.table(table))
    # Nothing is read anew because files were put together.
    version = Table(folder.table("below")).snapshot().version
    assert folder.run().state is UpdateState.COMPLETED
    assert Table(folder.table("below")).snapshot().version == version


def test_rows_of_a_replace_using_table_are_sorted_by_its_keys(one_file_a_batch):
    folder = one_file_a_batch
    folder.write(
        "p.sql",
        """
        CREATE STREAMING TABLE current
        FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT k, v, s FROM STREAM(landing);
        """,
    )
    for number in (5, 3, 9, 1, 7, 8, 2, 4):
        folder.feed("landing", [{"k": number, "v": 0, "s": 0}])
    folder.run()
    (file,) = files_of(folder, "current")
    data = pq.read_table(folder.table("current") / file.path)
    assert data["k"].to_pylist() == [1, 2, 3, 4, 5, 7, 8, 9]


@pytest.mark.parametrize(
    "name", ["pipelines.autoOptimize.managed", "delta.autoOptimize.autoCompact"]
)
def test_a_property_turns_it_off(one_file_a_batch, name):
    folder, events = one_file_a_batch, []
    folder.write("p.sql", PIPELINE.format(properties=f"TBLPROPERTIES ('{name}' = 'false')"))
    feed(folder, range(12))
    folder.run(listeners=[events.append])
    check(folder, 12)
    assert len(files_of(folder, "bronze")) == 12
    assert "main.sales.bronze" not in {event.origin.dataset_name for event in maintenance(events)}


def test_a_failure_is_a_warning_in_the_event_log_and_nothing_else(one_file_a_batch):
    folder, events = one_file_a_batch, []
    feed(folder, range(4))
    folder.run()
    for file in files_of(folder, "bronze"):
        (folder.table("bronze") / file.path).unlink()
    feed(folder, range(4, 8))
    assert folder.run(listeners=[events.append]).state is UpdateState.COMPLETED
    (event,) = (event for event in maintenance(events) if event.level is Level.WARN)
    assert event.origin.dataset_name == "main.sales.bronze"
    assert event.error.exceptions[0]["error_class"] == "DELTA_DATA_FILE_MISSING"
    assert not event.error.fatal
    assert "could not be looked after" in event.message
    assert len(files_of(folder, "bronze")) == 8


def test_a_property_that_makes_no_sense_is_found_before_anything_runs(folder):
    properties = "TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'a month')"
    folder.write("p.sql", PIPELINE.format(properties=properties))
    feed(folder, range(2))
    problems = folder.run().problems
    assert [problem.error_class for problem in problems] == ["INVALID_TABLE_PROPERTY"] * 2
    assert problems[0].where.line == 2


def test_a_day_later_old_files_and_old_entries_of_the_log_go(folder):
    """Those of the event log, too; rows, streams and what flows remember stay."""
    folder.write(
        "p.sql",
        PIPELINE.format(properties="TBLPROPERTIES ('delta.checkpointInterval' = '5')"),
    )
    for number in range(9):
        feed(folder, [number])
        folder.run()
    checkpoint = next(folder.layout.checkpoints.glob("*bronze*/*/offsets")).parent
    torn = checkpoint / f".1.json.{'0' * 32}.tmp"
    torn.write_bytes(b"{")
    make_older(folder.root / "storage", days=40)
    tables = [folder.table(name) for name in ("bronze", "current")] + [folder.layout.events]
    for path in tables:
        end_earlier(path)
    feed(folder, [9])
    events = []
    assert folder.run(listeners=[events.append]).state is UpdateState.COMPLETED
    check(folder, 10)
    told = {event.origin.dataset_name: event.detail["metrics"] for event in maintenance(events)}
    assert told["main.sales.bronze"]["files_removed"] > 0
    assert told["main.sales.bronze"]["log_files_removed"] > 0
    assert not torn.exists()
    for name in ("bronze", "current"):
        path = folder.table(name)
        named = {file.path for file in Table(path).snapshot().files.values()}
        assert named <= {file.name for file in path.glob("*.parquet")}
        seen_by_all(path)
    feed(folder, [10])
    assert folder.run().state is UpdateState.COMPLETED
    check(folder, 11)


def end_earlier(path):
    """Let a table and all that ended in it be a month and more old, to its entries' own words."""
    log = path / "_delta_log"
    for entry in log.glob("*.json"):
        status = entry.stat()
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        for action in actions:
            for kind, name in (("remove", "deletionTimestamp"), ("metaData", "createdTime")):
                if kind in action:
                    action[kind][name] -= 40 * 24 * 3_600_000
        entry.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
        os.utime(entry, times=(status.st_atime, status.st_mtime))
    for checkpoint in log.glob("*.checkpoint.parquet"):
        checkpoint.unlink()
        (log / "_last_checkpoint").unlink(missing_ok=True)
        DeltaTable(path, version=int(checkpoint.name[:20])).create_checkpoint()


def test_two_flows_into_one_table_and_another_writer_beside(folder):
    """Whoever wins: every row is there once."""
    folder.configure({"millpond.maxFilesPerTrigger": "1"})
    folder.write(
        "p.sql",
        """
        CREATE STREAMING TABLE both;
        CREATE FLOW one AS INSERT INTO both BY NAME SELECT k, v FROM STREAM(landing);
        CREATE FLOW two AS INSERT INTO both BY NAME SELECT -k AS k, v FROM STREAM(landing);
        """,
    )
    feed(folder, range(30))

    def interfere(event):
        if event.origin.batch_id == 10 and event.origin.flow_name.endswith("one"):
            data = pa.table({"k": [99], "v": pa.array([99], pa.int64())})
            write_deltalake(folder.table("both"), data, mode="append")

    assert folder.run(listeners=[interfere]).state is UpdateState.COMPLETED
    expected = [(n % KEYS, n) for n in range(30)]
    expected += [(-k, v) for k, v in expected] + [(99, 99)]
    assert folder.rows("both") == sorted(expected, key=repr)
    assert len(files_of(folder, "both")) < 30


def test_by_hand_tables_are_named_as_the_pipeline_names_them(one_file_a_batch):
    folder = one_file_a_batch
    feed(folder, range(5))
    folder.run()
    (found,), problems = maintain(folder.project(), tables=["bronze"])
    assert problems == ()
    assert (found.name, found.files_before, found.files_after) == ("main.sales.bronze", 5, 1)
    found, _ = maintain(folder.project(), dry_run=True)
    assert [table.name for table in found] == [
        "main.sales.bronze",
        "main.sales.current",
        "main.sales.below",
        "main.sales.total",
        "event_log",
    ]
    check(folder, 5)


def test_by_hand_a_table_that_can_not_be_tidied_does_not_keep_others_from_it(one_file_a_batch):
    folder = one_file_a_batch
    feed(folder, range(5))
    folder.run()
    next(folder.table("bronze").glob("*.parquet")).unlink()
    found, _ = maintain(folder.project(), tables=["bronze", "below"])
    assert [table.problem is None for table in found] == [False, True]
    assert found[1].files_after == 1


def test_by_hand_a_folder_for_temporary_files_that_is_full_is_told(one_file_a_batch, monkeypatch):
    folder = one_file_a_batch
    feed(folder, range(5))
    folder.run()
    whole = Upkeep.by_hand

    def spilling(self):
        if self.table.path.name == "bronze":
            raise duckdb.OutOfMemoryException("Out of Memory Error: failed to offload data block")
        return whole(self)

    monkeypatch.setattr(Upkeep, "by_hand", spilling)
    found, _ = maintain(folder.project(), tables=["bronze", "below"])
    assert [type(table.problem) for table in found] == [StorageNotWritableError, type(None)]
    assert "TMPDIR" in found[0].problem.hint


def test_a_server_looks_after_its_own_tables(folder):
    folder.write("p.sql", "CREATE STREAMING TABLE t AS SELECT * FROM STREAM(landing);")
    project = Project.open(
        folder.root / "spark-pipeline.yml", conf={"millpond.engine": "sc://localhost:1"}
    )
    with pytest.raises(MaintenanceElsewhereError, match="OPTIMIZE and VACUUM"):
        maintain(project)
