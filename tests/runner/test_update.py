"""What an update does on the embedded engine alone: its lock, its disk, its commits.

What it does on every engine is in `tests/conformance`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from millpond.cli.plain_progress import PlainProgress
from millpond.errors.graph import UnknownDatasetError
from millpond.errors.runner import (
    ConflictingSelectionError,
    ResetNotAllowedError,
    StorageNotWritableError,
    UpdateInProgressError,
)
from millpond.events import UpdateState
from millpond.runner import run_query, run_update

PIPELINE = """
CREATE STREAMING TABLE bronze AS SELECT * FROM STREAM(landing);

CREATE STREAMING TABLE silver
FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT k, v, s FROM STREAM(bronze);

CREATE MATERIALIZED VIEW gold AS SELECT k, sum(v) AS total FROM silver GROUP BY k;
"""


def test_a_materialized_view_without_changed_rows_is_not_committed(folder):
    folder.write("pipeline.sql", PIPELINE)
    folder.feed("landing", [{"k": "a", "v": 1, "s": 1}])
    folder.run()
    before = DeltaTable(folder.table("gold")).version()
    folder.feed("landing", [{"k": "a", "v": 0, "s": 0}])
    folder.run()
    assert DeltaTable(folder.table("gold")).version() == before


def test_rows_that_a_materialized_view_loses_are_counted(folder):
    folder.write("p.sql", "CREATE MATERIALIZED VIEW m AS SELECT k FROM landing WHERE k < ${top}")
    folder.feed("landing", [{"k": 1}, {"k": 2}, {"k": 3}])

    def lines(top):
        told = []
        progress = PlainProgress(write=told.append)
        run_update(folder.project(top=top), listeners=[progress.listen])
        message = run_query(
            folder.project(top=top),
            "SELECT message FROM event_log WHERE origin.batch_id = 0 ORDER BY timestamp DESC",
        ).to_pylist()[0]["message"]
        return told[-1].partition("s: ")[2], message.partition(": ")[2]

    assert lines("9") == ("3 rows in, 3 inserted", "3 rows in, 3 inserted.")
    assert lines("2") == ("1 row in, 3 replaced, 1 inserted", "1 row in, 3 replaced, 1 inserted.")
    assert lines("0") == ("1 removed", "0 rows in, 1 removed.")
    assert lines("0") == ("nothing new", "0 rows in, no change.")


@pytest.mark.parametrize(
    ("selection", "error"),
    [
        ({"refresh": ["nothing"]}, UnknownDatasetError),
        ({"refresh": ["silver"], "full_refresh_all": True}, ConflictingSelectionError),
        ({"refresh": ["silver"], "full_refresh": ["Silver"]}, ConflictingSelectionError),
    ],
)
def test_a_selection_that_makes_no_sense_is_refused(folder, selection, error):
    folder.write("pipeline.sql", PIPELINE)
    folder.feed("landing", [{"k": "a", "v": 1, "s": 1}])
    with pytest.raises(error):
        folder.run(**selection)


def test_a_table_that_forbids_a_reset_keeps_its_rows(folder):
    folder.write(
        "pipeline.sql",
        """
        CREATE STREAMING TABLE kept TBLPROPERTIES (pipelines.reset.allowed = false)
        AS SELECT * FROM STREAM(landing);
        CREATE STREAMING TABLE cleared AS SELECT * FROM STREAM(landing);
        """,
    )
    folder.feed("landing", [{"k": "a"}])
    folder.run()
    with pytest.raises(ResetNotAllowedError):
        folder.run(full_refresh=["kept"])
    folder.run(full_refresh_all=True)
    assert DeltaTable(folder.table("kept")).version() == 1
    assert DeltaTable(folder.table("cleared")).version() == 3
    assert folder.rows("kept") == folder.rows("cleared") == [("a",)]


def test_a_second_update_at_the_same_time_is_refused(folder):
    folder.write("pipeline.sql", PIPELINE)
    folder.feed("landing", [{"k": "a", "v": 1, "s": 1}])
    folder.layout.root.mkdir(exist_ok=True)
    descriptor = os.open(folder.layout.lock, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(UpdateInProgressError):
            folder.run()
    finally:
        os.close(descriptor)
    assert folder.run().state is UpdateState.COMPLETED


@pytest.mark.parametrize(
    "failure",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/storage/part.parquet"),
        duckdb.IOException(
            'IO Error: Async write failed for range [offset=510, size=24]: {"exception_type":"IO",'
            '"exception_message":"Could not write file \\"a\\": No space left on device"}'
        ),
    ],
)
def test_a_full_disk_fails_the_flow_in_plain_words(folder, monkeypatch, failure):
    def fail(*_args, **_more):
        raise failure

    folder.write("p.sql", "CREATE STREAMING TABLE t AS SELECT * FROM STREAM(landing)")
    folder.feed("landing", [{"k": 1}])
    monkeypatch.setattr(sys.modules["millpond.flows.append"], "write_data_files", fail)
    (flow,) = folder.run().flows
    assert isinstance(flow.error, StorageNotWritableError)
    assert "No space left on device" in str(flow.error)
    assert "{" not in str(flow.error)
    assert "p.sql:1" in str(flow.error)
    monkeypatch.undo()
    folder.run()
    assert folder.rows("t") == [(1,)]


def test_statistics_of_other_writers_that_leave_nan_out_mislead_nobody(folder):
    """delta-rs writes bounds without NaN, and a reader that trusts them gives other values."""
    folder.write(
        "p.sql",
        """
        CREATE STREAMING TABLE t AS SELECT x, d FROM STREAM(landing);
        CREATE MATERIALIZED VIEW m AS SELECT x, d FROM landing WHERE isnan(x);
        """,
    )
    decimal = Decimal("12345678901234567890.12")
    rows = {"x": [1.5, float("nan"), 1.5], "d": pa.array([decimal] * 3, pa.decimal128(38, 2))}
    folder.feed("landing", pa.table(rows))
    assert folder.run().state is UpdateState.COMPLETED
    text = "SELECT count(*) AS n, min(d) AS d FROM {} WHERE isnan(x)"
    for table in ("landing", "t", "m"):
        found = run_query(folder.project(), text.format(table)).to_pylist()
        assert found == [{"n": 1, "d": decimal}], table


def test_properties_that_managed_services_ask_for_by_habit_are_left_out_with_a_warning(folder):
    folder.write(
        "p.sql",
        """
        CREATE STREAMING TABLE t TBLPROPERTIES (
          'delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name',
          'quality' = 'bronze', 'delta.enableRowTracking' = 'false'
        ) AS SELECT k FROM STREAM(landing);
        """,
    )
    folder.feed("landing", [{"k": "a"}])
    events = []
    assert folder.run(listeners=[events.append]).state is UpdateState.COMPLETED
    assert [event.message for event in events if event.level == "WARN"] == [
        (
            "Dataset main.sales.t is defined as a streaming table. Its table does without "
            "delta.enableChangeDataFeed, delta.columnMapping.mode."
        )
    ]
    table = DeltaTable(folder.table("t"))
    assert table.metadata().configuration["quality"] == "bronze"
    assert "delta.enableChangeDataFeed" not in table.metadata().configuration
    assert folder.rows("t") == [("a",)]


def test_a_query_finds_nan_that_statistics_leave_out(folder):
    """NaN is greater than every number to Spark, and no bound of a page says that it is there."""
    folder.feed("landing", pa.table({"x": [float("nan"), 0.0]}))
    query = "SELECT count(*) AS n FROM landing WHERE x >= 2"
    assert run_query(folder.project(), query).to_pylist() == [{"n": 1}]


def test_a_full_refresh_leaves_no_old_checkpoint(folder):
    folder.write("pipeline.sql", PIPELINE)
    folder.feed("landing", [{"k": "a", "v": 1, "s": 1}])
    folder.run()
    folder.run(full_refresh=["silver"])
    for flow in (folder.root / "storage" / "checkpoints").iterdir():
        assert len(list(flow.iterdir())) == 1
