"""What operators keep from update to update, and what comes out, through the whole program."""

from __future__ import annotations

import json
import shutil
from collections import Counter

from deltalake import DeltaTable

from millpond.events import UpdateState
from tests.runner.kept_state import (
    DISTINCT,
    ONE_FILE_A_BATCH,
    completed,
    minute,
    pairs,
    state_of,
    timed,
    versions,
    written,
)

JOINED = """
CREATE STREAMING TABLE joined AS
SELECT a.id, b.id AS other FROM STREAM(a) WATERMARK ts DELAY OF INTERVAL 1 MINUTE AS a
{kind} JOIN STREAM(b) WATERMARK ts DELAY OF INTERVAL 1 MINUTE AS b
ON a.id = b.id AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 MINUTES;
"""
WINDOWS = """
CREATE STREAMING TABLE windows AS SELECT window.start AS starts, count(*) AS n
FROM STREAM(timed) WATERMARK ts DELAY OF INTERVAL 1 MINUTE GROUP BY window(ts, '5 minutes');
"""


def test_an_update_without_anything_new_writes_nothing(folder):
    folder.write("all.sql", DISTINCT + JOINED.format(kind="LEFT") + WINDOWS)
    folder.feed("landing", pairs(1, 1, 2))
    folder.feed("a", timed(0, 3))
    folder.feed("b", timed(3))
    folder.feed("timed", timed(1, 2, 20))
    completed(folder.run())
    before = written(folder)
    for _ in range(2):
        completed(folder.run())
        assert written(folder) == before


def test_a_batch_without_rows_follows_where_the_watermark_moved_and_only_once(folder):
    folder.write("windows.sql", WINDOWS)
    folder.feed("timed", timed(1, 2, 20))
    completed(folder.run())
    # The rows, then what the watermark of 00:19 lets out.
    assert versions(folder, "windows") == [0, 1]
    assert folder.rows("windows") == [(minute(0), 2)]
    completed(folder.run())
    assert versions(folder, "windows") == [0, 1]
    folder.feed("timed", timed(19, 18))
    completed(folder.run())
    # The watermark stands where it stood: there is nothing to run again for. 00:19 is late.
    assert versions(folder, "windows") == [0, 1, 2]


def test_rows_without_a_match_come_out_in_the_update_in_which_the_watermark_passes(folder):
    folder.write("joined.sql", JOINED.format(kind="FULL"))
    folder.feed("a", timed(0, 3))
    folder.feed("b", timed(3, 4))
    completed(folder.run())
    assert folder.rows("joined") == [(3, 3)]
    folder.feed("a", timed(30))
    completed(folder.run())
    # The other stream holds the watermark back: at 00:03, where nothing is past meeting.
    assert (0, None) not in folder.rows("joined")
    folder.feed("b", timed(30))
    completed(folder.run())
    assert folder.rows("joined") == sorted([(0, None), (3, 3), (None, 4), (30, 30)], key=repr)


def test_a_watermark_lets_state_shrink(folder):
    folder.write(
        "all.sql",
        JOINED.format(kind="LEFT")
        + "CREATE STREAMING TABLE once AS SELECT DISTINCT id, ts FROM STREAM(a) "
        "WATERMARK ts DELAY OF INTERVAL 1 MINUTE;",
    )
    folder.configure(ONE_FILE_A_BATCH)
    for start in range(0, 1500, 100):
        folder.feed("a", timed(*range(start, start + 100)))
        folder.feed("b", timed(*range(start, start + 100, 2)))
    completed(folder.run())
    live = {
        flow: [
            sum(file["rows"] for run in part["runs"] for file in run)
            for parts in json.loads(
                (state_of(folder, flow) / "versions" / str(versions(folder, flow)[-1])).read_text()
            )["rows"].values()
            for part in parts.values()
        ]
        for flow in ("joined", "once")
    }
    # Of 1,500 rows, those of one update or two.
    assert all(rows <= 300 for parts in live.values() for rows in parts), live
    expected = {(n, n if n % 2 == 0 else None) for n in range(1493)}
    assert expected <= set(folder.rows("joined"))
    assert len(folder.rows("once")) == 1500


def test_flows_that_read_one_view_each_keep_their_own(folder):
    folder.write(
        "all.sql",
        """
        CREATE TEMPORARY VIEW each AS SELECT DISTINCT k FROM STREAM(landing);
        CREATE STREAMING TABLE one AS SELECT k FROM STREAM(each);
        CREATE STREAMING TABLE two AS SELECT k, 'two' AS n FROM STREAM(each) WHERE k > 1;
        CREATE STREAMING TABLE twice AS
        SELECT k, 'a' AS side FROM STREAM(each) UNION ALL SELECT k, 'b' FROM STREAM(each);
        CREATE STREAMING TABLE late AS SELECT k FROM STREAM(each);
        """,
    )
    folder.feed("landing", pairs(1, 1, 2))
    completed(folder.run(refresh=["one", "two", "twice"]))
    folder.feed("landing", pairs(2, 3))
    completed(folder.run())
    completed(folder.run(full_refresh=["two"]))
    assert folder.rows("one") == folder.rows("late") == [(1,), (2,), (3,)]
    assert folder.rows("two") == [(2, "two"), (3, "two")]
    assert folder.rows("twice") == [(k, side) for k in (1, 2, 3) for side in "ab"]


def test_flows_into_one_table_keep_state_apart(folder):
    folder.write(
        "all.py",
        """
        from pyspark import pipelines as dp

        dp.create_streaming_table("both")

        @dp.append_flow(target="both")
        def first():
            return spark.readStream.table("landing").select("k").distinct()

        @dp.append_flow(target="both")
        def second():
            return spark.readStream.table("landing").select("k").limit(2)
        """,
    )
    for _ in range(2):
        folder.feed("landing", pairs(1, 1, 1))
        completed(folder.run())
    assert folder.rows("both") == [(1,), (1,), (1,)]


def test_a_replace_flow_with_state_replaces_by_what_comes_out_of_it(folder):
    folder.write(
        "all.sql",
        """
        CREATE STREAMING TABLE newest FLOW REPLACE USING (k) SEQUENCE BY s BY NAME
        SELECT DISTINCT k, v, s FROM STREAM(changes);
        CREATE STREAMING TABLE paired FLOW REPLACE USING (k) SEQUENCE BY s BY NAME
        SELECT a.k, a.s, b.v FROM STREAM(changes) AS a JOIN STREAM(landing) AS b ON a.k = b.k;
        """,
    )

    def change(k, v, s):
        return {"k": k, "v": v, "s": s}

    folder.feed("changes", [change(1, "a", 1), change(1, "a", 1), change(2, "b", 1)])
    folder.feed("landing", pairs(1))
    completed(folder.run())
    assert folder.rows("newest") == [(1, "a", 1), (2, "b", 1)]
    assert folder.rows("paired") == [(1, 1, "v1"), (1, 1, "v1")]
    folder.feed("changes", [change(1, "c", 2), change(2, "b", 1)])
    folder.feed("landing", pairs(2))
    completed(folder.run())
    # Key 2 again at the same sequence: DISTINCT has seen it, so nothing is replaced.
    assert folder.rows("newest") == [(1, "c", 2), (2, "b", 1)]
    assert folder.rows("paired") == [(1, 2, "v1"), (2, 1, "v2"), (2, 1, "v2")]


def test_a_row_that_the_target_drops_was_seen_all_the_same(folder):
    """Expectations check what comes out of the query: operators before keep what they saw."""
    folder.write(
        "all.sql",
        """
        CREATE STREAMING TABLE seen (CONSTRAINT small EXPECT (n < 2) ON VIOLATION DROP ROW)
        AS SELECT k, n FROM (SELECT DISTINCT k FROM STREAM(landing)) CROSS JOIN counter;
        CREATE STREAMING TABLE five (CONSTRAINT odd EXPECT (k % 2 = 1) ON VIOLATION DROP ROW)
        AS SELECT k FROM STREAM(landing) LIMIT 4;
        """,
    )
    folder.feed("counter", [{"n": 2}])
    folder.feed("landing", pairs(1, 2, 3))
    completed(folder.run())
    shutil.rmtree(folder.table("counter"))
    folder.feed("counter", [{"n": 1}])
    folder.feed("landing", pairs(1, 5, 7))
    completed(folder.run())
    # 1 would be let in now, and does not come again. Of the limit, three were used up at first.
    assert folder.rows("seen") == [(5, 1), (7, 1)]
    assert len(folder.rows("five")) == 3


def test_a_failed_expectation_leaves_state_as_it_was(folder):
    folder.write(
        "all.sql",
        "CREATE STREAMING TABLE seen (CONSTRAINT small EXPECT (k < 3) ON VIOLATION FAIL UPDATE) "
        "AS SELECT DISTINCT k FROM STREAM(landing);",
    )
    folder.feed("landing", pairs(1))
    completed(folder.run())
    folder.feed("landing", pairs(2, 3))
    for _ in range(2):
        assert folder.run().state is UpdateState.FAILED
    folder.write(
        "all.sql", "CREATE STREAMING TABLE seen AS SELECT DISTINCT k FROM STREAM(landing);"
    )
    completed(folder.run())
    assert folder.rows("seen") == [(1,), (2,), (3,)]


def test_a_partitioned_table_gets_the_rows_of_its_state(folder):
    folder.write(
        "all.sql",
        "CREATE STREAMING TABLE parts PARTITIONED BY (k) AS SELECT a.k, a.v, b.v AS w "
        "FROM STREAM(landing) AS a JOIN STREAM(landing) AS b ON a.k = b.k;",
    )
    folder.feed("landing", pairs(1, 2))
    completed(folder.run())
    folder.feed("landing", pairs(2))
    completed(folder.run())
    assert Counter(folder.rows("parts")) == Counter([(1, "v1", "v1")] + [(2, "v2", "v2")] * 4)
    assert DeltaTable(folder.table("parts")).metadata().partition_columns == ["k"]
