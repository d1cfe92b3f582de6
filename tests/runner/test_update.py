"""A whole update: order, failures, selections, kinds of datasets, what changes between runs."""

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
    TableSchemaChangedError,
    UpdateInProgressError,
)
from millpond.events import FlowStatus, UpdateState
from millpond.runner import dry_run, list_tables, run_query, run_update

PIPELINE = """
CREATE STREAMING TABLE bronze AS SELECT * FROM STREAM(landing);

CREATE STREAMING TABLE silver
FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT k, v, s FROM STREAM(bronze);

CREATE MATERIALIZED VIEW gold AS SELECT k, sum(v) AS total FROM silver GROUP BY k;
"""


def statuses(result):
    return {flow.name.rpartition(".")[2]: flow.status for flow in result.flows}


def test_bronze_then_replace_then_summary_run_in_one_update(folder):
    folder.write("pipeline.sql", PIPELINE)
    folder.feed("landing", [{"k": "a", "v": 1, "s": 1}, {"k": "b", "v": 2, "s": 1}])
    assert folder.run().state is UpdateState.COMPLETED
    folder.feed("landing", [{"k": "a", "v": 5, "s": 2}, {"k": "a", "v": 6, "s": 2}])
    assert folder.run().state is UpdateState.COMPLETED
    assert len(folder.rows("bronze")) == 4
    assert folder.rows("silver") == [("a", 5, 2), ("a", 6, 2), ("b", 2, 1)]
    assert folder.rows("gold") == [("a", 11), ("b", 2)]


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


def test_a_materialized_view_follows_its_query_to_other_columns(folder):
    folder.write("pipeline.sql", PIPELINE)
    folder.feed("landing", [{"k": "a", "v": 1, "s": 1}])
    folder.run()
    folder.write("pipeline.sql", PIPELINE.replace("sum(v) AS total", "count(*) AS n, 'x' AS w"))
    assert folder.run().state is UpdateState.COMPLETED
    assert folder.rows("gold") == [("a", 1, "x")]
    assert folder.columns("gold") == ["k", "n", "w"]


def test_a_failed_flow_skips_its_readers_and_no_others(folder):
    folder.write(
        "pipeline.sql",
        PIPELINE + "CREATE MATERIALIZED VIEW other AS SELECT count(*) AS n FROM landing;\n",
    )
    folder.feed("landing", pa.table({"k": ["a"], "v": [1], "s": pa.array([None], pa.int64())}))
    result = folder.run()
    assert result.state is UpdateState.FAILED
    assert statuses(result) == {
        "bronze": FlowStatus.COMPLETED,
        "silver": FlowStatus.FAILED,
        "gold": FlowStatus.SKIPPED,
        "other": FlowStatus.COMPLETED,
    }
    assert folder.rows("other") == [(1,)]


def test_a_selected_table_runs_alone(folder):
    folder.write("pipeline.sql", PIPELINE)
    folder.feed("landing", [{"k": "a", "v": 1, "s": 1}])
    folder.run()
    folder.feed("landing", [{"k": "a", "v": 9, "s": 9}])
    result = folder.run(refresh=["bronze"])
    assert statuses(result) == {
        "bronze": FlowStatus.COMPLETED,
        "silver": FlowStatus.EXCLUDED,
        "gold": FlowStatus.EXCLUDED,
    }
    assert len(folder.rows("bronze")) == 2
    assert folder.rows("silver") == [("a", 1, 1)]


def test_a_selected_table_whose_source_was_never_made_says_so(folder):
    folder.write("pipeline.sql", PIPELINE)
    folder.feed("landing", [{"k": "a", "v": 1, "s": 1}])
    result = folder.run(refresh=["silver"])
    (failed,) = [flow for flow in result.flows if flow.status is FlowStatus.FAILED]
    assert "main.sales.bronze" in str(failed.error)
    assert "refresh main.sales.bronze first" in str(failed.error)


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


def test_two_append_flows_fill_one_table_and_one_runs_once(folder):
    folder.write(
        "pipeline.sql",
        """
        CREATE STREAMING TABLE t;
        CREATE FLOW live AS INSERT INTO t BY NAME SELECT k, v FROM STREAM(landing);
        CREATE FLOW backfill AS INSERT ONCE INTO t BY NAME SELECT v, k FROM old;
        """,
    )
    folder.feed("landing", [{"k": "a", "v": 1}])
    folder.feed("old", [{"k": "z", "v": 0}])
    folder.run()
    folder.feed("old", [{"k": "y", "v": 0}])
    folder.feed("landing", [{"k": "b", "v": 2}])
    folder.run()
    assert folder.rows("t") == [("a", 1), ("b", 2), ("z", 0)]
    folder.run(full_refresh=["t"])
    assert folder.rows("t") == [("a", 1), ("b", 2), ("y", 0), ("z", 0)]


def test_views_are_read_by_batches_and_streams(folder):
    folder.write(
        "views.py",
        """
        from pyspark import pipelines as dp

        @dp.temporary_view
        def cleaned():
            return spark.readStream.table("landing").where("v > 0")

        @dp.table
        def kept():
            return spark.readStream.table("cleaned").select("k")

        @dp.view
        def totals():
            return spark.read.table("landing").groupBy("k").sum("v")

        @dp.materialized_view
        def best():
            df = spark.read.table("totals")
            return df.orderBy(df.columns[1], ascending=False).limit(1)
        """,
    )
    folder.feed("landing", [{"k": "a", "v": 1}, {"k": "b", "v": -1}, {"k": "a", "v": 3}])
    assert folder.run().state is UpdateState.COMPLETED
    assert folder.rows("kept") == [("a",), ("a",)]
    assert folder.rows("best") == [("a", 4)]


def test_new_columns_of_the_query_widen_the_table(folder):
    folder.write("p.sql", "CREATE STREAMING TABLE t AS SELECT k FROM STREAM(landing)")
    folder.feed("landing", [{"k": "a", "v": 1}])
    folder.run()
    folder.write("p.sql", "CREATE STREAMING TABLE t AS SELECT k, v FROM STREAM(landing)")
    folder.feed("landing", [{"k": "b", "v": 2}])
    folder.run()
    assert folder.rows("t") == [("a", None), ("b", 2)]


def test_a_type_that_can_not_be_widened_is_refused_until_a_full_refresh(folder):
    folder.write("p.sql", "CREATE STREAMING TABLE t AS SELECT k, v FROM STREAM(landing)")
    folder.feed("landing", [{"k": "a", "v": 1}])
    folder.run()
    folder.write("p.sql", "CREATE STREAMING TABLE t AS SELECT k, 'x' AS v FROM STREAM(landing)")
    result = folder.run()
    assert result.state is UpdateState.FAILED
    assert isinstance(result.flows[0].error, TableSchemaChangedError)
    assert "--full-refresh main.sales.t" in str(result.flows[0].error)
    assert folder.rows("t") == [("a", 1)]
    assert folder.run(full_refresh=["t"]).state is UpdateState.COMPLETED
    assert folder.rows("t") == [("a", "x")]


def test_a_declared_schema_is_enforced_before_data_is_read(folder):
    folder.write(
        "p.sql",
        "CREATE STREAMING TABLE t (k STRING NOT NULL, v INT)\n"
        "AS SELECT k, v, 1 AS extra FROM STREAM(landing)",
    )
    folder.feed("landing", [{"k": "a", "v": 1}])
    texts = [str(problem) for problem in dry_run(folder.project())]
    assert any("extra" in text for text in texts)
    assert any("column v as bigint" in text and "int" in text for text in texts)
    assert not folder.table("t").exists()


NESTED = """
    map('a', 1) AS m, array(1, 2) AS a, named_struct('x', 1, 'y', array(named_struct('z', 'b'))) AS s
"""
DECLARED = """
from pyspark import pipelines as dp
from pyspark.sql import types as t

inner = t.StructType([t.StructField("x", t.IntegerType(), False)])
schema = t.StructType([
    t.StructField("m", t.MapType(t.StringType(), t.ArrayType(inner, False), False), False),
])

@dp.table(schema=schema)
def first():
    return spark.readStream.table("landing").selectExpr(
        "map('a', array(named_struct('x', 1))) AS m"
    )
"""


@pytest.mark.parametrize(
    ("name", "text", "row"),
    [
        (
            "first.sql",
            f"CREATE STREAMING TABLE first AS SELECT {NESTED} FROM STREAM(landing)",
            ({"a": 1}, [1, 2], {"x": 1, "y": [{"z": "b"}]}),
        ),
        ("first.py", DECLARED, ({"a": [{"x": 1}]},)),
    ],
    ids=["inferred", "declared"],
)
def test_what_can_not_be_null_inside_a_column_is_read_back(folder, name, text, row):
    folder.write(name, text)
    folder.write("batch.sql", "CREATE MATERIALIZED VIEW batch AS SELECT * FROM first")
    folder.write("stream.sql", "CREATE STREAMING TABLE stream AS SELECT * FROM STREAM(first)")
    folder.feed("landing", [{"k": "a"}])
    assert folder.run().state is UpdateState.COMPLETED
    for table in ("first", "batch", "stream"):
        assert run_query(folder.project(), f"SELECT * FROM {table}").to_pylist() == [
            dict(zip("mas", [list(row[0].items()), *row[1:]], strict=False))
        ]


def test_other_partition_columns_need_a_full_refresh(folder):
    text = "CREATE STREAMING TABLE t {} AS SELECT k, v FROM STREAM(landing)"
    folder.write("p.sql", text.format("PARTITIONED BY (k)"))
    folder.feed("landing", [{"k": "a", "v": 1}])
    folder.run()
    folder.write("p.sql", text.format("PARTITIONED BY (K)"))
    assert folder.run().state is UpdateState.COMPLETED
    folder.write("p.sql", text.format("PARTITIONED BY (v)"))
    result = folder.run()
    assert result.state is UpdateState.FAILED
    assert "partitioned by k, and is now" in str(result.flows[0].error)
    assert folder.run(full_refresh=["t"]).state is UpdateState.COMPLETED
    assert DeltaTable(folder.table("t")).metadata().partition_columns == ["v"]
    assert folder.rows("t") == [("a", 1)]


def test_a_materialized_view_takes_other_partition_columns(folder):
    text = "CREATE MATERIALIZED VIEW t {} AS SELECT k, v FROM landing"
    folder.write("p.sql", text.format("PARTITIONED BY (k)"))
    folder.feed("landing", [{"k": "a", "v": 1}])
    folder.run()
    folder.write("p.sql", text.format(""))
    assert folder.run().state is UpdateState.COMPLETED
    assert DeltaTable(folder.table("t")).metadata().partition_columns == []
    assert folder.rows("t") == [("a", 1)]


def test_a_null_in_a_column_declared_not_null_fails_the_flow(folder):
    folder.write(
        "p.sql",
        "CREATE STREAMING TABLE t (k STRING NOT NULL) AS SELECT k FROM STREAM(landing)",
    )
    folder.feed("landing", [{"k": "a"}, {"k": None}])
    result = folder.run()
    assert result.state is UpdateState.FAILED
    assert "k" in str(result.flows[0].error)
    assert DeltaTable(folder.table("t")).version() == 0


def test_batches_are_bounded_and_all_are_applied(folder):
    folder.configure({"millpond.maxFilesPerTrigger": "1"})
    folder.write("p.sql", "CREATE STREAMING TABLE t AS SELECT k FROM STREAM(landing)")
    for k in "abc":
        folder.feed("landing", [{"k": k}])
    folder.run()
    assert folder.rows("t") == [("a",), ("b",), ("c",)]
    assert DeltaTable(folder.table("t")).version() == 3


def test_every_problem_is_found_in_one_dry_run(folder):
    folder.write(
        "one.sql",
        "CREATE STREAMING TABLE a AS SELECT * FROM STREAM(missing);\n"
        "CREATE MATERIALIZED VIEW b AS SELECT nothing FROM landing;\n"
        "CREATE STREAMING TABLE c;\n",
    )
    folder.write("two.py", "import pyspark.pipelines as dp\n\n\n1 / 0\n")
    folder.feed("landing", [{"k": "a"}])
    problems = dry_run(folder.project())
    classes = {problem.error_class for problem in problems}
    assert {"TABLE_OR_VIEW_NOT_FOUND", "DATASET_WITHOUT_FLOW"} <= classes
    assert len(problems) == 4
    assert all(problem.where is not None for problem in problems)


def test_tables_lists_every_dataset_before_and_after_the_first_update(folder):
    folder.write("pipeline.sql", PIPELINE + "CREATE TEMPORARY VIEW v AS SELECT 1 AS one;")
    folder.feed("landing", [{"k": "a", "v": 1, "s": 1}, {"k": "a", "v": 2, "s": 2}])
    before, _ = list_tables(folder.project())
    assert [(t.name, t.kind, t.flow, t.rows) for t in before] == [
        ("main.sales.bronze", "STREAMING_TABLE", "APPEND", None),
        ("main.sales.silver", "STREAMING_TABLE", "REPLACE_USING", None),
        ("main.sales.gold", "MATERIALIZED_VIEW", "MATERIALIZED_VIEW", None),
        ("main.sales.v", "TEMPORARY_VIEW", "VIEW", None),
    ]
    folder.run()
    after, _ = list_tables(folder.project())
    assert [(t.rows, t.version) for t in after] == [(2, 1), (1, 1), (1, 1), (None, None)]


def test_a_query_sees_tables_views_sources_and_events(folder):
    folder.write("pipeline.sql", PIPELINE + "CREATE TEMPORARY VIEW v AS SELECT k FROM silver;")
    folder.feed("landing", [{"k": "a", "v": 1, "s": 1}])
    folder.run()
    text = "SELECT v.k, landing.s FROM v JOIN sales.landing ON v.k = landing.k"
    assert run_query(folder.project(), text).to_pylist() == [{"k": "a", "s": 1}]
    events = run_query(folder.project(), "SELECT count(*) AS n FROM event_log").to_pylist()
    assert events[0]["n"] > 5


def test_expectations_of_a_view_drop_rows_before_its_readers_see_them(folder):
    folder.write(
        "p.sql",
        """
        CREATE TEMPORARY VIEW v (CONSTRAINT real EXPECT (v > 0) ON VIOLATION DROP ROW)
        AS SELECT * FROM STREAM(landing);
        CREATE STREAMING TABLE t AS SELECT k FROM STREAM(v);
        """,
    )
    folder.feed("landing", [{"k": "a", "v": 1}, {"k": "b", "v": -1}, {"k": "c", "v": None}])
    assert folder.run().state is UpdateState.COMPLETED
    assert folder.rows("t") == [("a",)]


def test_a_view_names_the_columns_of_its_query(folder):
    folder.write(
        "p.sql",
        """
        CREATE TEMPORARY VIEW v (key, doubled) AS SELECT k, v * 2 FROM STREAM(landing);
        CREATE STREAMING TABLE t AS SELECT doubled, key FROM STREAM(v);
        CREATE MATERIALIZED VIEW m (letter COMMENT 'one letter') AS SELECT k FROM landing;
        """,
    )
    folder.feed("landing", [{"k": "a", "v": 1}])
    assert folder.run().state is UpdateState.COMPLETED
    assert folder.rows("t") == [(2, "a")]
    assert folder.columns("m") == ["letter"]
    fields = DeltaTable(folder.table("m")).schema().fields
    assert fields[0].metadata == {"comment": "one letter"}


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


def test_the_event_log_keeps_every_problem_of_the_source_files(folder):
    folder.write(
        "p.sql",
        "CREATE STREAMING TABLE a;\nCREATE MATERIALIZED VIEW b AS SELECT * FROM missing;\n",
    )
    events = []
    assert folder.run(listeners=[events.append]).state is UpdateState.FAILED
    assert "2 problems in the source files, the first: [DATASET_WITHOUT_FLOW]" in events[-1].message
    classes = [exception["error_class"] for exception in events[-1].error.exceptions]
    assert classes == ["DATASET_WITHOUT_FLOW", "TABLE_OR_VIEW_NOT_FOUND"]


def test_a_filter_keeps_the_rows_with_nan_that_statistics_leave_out(folder):
    """NaN is greater than every number to Spark, and no bound of a page says that it is there."""
    folder.write(
        "p.sql",
        """
        CREATE STREAMING TABLE t AS SELECT x FROM STREAM(landing) WHERE x > 1;
        CREATE MATERIALIZED VIEW m AS SELECT x FROM landing WHERE x = double('NaN');
        """,
    )
    folder.feed("landing", pa.table({"x": [float("nan"), 0.0]}))
    assert folder.run().state is UpdateState.COMPLETED
    assert [len(folder.rows(table)) for table in ("t", "m")] == [1, 1]
    query = "SELECT count(*) AS n FROM landing WHERE x >= 2"
    assert run_query(folder.project(), query).to_pylist() == [{"n": 1}]
