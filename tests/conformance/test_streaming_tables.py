"""Append flows, and what becomes of their tables from update to update."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from millpond.errors.runner import TableSchemaChangedError
from millpond.errors.streaming import StreamSourceChangedError
from millpond.events import FlowStatus
from millpond.runner import run_query
from tests.conformance.stories import FullRefresh, story

pytestmark = pytest.mark.timeout(1800)


@story
def test_batches_are_bounded_and_all_are_applied(folder):
    folder.write("p.sql", "CREATE STREAMING TABLE bounded AS SELECT k FROM STREAM(bounded_in)")
    for k in "abc":
        folder.feed("bounded_in", [{"k": k}])
    ended = yield
    assert folder.rows("bounded") == [("a",), ("b",), ("c",)]
    assert ended.batches("bounded") == [
        {"batch": number, "read": 1, "out": 1, "dropped": 0} for number in range(3)
    ]
    assert DeltaTable(folder.table("bounded")).version() == 3
    ended = yield
    assert ended.status("bounded") is FlowStatus.COMPLETED
    assert ended.batches("bounded") == []
    assert DeltaTable(folder.table("bounded")).version() == 3


@story
def test_two_append_flows_fill_one_table_and_one_runs_once(folder):
    folder.write(
        "pipeline.sql",
        """
        CREATE STREAMING TABLE joint;
        CREATE FLOW live AS INSERT INTO joint BY NAME SELECT k, v FROM STREAM(joint_in);
        CREATE FLOW backfill AS INSERT ONCE INTO joint BY NAME SELECT v, k FROM joint_old;
        """,
    )
    folder.feed("joint_in", [{"k": "a", "v": 1}])
    folder.feed("joint_old", [{"k": "z", "v": 0}])
    ended = yield
    assert ended.batches("backfill") == [{"batch": 0, "read": 1, "out": 1, "dropped": 0}]
    folder.feed("joint_old", [{"k": "y", "v": 0}])
    folder.feed("joint_in", [{"k": "b", "v": 2}])
    ended = yield
    assert ended.batches("backfill") == []
    assert folder.rows("joint") == [("a", 1), ("b", 2), ("z", 0)]
    yield FullRefresh("joint")
    assert folder.rows("joint") == [("a", 1), ("b", 2), ("y", 0), ("z", 0)]


@story
def test_views_are_read_by_batches_and_streams(folder):
    folder.write(
        "views.py",
        """
        from pyspark import pipelines as dp

        @dp.temporary_view
        def cleaned():
            return spark.readStream.table("viewed_in").where("v > 0")

        @dp.table
        def kept():
            return spark.readStream.table("cleaned").select("k")

        @dp.view
        def totals():
            return spark.read.table("viewed_in").groupBy("k").sum("v")

        @dp.materialized_view
        def best():
            df = spark.read.table("totals")
            return df.orderBy(df.columns[1], ascending=False).limit(1)

        @dp.materialized_view
        def both():
            text = "SELECT k, t.v FROM {totals} JOIN viewed_in t USING (k) WHERE t.v < 3"
            return spark.sql(text, totals=spark.read.table("totals"))
        """,
    )
    folder.feed("viewed_in", [{"k": "a", "v": 1}, {"k": "b", "v": -1}, {"k": "a", "v": 3}])
    yield
    assert folder.rows("kept") == [("a",), ("a",)]
    assert folder.rows("best") == [("a", 4)]
    assert folder.rows("both") == [("a", 1), ("b", -1)]


@story
def test_a_view_names_the_columns_of_its_query(folder):
    folder.write(
        "p.sql",
        """
        CREATE TEMPORARY VIEW named (key, doubled) AS SELECT k, v * 2 FROM STREAM(named_in);
        CREATE STREAMING TABLE renamed AS SELECT doubled, key FROM STREAM(named);
        CREATE MATERIALIZED VIEW letters (letter COMMENT 'one letter') AS SELECT k FROM named_in;
        """,
    )
    folder.feed("named_in", [{"k": "a", "v": 1}])
    yield
    assert folder.rows("renamed") == [(2, "a")]
    (field,) = DeltaTable(folder.table("letters")).schema().fields
    assert field.name == "letter"
    assert field.metadata == {"comment": "one letter"}


@story
def test_new_columns_of_the_query_widen_the_table(folder):
    folder.write("p.sql", "CREATE STREAMING TABLE widened AS SELECT k FROM STREAM(widened_in)")
    folder.feed("widened_in", [{"k": "a", "v": 1}])
    yield
    folder.write("p.sql", "CREATE STREAMING TABLE widened AS SELECT v, k FROM STREAM(widened_in)")
    folder.feed("widened_in", [{"k": "b", "v": 2}])
    yield
    assert folder.columns("widened") == ["k", "v"]
    assert folder.rows("widened") == [("a", None), ("b", 2)]


@story
def test_a_wider_type_of_the_query_widens_the_column(folder):
    folder.write("p.sql", "CREATE STREAMING TABLE bigger AS SELECT k, v FROM STREAM(bigger_in)")
    folder.feed("bigger_in", [{"k": "a", "v": 1}], v=pa.int32())
    yield
    text = "CREATE STREAMING TABLE bigger AS SELECT k, v + {} AS v FROM STREAM(bigger_in)"
    folder.write("p.sql", text.format("8000000000"))
    folder.feed("bigger_in", [{"k": "b", "v": 2}], v=pa.int32())
    yield
    # A query that is narrower again leaves the table as it is.
    folder.write("p.sql", "CREATE STREAMING TABLE bigger AS SELECT k, v FROM STREAM(bigger_in)")
    folder.feed("bigger_in", [{"k": "c", "v": 3}], v=pa.int32())
    yield
    # Not every program can read a table whose types Spark has widened.
    found = run_query(folder.project(), "SELECT k, v FROM bigger ORDER BY k")
    assert found.column("k").to_pylist() == ["a", "b", "c"]
    assert found.column("v").to_pylist() == [1, 8_000_000_002, 3]


NTZ = "TIMESTAMP_NTZ '2020-01-01 10:00:00'"


@story
def test_a_table_that_is_there_gets_columns_and_fields_without_a_time_zone(folder):
    text = """
        CREATE STREAMING TABLE ntz_column AS SELECT k {0} FROM STREAM(ntz_in);
        CREATE STREAMING TABLE ntz_field AS
        SELECT array(named_struct('k', k {1})) AS a FROM STREAM(ntz_in);
        CREATE STREAMING TABLE ntz_date AS SELECT k, {2} AS t FROM STREAM(ntz_in);
    """
    folder.write("p.sql", text.format("", "", "DATE '2020-01-01'"))
    folder.feed("ntz_in", [{"k": "a"}])
    yield
    folder.write("p.sql", text.format(f", {NTZ} AS t", f", 't', {NTZ}", NTZ))
    folder.feed("ntz_in", [{"k": "b"}])
    yield
    ten, midnight = datetime(2020, 1, 1, 10), datetime(2020, 1, 1)  # noqa: DTZ001 - as asked for
    assert folder.rows("ntz_column") == [("a", None), ("b", ten)]
    assert folder.rows("ntz_field") == [([{"k": "a", "t": None}],), ([{"k": "b", "t": ten}],)]
    found = run_query(folder.project(), "SELECT t FROM ntz_date ORDER BY k")
    assert found.column("t").to_pylist() == [midnight, ten]


@story
def test_a_full_refresh_gives_columns_without_a_time_zone(folder):
    text = "CREATE STREAMING TABLE ntz_anew AS SELECT k, {} AS t FROM STREAM(ntz_anew_in)"
    folder.write("p.sql", text.format("1"))
    folder.feed("ntz_anew_in", [{"k": "a"}])
    yield
    folder.write("p.sql", text.format(NTZ))
    yield FullRefresh("ntz_anew")
    assert folder.rows("ntz_anew") == [("a", datetime(2020, 1, 1, 10))]  # noqa: DTZ001 - likewise


@story
def test_a_type_that_can_not_be_widened_is_refused_until_a_full_refresh(folder):
    text = "CREATE STREAMING TABLE other_type AS SELECT k, {} AS v FROM STREAM(other_type_in)"
    folder.write("p.sql", text.format("v"))
    folder.feed("other_type_in", [{"k": "a", "v": 1}])
    yield
    folder.write("p.sql", text.format("'x'"))
    ended = yield
    error = ended.error("other_type")
    assert isinstance(error, TableSchemaChangedError)
    assert "--full-refresh main.sales.other_type" in str(error)
    assert folder.rows("other_type") == [("a", 1)]
    yield FullRefresh("other_type")
    assert folder.rows("other_type") == [("a", "x")]


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
def declared():
    return spark.readStream.table("nested_in").selectExpr(
        "map('a', array(named_struct('x', 1))) AS m"
    )
"""


@story
def test_what_can_not_be_null_inside_a_column_is_read_back(folder):
    folder.write(
        "p.sql",
        f"""
        CREATE STREAMING TABLE inferred AS SELECT {NESTED} FROM STREAM(nested_in);
        CREATE MATERIALIZED VIEW inferred_batch AS SELECT * FROM inferred;
        CREATE STREAMING TABLE inferred_stream AS SELECT * FROM STREAM(inferred);
        CREATE MATERIALIZED VIEW declared_batch AS SELECT * FROM declared;
        CREATE STREAMING TABLE declared_stream AS SELECT * FROM STREAM(declared);
        """,
    )
    folder.write("p.py", DECLARED)
    folder.feed("nested_in", [{"k": "a"}])
    yield
    for suffix in ("", "_batch", "_stream"):
        inferred = ([("a", 1)], [1, 2], {"x": 1, "y": [{"z": "b"}]})
        assert folder.rows(f"inferred{suffix}") == [inferred], suffix
        assert folder.rows(f"declared{suffix}") == [([("a", [{"x": 1}])],)], suffix


@story
def test_other_partition_columns_need_a_full_refresh(folder):
    text = "CREATE STREAMING TABLE split {} AS SELECT k, v FROM STREAM(split_in)"
    folder.write("p.sql", text.format("PARTITIONED BY (k)"))
    folder.feed("split_in", [{"k": "a", "v": 1}])
    yield
    folder.write("p.sql", text.format("PARTITIONED BY (K)"))
    ended = yield
    assert ended.status("split") is FlowStatus.COMPLETED
    folder.write("p.sql", text.format("PARTITIONED BY (v)"))
    ended = yield
    assert "partitioned by k, and is now" in str(ended.error("split"))
    yield FullRefresh("split")
    assert DeltaTable(folder.table("split")).metadata().partition_columns == ["v"]
    assert folder.rows("split") == [("a", 1)]


@story
def test_a_null_in_a_column_declared_not_null_fails_the_flow(folder):
    folder.write(
        "p.sql",
        "CREATE STREAMING TABLE never_null (k STRING NOT NULL) AS SELECT k FROM STREAM(nulls_in)",
    )
    folder.feed("nulls_in", [{"k": "a"}, {"k": None}])
    ended = yield
    assert ended.status("never_null") is FlowStatus.FAILED
    assert ended.error("never_null").error_class == "DELTA_NOT_NULL_VIOLATED"
    assert DeltaTable(folder.table("never_null")).version() == 0


@story
def test_a_source_that_was_changed_stops_the_stream(folder):
    folder.write("p.sql", "CREATE STREAMING TABLE steady AS SELECT k FROM STREAM(steady_in)")
    folder.feed("steady_in", [{"k": "a"}, {"k": "b"}])
    yield
    DeltaTable(folder.table("steady_in")).delete("k = 'a'")
    ended = yield
    assert isinstance(ended.error("steady"), StreamSourceChangedError)
    assert folder.rows("steady") == [("a",), ("b",)]
    folder.write(
        "p.py",
        """
        from pyspark import pipelines as dp

        @dp.table
        def steady():
            return spark.readStream.option("skipChangeCommits", "true").table("steady_in")
        """,
    )
    (folder.root / "transformations" / folder.story / "p.sql").unlink()
    folder.feed("steady_in", [{"k": "c"}])
    yield
    assert folder.rows("steady") == [("a",), ("b",), ("c",)]


@story
def test_a_value_that_the_query_can_not_take_fails_the_flow_and_is_told(folder):
    folder.write(
        "p.sql",
        "CREATE STREAMING TABLE picky (CONSTRAINT any EXPECT (k <> '') ON VIOLATION FAIL UPDATE)\n"
        "AS SELECT coalesce(nullif(k, 'bad'), raise_error('no good')) AS k FROM STREAM(picky_in)",
    )
    folder.feed("picky_in", [{"k": "a"}, {"k": "bad"}])
    ended = yield
    error = ended.error("picky")
    assert error.error_class == "QUERY_FAILED"
    assert "no good" in str(error)
    assert "p.sql:2" in str(error)
    assert folder.rows("picky") == []
