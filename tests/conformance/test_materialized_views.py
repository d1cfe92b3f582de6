"""Materialized views, and what reads whole tables."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from millpond.events import FlowStatus
from tests.conformance.stories import FullRefresh, story

pytestmark = pytest.mark.timeout(1800)

LAYERS = """
CREATE STREAMING TABLE bronze AS SELECT * FROM STREAM(layers_in);

CREATE STREAMING TABLE silver
FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT k, v, s FROM STREAM(bronze);

CREATE MATERIALIZED VIEW gold AS SELECT k, sum(v) AS total FROM silver GROUP BY k;
"""


@story
def test_bronze_then_replace_then_summary_run_in_one_update(folder):
    folder.write("p.sql", LAYERS)
    folder.feed("layers_in", [{"k": "a", "v": 1, "s": 1}, {"k": "b", "v": 2, "s": 1}])
    yield
    assert folder.rows("gold") == [("a", 1), ("b", 2)]
    folder.feed("layers_in", [{"k": "a", "v": 5, "s": 2}, {"k": "a", "v": 6, "s": 2}])
    ended = yield
    assert len(folder.rows("bronze")) == 4
    assert folder.rows("silver") == [("a", 5, 2), ("a", 6, 2), ("b", 2, 1)]
    assert folder.rows("gold") == [("a", 11), ("b", 2)]
    assert ended.batches("gold") == [{"batch": 0, "read": 2, "out": 2, "deleted": 2, "dropped": 0}]


@story
def test_a_materialized_view_is_computed_anew(folder):
    text = "CREATE MATERIALIZED VIEW small AS SELECT k FROM small_in WHERE k < {}"
    folder.write("p.sql", text.format(9))
    folder.feed("small_in", [{"k": 1}, {"k": 2}, {"k": 3}])
    ended = yield
    assert ended.batches("small") == [{"batch": 0, "read": 3, "out": 3, "deleted": 0, "dropped": 0}]
    folder.write("p.sql", text.format(2))
    ended = yield
    assert ended.batches("small") == [{"batch": 0, "read": 1, "out": 1, "deleted": 3, "dropped": 0}]
    assert folder.rows("small") == [(1,)]
    folder.write("p.sql", text.format(0))
    ended = yield
    assert ended.batches("small") == [{"batch": 0, "read": 0, "out": 0, "deleted": 1, "dropped": 0}]
    assert folder.rows("small") == []


@story
def test_a_materialized_view_follows_its_query_to_other_columns(folder):
    text = "CREATE MATERIALIZED VIEW shaped {} AS SELECT {} FROM shaped_in GROUP BY k"
    folder.write("p.sql", text.format("", "k, sum(v) AS total"))
    folder.feed("shaped_in", [{"k": "a", "v": 1}])
    yield
    assert folder.rows("shaped") == [("a", 1)]
    folder.write("p.sql", text.format("", "k, count(*) AS n, 'x' AS total"))
    yield
    assert folder.rows("shaped") == [("a", 1, "x")]
    assert folder.columns("shaped") == ["k", "n", "total"]


@story
def test_a_materialized_view_gets_a_column_without_a_time_zone(folder):
    text = "CREATE MATERIALIZED VIEW ntz AS SELECT k {} FROM ntz_in"
    folder.write("p.sql", text.format(""))
    folder.feed("ntz_in", [{"k": "a"}])
    yield
    folder.write("p.sql", text.format(", TIMESTAMP_NTZ '2020-01-01 10:00:00' AS t"))
    yield
    assert folder.rows("ntz") == [("a", datetime(2020, 1, 1, 10))]  # noqa: DTZ001 - as asked for


@story
def test_a_materialized_view_has_its_columns_as_they_are_declared(folder):
    text = (
        "CREATE MATERIALIZED VIEW spelled ({}) AS SELECT 'a' AS k, count(*) AS N {} FROM spelled_in"
    )
    folder.write("p.sql", text.format("n BIGINT, K STRING", ""))
    folder.feed("spelled_in", [{"v": 1}])
    yield
    assert folder.columns("spelled") == ["n", "K"]
    wider = text.format(
        "n BIGINT, K STRING, P STRUCT<x: BIGINT, Y: BIGINT>, none DATE, Z INT", "{}"
    )
    folder.write("p.sql", wider.format(", 1 AS z, named_struct('y', 2, 'X', 1) AS p"))
    for rows in (1, 2):
        yield
        assert folder.columns("spelled") == ["n", "K", "P", "none", "Z"]
        assert folder.rows("spelled") == [(rows, "a", {"x": 1, "Y": 2}, None, 1)]
        folder.feed("spelled_in", [{"v": 2}])
    # What the table is does not change any more.
    newest = max((folder.table("spelled") / "_delta_log").glob("*.json"))
    assert "metaData" not in newest.read_text()


@story
def test_a_materialized_view_keeps_comments_and_constraints_of_its_columns(folder):
    text = "CREATE MATERIALIZED VIEW strict (k STRING NOT NULL COMMENT 'key'{}) AS SELECT * FROM {}"
    folder.write("p.sql", text.format("", "strict_in"))
    folder.feed("strict_in", [{"k": "a"}])
    folder.feed("stricter_in", [{"k": "a", "v": 1}])
    yield

    def check(names):
        fields = DeltaTable(folder.table("strict")).schema().fields
        assert [field.name for field in fields] == names
        assert fields[0].metadata == {"comment": "key"}
        assert not fields[0].nullable

    check(["k"])
    folder.write("p.sql", text.format(", v BIGINT", "stricter_in"))
    yield
    check(["k", "v"])
    assert folder.rows("strict") == [("a", 1)]
    folder.feed("stricter_in", [{"k": None, "v": 1}], k=pa.string())
    ended = yield
    assert ended.error("strict").error_class == "DELTA_NOT_NULL_VIOLATED"
    assert folder.rows("strict") == [("a", 1)]
    # Other columns come with their rows, or not at all.
    folder.feed("strictest_in", [{"k": None, "w": 1}], k=pa.string())
    folder.write("p.sql", text.format(", w BIGINT", "strictest_in"))
    ended = yield
    assert ended.error("strict").error_class == "DELTA_NOT_NULL_VIOLATED"
    check(["k", "v"])
    assert folder.rows("strict") == [("a", 1)]
    folder.write(
        "p.sql",
        text.format(", w BIGINT", "(SELECT 'a' AS k, CAST(raise_error('no rows') AS BIGINT) AS w)"),
    )
    ended = yield
    assert ended.error("strict").error_class == "QUERY_FAILED"
    check(["k", "v"])
    assert folder.rows("strict") == [("a", 1)]


@story
def test_what_looks_like_a_variable_stays_as_it_is_written(folder):
    folder.write(
        "p.py",
        """
        from pyspark import pipelines as dp

        @dp.materialized_view(comment="costs ${env:PATH}")
        def dollars():
            return spark.sql("SELECT '${spark.app.name}' AS a, k AS `$${env:PATH}` FROM dollars_in")
        """,
    )
    folder.feed("dollars_in", [{"k": 1}])
    yield
    assert folder.columns("dollars") == ["a", "$${env:PATH}"]
    assert folder.rows("dollars") == [("${spark.app.name}", 1)]
    assert DeltaTable(folder.table("dollars")).metadata().description == "costs ${env:PATH}"


@story
def test_a_materialized_view_takes_other_partition_columns(folder):
    text = "CREATE MATERIALIZED VIEW parted {} AS SELECT k, v FROM parted_in"
    folder.write("p.sql", text.format("PARTITIONED BY (k)"))
    folder.feed("parted_in", [{"k": "a", "v": 1}])
    yield
    assert DeltaTable(folder.table("parted")).metadata().partition_columns == ["k"]
    folder.write("p.sql", text.format(""))
    yield
    assert DeltaTable(folder.table("parted")).metadata().partition_columns == []
    assert folder.rows("parted") == [("a", 1)]
    # It is what it was until it has its rows.
    failing = text.replace("v FROM", "CAST(raise_error('no rows') AS BIGINT) AS v FROM")
    folder.write("p.sql", failing.format("PARTITIONED BY (k)"))
    ended = yield
    assert ended.error("parted").error_class == "QUERY_FAILED"
    assert DeltaTable(folder.table("parted")).metadata().partition_columns == []
    assert folder.rows("parted") == [("a", 1)]
    folder.write("p.sql", text.format("PARTITIONED BY (k)"))
    yield
    assert DeltaTable(folder.table("parted")).metadata().partition_columns == ["k"]
    assert folder.rows("parted") == [("a", 1)]


@story
def test_a_full_refresh_of_a_materialized_view_leaves_its_rows_until_the_new_ones_are_there(folder):
    text = "CREATE MATERIALIZED VIEW renewed AS SELECT {} AS v FROM renewed_in"
    folder.write("p.sql", text.format("v"))
    folder.feed("renewed_in", [{"v": 1}])
    yield
    folder.write("p.sql", text.format("CAST(raise_error('no rows') AS BIGINT)"))
    ended = yield FullRefresh("renewed")
    assert ended.error("renewed").error_class == "QUERY_FAILED"
    assert folder.rows("renewed") == [(1,)]
    folder.write("p.sql", text.format("v + 1"))
    yield
    assert folder.rows("renewed") == [(2,)]


@story
def test_a_materialized_view_may_lose_and_gain_not_null(folder):
    text = "CREATE MATERIALIZED VIEW maybe (k STRING{}) AS SELECT k FROM {}"
    folder.feed("maybe_in", [{"k": "a"}])
    folder.feed("maybe_null", [{"k": None}], k=pa.string())
    folder.write("p.sql", text.format(" NOT NULL", "maybe_in"))
    yield
    folder.write("p.sql", text.format("", "maybe_null"))
    yield
    assert folder.rows("maybe") == [(None,)]
    folder.write("p.sql", text.format(" NOT NULL", "maybe_null"))
    ended = yield
    assert ended.error("maybe").error_class == "DELTA_NOT_NULL_VIOLATED"
    assert folder.rows("maybe") == [(None,)]
    folder.write("p.sql", text.format(" NOT NULL", "maybe_in"))
    yield
    assert folder.rows("maybe") == [("a",)]


@story
def test_a_partition_column_of_a_materialized_view_may_change_its_letter_case(folder):
    text = "CREATE MATERIALIZED VIEW cased ({}) PARTITIONED BY (k) AS SELECT k, v FROM cased_in"
    folder.write("p.sql", text.format("v BIGINT, k STRING"))
    folder.feed("cased_in", [{"k": "a", "v": 1}])
    yield
    folder.write("p.sql", text.format("K STRING, v BIGINT"))
    yield
    partitioned = DeltaTable(folder.table("cased")).metadata().partition_columns
    assert (partitioned, folder.columns("cased")) == (["K"], ["K", "v"])
    assert folder.rows("cased") == [("a", 1)]


@story
def test_a_failed_flow_skips_its_readers_and_no_others(folder):
    folder.write(
        "p.sql",
        """
        CREATE STREAMING TABLE first AS SELECT * FROM STREAM(chain_in);
        CREATE STREAMING TABLE second
        FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT * FROM STREAM(first);
        CREATE MATERIALIZED VIEW third AS SELECT count(*) AS n FROM second;
        CREATE MATERIALIZED VIEW other AS SELECT count(*) AS n FROM chain_in;
        """,
    )
    folder.feed("chain_in", [{"k": "a", "s": 1}, {"k": "a", "s": None}])
    ended = yield
    assert {name: ended.status(name) for name in ("first", "second", "third", "other")} == {
        "first": FlowStatus.COMPLETED,
        "second": FlowStatus.FAILED,
        "third": FlowStatus.SKIPPED,
        "other": FlowStatus.COMPLETED,
    }
    assert folder.rows("other") == [(2,)]


@story
def test_a_table_that_another_program_made_keeps_its_rows(folder):
    folder.write(
        "p.sql",
        """
        CREATE MATERIALIZED VIEW theirs AS SELECT k FROM theirs_in;
        CREATE STREAMING TABLE also_theirs AS SELECT k FROM STREAM(theirs_in);
        """,
    )
    folder.feed("theirs_in", [{"k": 1}])
    for table in ("theirs", "also_theirs"):
        folder.feed(table, [{"k": 9}])
    first = yield
    second = yield FullRefresh("theirs")
    for ended in (first, second):
        assert ended.error("theirs").error_class == "TABLE_NOT_FROM_PIPELINE"
    ended = yield
    assert ended.error("also_theirs").error_class == "TABLE_NOT_FROM_PIPELINE"
    for table in ("theirs", "also_theirs"):
        assert folder.rows(table) == [(9,)]
