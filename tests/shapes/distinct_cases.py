"""Cases that keep rows once, or a number of them, over the life of the stream."""

from __future__ import annotations

from tests.shapes.case import Case

READINGS = 'spark.readStream.table("readings").withWatermark("at", "10 minutes")'
SQL_READINGS = "STREAM readings WATERMARK at DELAY OF INTERVAL 10 MINUTES"

DISTINCT = [
    Case(
        "DISTINCT",
        "SELECT DISTINCT * FROM STREAM(repeats)",
        'spark.readStream.table("repeats").distinct()',
    ),
    Case(
        "DISTINCT on one column",
        "SELECT DISTINCT n FROM STREAM repeats",
        'spark.readStream.table("repeats").select("n").distinct()',
        expected=((1,), (2,), (3,), (None,)),
    ),
    Case(
        "DISTINCT with nulls, NaN and both zeros",
        "SELECT DISTINCT k, x FROM STREAM repeats",
        'spark.readStream.table("repeats").select("k", "x").distinct()',
    ),
    Case(
        "DISTINCT over structs and arrays",
        "SELECT DISTINCT st, xs FROM STREAM repeats",
        'spark.readStream.table("repeats").select("st", "xs").distinct()',
    ),
    Case(
        "DISTINCT in a subquery",
        "SELECT upper(k) AS k, n FROM (SELECT DISTINCT k, n FROM STREAM repeats) d WHERE n IS NOT NULL",
        'spark.readStream.table("repeats").select("k", "n").distinct().where("n IS NOT NULL").select(sf.upper("k").alias("k"), "n")',
        keys=("k",),
        sequence="n",
    ),
    Case(
        "DISTINCT over expressions",
        "SELECT DISTINCT upper(k) AS k, n > 1 AS big FROM STREAM repeats WHERE x IS NOT NULL",
        'spark.readStream.table("repeats").where("x IS NOT NULL").select(sf.upper("k").alias("k"), (sf.col("n") > 1).alias("big")).distinct()',
    ),
    Case(
        "DISTINCT over a generator",
        "SELECT DISTINCT k, explode(xs) AS x FROM STREAM repeats",
        'spark.readStream.table("repeats").select("k", sf.explode("xs").alias("x")).distinct()',
    ),
    Case(
        "DISTINCT over UNION ALL",
        "SELECT DISTINCT k FROM (SELECT k FROM STREAM more UNION ALL SELECT k FROM STREAM third)",
        'spark.readStream.table("more").select("k").union(spark.readStream.table("third").select("k")).distinct()',
        expected=(("a",), ("b",), ("c",), ("d",), (None,)),
    ),
    Case(
        "UNION ALL of two DISTINCTs",
        "SELECT DISTINCT k FROM STREAM more UNION ALL SELECT DISTINCT k FROM STREAM third",
        'spark.readStream.table("more").select("k").distinct().union(spark.readStream.table("third").select("k").distinct())',
    ),
    Case(
        "DISTINCT over DISTINCT",
        "SELECT DISTINCT n FROM (SELECT DISTINCT k, n FROM STREAM repeats)",
        'spark.readStream.table("repeats").select("k", "n").distinct().select("n").distinct()',
    ),
    Case(
        "DISTINCT joined with a table",
        "SELECT d.who, city FROM (SELECT DISTINCT who FROM STREAM orders) d JOIN people p ON d.who = p.who",
        'spark.readStream.table("orders").select("who").distinct().join(spark.read.table("people"), "who").select("who", "city")',
    ),
    Case(
        "dropDuplicates on some columns",
        None,
        'spark.readStream.table("repeats").dropDuplicates(["k", "n"]).select("k", "n")',
    ),
    Case(
        "dropDuplicates on all columns",
        None,
        'spark.readStream.table("repeats").dropDuplicates()',
    ),
    Case(
        "dropDuplicates under a filter",
        None,
        """spark.readStream.table("orders").dropDuplicates(["id"]).where("who <> 'cid'")""",
        keys=("who",),
        sequence="id",
    ),
]

WITH_WATERMARK = [
    Case(
        "DISTINCT with the event time",
        f"SELECT DISTINCT sensor, at FROM {SQL_READINGS}",
        f'{READINGS}.select("sensor", "at").distinct()',
        judged="stream",
    ),
    Case(
        "DISTINCT without the event time under a watermark",
        f"SELECT DISTINCT sensor FROM {SQL_READINGS}",
        f'{READINGS}.select("sensor").distinct()',
        judged="stream",
    ),
    Case(
        "dropDuplicates with the event time",
        None,
        f'{READINGS}.dropDuplicates(["sensor", "at"])',
        judged="stream",
        keys=("sensor",),
        sequence="value",
    ),
    Case(
        "dropDuplicates without the event time",
        None,
        f'{READINGS}.dropDuplicates(["sensor", "value"])',
        judged="stream",
    ),
    Case(
        "dropDuplicates on the event time alone",
        None,
        f'{READINGS}.select("at").dropDuplicates(["at"])',
        judged="stream",
    ),
    Case(
        "dropDuplicatesWithinWatermark",
        None,
        f'{READINGS}.where("at IS NOT NULL").dropDuplicatesWithinWatermark(["sensor", "value"]).select("sensor", "value")',
        judged="stream",
    ),
    Case(
        "dropDuplicatesWithinWatermark on all columns",
        None,
        f'{READINGS}.where("at IS NOT NULL").dropDuplicatesWithinWatermark()',
        judged="stream",
    ),
    Case(
        "dropDuplicatesWithinWatermark on a key that comes back",
        None,
        f'{READINGS}.where("at IS NOT NULL").dropDuplicatesWithinWatermark(["sensor"]).select("sensor")',
        judged="stream",
    ),
    Case(
        "dropDuplicates of times before 1970",
        None,
        'spark.readStream.table("relics").withWatermark("at", "10 minutes").dropDuplicates(["k", "at"])',
        judged="stream",
    ),
]

LIMITS = [
    Case(
        "LIMIT",
        "SELECT kind FROM STREAM ticks LIMIT 4",
        'spark.readStream.table("ticks").select("kind").limit(4)',
        expected=(("early",),) * 4,
    ),
    Case(
        "LIMIT of more rows than come",
        "SELECT kind, n FROM STREAM ticks LIMIT 100",
        'spark.readStream.table("ticks").limit(100)',
        keys=("kind",),
        sequence="n",
    ),
    Case(
        "LIMIT in a subquery",
        "SELECT kind, n * 10 AS tens FROM (SELECT * FROM STREAM ticks LIMIT 5) t",
        'spark.readStream.table("ticks").limit(5).select("kind", (sf.col("n") * 10).alias("tens"))',
        expected=(("early", 10),) * 5,
    ),
    Case(
        "a filter over LIMIT",
        "SELECT kind FROM (SELECT * FROM STREAM ticks LIMIT 5) t WHERE kind = 'late'",
        """spark.readStream.table("ticks").limit(5).where("kind = 'late'").select("kind")""",
        expected=(),
    ),
    Case(
        "LIMIT over a filter",
        "SELECT kind FROM STREAM ticks WHERE kind = 'late' LIMIT 3",
        """spark.readStream.table("ticks").where("kind = 'late'").select("kind").limit(3)""",
        expected=(("late",),) * 3,
    ),
    Case(
        "LIMIT over DISTINCT",
        "SELECT DISTINCT kind FROM STREAM ticks LIMIT 1",
        'spark.readStream.table("ticks").select("kind").distinct().limit(1)',
        expected=(("early",),),
    ),
    Case(
        "LIMIT over UNION ALL",
        "SELECT * FROM (SELECT 1 AS one FROM STREAM ticks UNION ALL SELECT 1 FROM STREAM more) LIMIT 7",
        'spark.readStream.table("ticks").select(sf.lit(1).alias("one")).union(spark.readStream.table("more").select(sf.lit(1).alias("one"))).limit(7)',
        expected=((1,),) * 7,
    ),
]

CASES = [*DISTINCT, *WITH_WATERMARK, *LIMITS]
