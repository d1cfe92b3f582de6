"""Columns keep their names through operators with state, whatever those are."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.runner.kept_state import (
    completed,
    minute,
    pairs,
    timed,
)


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
