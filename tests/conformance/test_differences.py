"""What is otherwise on Spark is so still, and all of it is listed in `differences.py`."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from millpond.runner import dry_run, run_query
from tests.conformance.differences import DIFFERENCES
from tests.conformance.stories import story

pytestmark = pytest.mark.timeout(1800)

# By difference: a source file that Spark refuses.
REFUSED = {
    "files": (
        "files.sql",
        """
        CREATE STREAMING TABLE a
        AS SELECT * FROM STREAM read_files('csv', format => 'csv', schema => 'k STRING');
        """,
    ),
    "sequence": (
        "sequence.py",
        """
        from pyspark import pipelines as dp
        from pyspark.sql import functions as sf

        @dp.table(replace_using=["k"], sequence_by=sf.greatest("s", "t"))
        def b():
            return spark.readStream.table("landing")
        """,
    ),
    "left lateral join": (
        "lateral.sql",
        """
        CREATE STREAMING TABLE c
        AS SELECT x FROM STREAM landing LEFT OUTER JOIN LATERAL explode(xs) l(x);
        """,
    ),
}
TOLD = ("column names", "unchanged view", "NaN", "added window", "rows that fail")


def test_what_spark_can_not_do_is_refused_before_data_is_read(folder, engine):
    for name, text in REFUSED.values():
        folder.write(name, text)
    folder.feed("landing", [{"k": "a", "s": 1, "t": 2, "xs": [1]}])
    (folder.root / "csv").mkdir()
    found = {
        problem.where.file.rpartition("/")[2]: problem.error_class
        for problem in dry_run(folder.project())
    }
    refused = {name: "NOT_ON_SPARK" for name, _ in REFUSED.values()}
    assert found == (refused if engine == "spark" else {})


@story
def test_a_materialized_view_without_changed_rows(folder):
    folder.write("p.sql", "CREATE MATERIALIZED VIEW unchanged AS SELECT k FROM unchanged_in")
    folder.feed("unchanged_in", [{"k": "a"}])
    yield
    before = DeltaTable(folder.table("unchanged")).version()
    yield
    commits = DeltaTable(folder.table("unchanged")).version() - before
    assert commits == (1 if folder.engine == "spark" else 0)


@story
def test_a_column_with_a_space_in_its_name(folder):
    folder.write("p.sql", "CREATE STREAMING TABLE spaced AS SELECT k AS `a b` FROM STREAM(spaces)")
    folder.feed("spaces", [{"k": "x"}])
    yield
    assert run_query(folder.project(), "SELECT `a b` FROM spaced").to_pylist() == [{"a b": "x"}]
    properties = DeltaTable(folder.table("spaced")).metadata().configuration
    mapping = properties.get("delta.columnMapping.mode")
    assert mapping == ("name" if folder.engine == "spark" else None)


@story
def test_nan_in_files_of_others_whose_bounds_leave_it_out(folder):
    folder.write(
        "p.sql",
        """
        CREATE STREAMING TABLE above AS SELECT x FROM STREAM(nans_in) WHERE x > 1;
        CREATE MATERIALIZED VIEW is_nan AS SELECT x FROM nans_in WHERE x = double('NaN');
        CREATE STREAMING TABLE all_rows AS SELECT x FROM STREAM(nans_in);
        CREATE MATERIALIZED VIEW spark_wrote_it AS SELECT x FROM all_rows WHERE x > 1;
        """,
    )
    folder.feed("nans_in", pa.table({"x": [float("nan"), 0.0]}))
    yield
    found = [len(folder.rows(table)) for table in ("above", "is_nan", "spark_wrote_it")]
    assert found == ([0, 0, 1] if folder.engine == "spark" else [1, 1, 1])


@story
def test_a_time_window_that_is_added_to_a_stream(folder):
    folder.write(
        "windows.py",
        """
        from pyspark import pipelines as dp
        from pyspark.sql import functions as sf

        def joined(with_window):
            ads, clicks = (
                with_window(spark.readStream.table(name).withWatermark("at", "1 minute"))
                for name in ("ads_in", "clicks_in")
            )
            on = sf.expr("a.ad = c.ad AND a.w = c.w")
            return ads.alias("a").join(clicks.alias("c"), on, "left").select("a.ad", "who")

        @dp.table
        def with_column():
            return joined(lambda rows: rows.withColumn("w", sf.window("at", "5 minutes")))

        @dp.table
        def by_select():
            return joined(lambda rows: rows.select("*", sf.window("at", "5 minutes").alias("w")))
        """,
    )
    at = datetime(2024, 1, 1, tzinfo=UTC)
    folder.feed("ads_in", [{"ad": 1, "at": at}])
    folder.feed("clicks_in", [{"ad": 1, "at": at, "who": "x"}])
    ended = yield
    assert folder.rows("by_select") == [(1, "x")]
    if folder.engine == "spark":
        assert "LeftOuter join" in str(ended.error("with_column"))
    else:
        assert folder.rows("with_column") == [(1, "x")]


@story
def test_how_many_rows_fail_an_append_flow(folder):
    folder.write(
        "p.sql",
        """
        CREATE STREAMING TABLE counted (CONSTRAINT c EXPECT (v > 0) ON VIOLATION FAIL UPDATE)
        AS SELECT * FROM STREAM(counted_in)
        """,
    )
    folder.feed("counted_in", [{"v": -1}, {"v": -1}])
    ended = yield
    error = ended.error("counted")
    assert error.failed_rows == (None if folder.engine == "spark" else 2)
    assert error.row_json == '{"v":-1}'


def test_every_difference_is_tested():
    assert {*DIFFERENCES} == {*REFUSED, *TOLD}
