"""What operators keep from update to update, through the whole program: on disk, and in what comes out."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from millpond.errors.state import StateIncompatibleError, StateMissingError, StateUnreadableError
from millpond.errors.streaming import CheckpointAheadOfTableError
from millpond.events import FlowStatus, UpdateState

ONE_FILE_A_BATCH = {"millpond.maxFilesPerTrigger": "1"}
START = datetime(2024, 1, 1, tzinfo=UTC)
DISTINCT = "CREATE STREAMING TABLE seen AS SELECT DISTINCT k, v FROM STREAM(landing);"
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


def minute(number):
    return START + timedelta(minutes=number)


def timed(*minutes, **more):
    return [{"id": number, "ts": minute(number), **more} for number in minutes]


def pairs(*keys):
    return [{"k": key, "v": f"v{key}"} for key in keys]


def state_of(folder, flow):
    (found,) = folder.layout.checkpoint(f"main.sales.{flow}", "id").parent.iterdir()
    return found / "state"


def versions(folder, flow):
    return sorted(int(path.name) for path in (state_of(folder, flow) / "versions").iterdir())


def row_files(folder, flow):
    return sorted((state_of(folder, flow) / "rows").rglob("*.parquet"))


def stored_rows(folder, flow):
    return sum(pa.parquet.read_metadata(path).num_rows for path in row_files(folder, flow))


def written(folder):
    """Every file of the tables and checkpoints, with the time it was written at."""
    roots = (folder.root / "storage" / "tables", folder.layout.checkpoints)
    return {
        str(path): path.stat().st_mtime_ns
        for root in roots
        for path in root.rglob("*")
        if path.is_file()
    }


def completed(result):
    errors = [flow.error for flow in result.flows if flow.error] + [*result.problems]
    assert result.state is UpdateState.COMPLETED, errors
    return result


def error_of(result, flow):
    (found,) = [each for each in result.flows if each.name.endswith(f".{flow}")]
    assert found.status is FlowStatus.FAILED
    return found.error


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


@pytest.mark.parametrize("batches_back", [1, 3])
def test_a_table_restored_from_an_older_copy_catches_up_with_the_state_of_then(
    folder, tmp_path, batches_back
):
    folder.write("seen.sql", DISTINCT)
    for number in range(6):
        if number == 6 - batches_back:
            shutil.copytree(folder.table("seen"), tmp_path / "copy")
        folder.feed("landing", pairs(number, number, number - 1))
        completed(folder.run())
    shutil.rmtree(folder.table("seen"))
    shutil.copytree(tmp_path / "copy", folder.table("seen"))
    folder.feed("landing", pairs(1, 5, 7))
    completed(folder.run())
    assert folder.rows("seen") == [(k, f"v{k}") for k in [-1, 0, 1, 2, 3, 4, 5, 7]]


def test_a_copy_older_than_the_versions_that_are_kept_is_refused_with_what_to_do(folder, tmp_path):
    folder.write("seen.sql", DISTINCT)
    folder.feed("landing", pairs(0))
    completed(folder.run())
    shutil.copytree(folder.table("seen"), tmp_path / "copy")
    folder.configure(ONE_FILE_A_BATCH)
    for number in range(1, 13):
        folder.feed("landing", pairs(number))
    completed(folder.run())
    shutil.rmtree(folder.table("seen"))
    shutil.copytree(tmp_path / "copy", folder.table("seen"))
    before = written(folder)
    error = error_of(folder.run(), "seen")
    assert isinstance(error, (StateMissingError, CheckpointAheadOfTableError))
    assert "--full-refresh" in error.hint
    assert written(folder) == before
    completed(folder.run(full_refresh=["seen"]))
    assert folder.rows("seen") == sorted(((k, f"v{k}") for k in range(13)), key=repr)


def newest_version(folder):
    return state_of(folder, "seen") / "versions" / str(versions(folder, "seen")[-1])


def cut(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def tear_footer(path):
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[: -8 - length] + bytes(length) + data[-8:])


def of_format(path, number):
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": number}))


DAMAGES = {
    "no version": (lambda f: newest_version(f).unlink(), StateMissingError, "is missing"),
    "a torn version": (lambda f: cut(newest_version(f)), StateUnreadableError, "not whole JSON"),
    "an empty version": (
        lambda f: newest_version(f).write_bytes(b""),
        StateUnreadableError,
        "it is empty",
    ),
    "a newer format": (
        lambda f: of_format(newest_version(f), 99),
        StateUnreadableError,
        "format 99",
    ),
    "no file of rows": (
        lambda f: row_files(f, "seen")[0].unlink(),
        StateMissingError,
        "which .* names",
    ),
    "a file of rows cut short": (
        lambda f: cut(row_files(f, "seen")[0]),
        StateUnreadableError,
        "bytes, not the",
    ),
    "a file of rows that is no Parquet": (
        lambda f: [path.write_bytes(b"x" * path.stat().st_size) for path in row_files(f, "seen")],
        StateUnreadableError,
        "What DISTINCT keeps",
    ),
    "a file of rows with a torn footer": (
        lambda f: [tear_footer(path) for path in row_files(f, "seen")],
        StateUnreadableError,
        "What DISTINCT keeps",
    ),
    "all of the state": (
        # It looks as if the operator had just come in.
        lambda f: shutil.rmtree(state_of(f, "seen")),
        StateIncompatibleError,
        "saw none of the rows read so far",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_state_stops_the_flow_and_nothing_is_committed(folder, damage):
    harm, error_class, message = DAMAGES[damage]
    folder.write("seen.sql", DISTINCT)
    for key in (1, 2):
        folder.feed("landing", pairs(key))
        completed(folder.run())
    harm(folder)
    folder.feed("landing", pairs(2, 3))
    version = DeltaTable(folder.table("seen")).version()
    for _ in range(2):
        error = error_of(folder.run(), "seen")
        assert isinstance(error, error_class), error
        with pytest.raises(error_class, match=message):
            raise error
        assert DeltaTable(folder.table("seen")).version() == version
    completed(folder.run(full_refresh=["seen"]))
    assert folder.rows("seen") == [(k, f"v{k}") for k in (1, 2, 3)]


def test_versions_and_files_stay_few_however_many_batches_there_are(folder):
    folder.write("seen.sql", DISTINCT)
    folder.configure(ONE_FILE_A_BATCH)
    for number in range(40):
        folder.feed("landing", pairs(number, number + 1))
    completed(folder.run())
    assert versions(folder, "seen") == list(range(30, 40))
    named = json.loads(newest_version(folder).read_text())["rows"]["0-deduplicate"]["rows"]["runs"]
    assert sum(map(len, named)) <= 12
    assert len(row_files(folder, "seen")) <= 40
    assert folder.rows("seen") == sorted(((k, f"v{k}") for k in range(41)), key=repr)


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


def test_columns_are_named_by_the_frame_that_an_operator_with_state_gives(folder):
    folder.write(
        "all.py",
        """
        from pyspark import pipelines as dp
        from pyspark.sql import functions as sf

        def landing():
            return spark.readStream.table("landing")

        @dp.table
        def each():
            x = landing().distinct()
            return x.filter(x["k"] > 1).select(x["k"], x.v)

        @dp.table
        def few():
            x = landing().limit(3)
            names = spark.read.table("names")
            return x.join(names, x["k"] == names["k"]).select(x["v"], names["name"])

        @dp.table
        def joined():
            x = spark.readStream.table("a").withWatermark("ts", "1 minute")
            y = spark.readStream.table("b").withWatermark("ts", "1 minute")
            on = (x["id"] == y["id"]) & (y["ts"] >= x["ts"])
            return x.join(y, on).select(x["id"], y["ts"])

        @dp.table
        def counted():
            x = spark.readStream.table("a").withWatermark("ts", "1 minute")
            groups = x.groupBy(sf.window(x["ts"], "5 minutes"), x["id"]).count()
            return groups.select(groups["window"]["start"].alias("starts"), groups["count"])
        """,
    )
    folder.feed("landing", pairs(1, 2, 2))
    folder.feed("names", [{"k": 2, "name": "two"}])
    folder.feed("a", timed(0, 20))
    folder.feed("b", timed(0))
    completed(folder.run())
    assert folder.rows("each") == [(2, "v2")]
    assert folder.rows("few") == [("v2", "two"), ("v2", "two")]
    assert folder.rows("joined") == [(0, minute(0))]
    assert folder.rows("counted") == [(minute(0), 1)]


NAMES = ["a.b", "tick`ed", "größe", "two words", "window", "c0", "key0", "row_id", "due"]
NAMES += ["matchable", "rows", "k0", "start", "__due", "__position", "from", "k%2F", "filename"]


@pytest.mark.parametrize("language", ["sql", "py"])
def test_columns_may_have_any_name(folder, language):
    """Names that the files of state use, and names that need quotes."""
    if language == "sql":
        quoted = ["`" + name.replace("`", "``") + "`" for name in NAMES]
        listed = ", ".join(quoted)
        same = " AND ".join(f"x.{name} = y.{name}" for name in quoted)
        both = ", ".join(f"x.{name}" for name in quoted)
        folder.write(
            "all.sql",
            f"""
            CREATE STREAMING TABLE each AS SELECT DISTINCT * FROM STREAM(odd);
            CREATE STREAMING TABLE few AS SELECT {listed} FROM STREAM(odd) LIMIT 100;
            CREATE STREAMING TABLE joined AS
            SELECT {both} FROM STREAM(odd) AS x JOIN STREAM(odd) AS y ON {same};
            CREATE STREAMING TABLE outer_joined AS
            SELECT {both} FROM STREAM(odd) WATERMARK at DELAY OF INTERVAL 0 SECONDS AS x
            LEFT JOIN STREAM(odd) WATERMARK at DELAY OF INTERVAL 0 SECONDS AS y
            ON {same} AND x.at BETWEEN y.at AND y.at + INTERVAL 1 MINUTE AND x.`window` > 5;
            CREATE STREAMING TABLE counted AS
            SELECT {listed}, count(*) AS n FROM STREAM(odd) WATERMARK at DELAY OF INTERVAL 0 SECONDS
            GROUP BY window(at, '1 minute'), {listed};
            """,
        )
    else:
        folder.write(
            "all.py",
            f"""
            from pyspark import pipelines as dp
            from pyspark.sql import functions as sf

            NAMES = {NAMES!r}
            COLUMNS = [sf.col("`" + name.replace("`", "``") + "`") for name in NAMES]

            def odd():
                return spark.readStream.table("odd")

            def timed():
                return odd().withWatermark("at", "0 seconds")

            @dp.table
            def each():
                return odd().dropDuplicates(NAMES)

            @dp.table
            def few():
                return odd().select(*COLUMNS).limit(100)

            @dp.table
            def joined():
                return odd().join(odd().drop("at"), NAMES).select(*COLUMNS)

            @dp.table
            def outer_joined():
                x, y = timed(), timed()
                same = [x["`" + n.replace("`", "``") + "`"] == y["`" + n.replace("`", "``") + "`"] for n in NAMES]
                on = (x["at"] >= y["at"]) & (y["at"] > x["at"] - sf.expr("INTERVAL 1 MINUTE")) & (x["window"] > 5)
                for part in same:
                    on &= part
                return x.join(y, on, "left").select(*(x["`" + n.replace("`", "``") + "`"] for n in NAMES))

            @dp.table
            def counted():
                return timed().groupBy(sf.window("at", "1 minute").alias("w"), *COLUMNS).count().drop("w")
            """,
        )
    one = tuple(range(len(NAMES)))
    two = tuple(number + 5 for number in one)

    def row(values, at):
        return {**dict(zip(NAMES, values, strict=True)), "at": minute(at)}

    folder.feed("odd", [row(one, 1)])
    completed(folder.run())
    folder.feed("odd", [row(one, 2), row(two, 2), row(one, 30)])
    completed(folder.run())
    times = [(one, 1), (two, 2)] + [(one, 2), (one, 30)] * (language == "sql")
    assert folder.columns("each")[: len(NAMES)] == NAMES
    assert folder.rows("each") == sorted(((*row, minute(at)) for row, at in times), key=repr)
    assert Counter(folder.rows("few")) == Counter({one: 3, two: 1})
    assert Counter(folder.rows("joined")) == Counter({one: 9, two: 1})
    # The second meets itself; the first can meet nobody, and comes out alone at once.
    assert Counter(folder.rows("outer_joined")) == Counter({one: 3, two: 1})
    assert folder.columns("counted")[: len(NAMES)] == NAMES
    assert folder.rows("counted") == sorted([(*one, 1), (*one, 1), (*two, 1)], key=repr)
