"""Cases over time: watermarks, windows, sessions, and aggregates over them."""

from __future__ import annotations

from tests.shapes.case import Case

READINGS = "STREAM readings WATERMARK at DELAY OF INTERVAL 10 MINUTES"
PY_READINGS = 'spark.readStream.table("readings").withWatermark("at", "10 minutes")'
GAUGES = "STREAM gauges WATERMARK at DELAY OF INTERVAL 1 MINUTE"
PY_GAUGES = 'spark.readStream.table("gauges").withWatermark("at", "1 minute")'

PROJECTIONS = [
    Case(
        "a watermark alone",
        f"SELECT * FROM {READINGS}",
        PY_READINGS,
        keys=("sensor",),
        sequence="value",
    ),
    Case(
        "a window as a column",
        f"SELECT sensor, value, window(at, '5 minutes') AS w FROM {READINGS}",
        f'{PY_READINGS}.select("sensor", "value", sf.window("at", "5 minutes").alias("w"))',
        keys=("w",),
        sequence="value",
    ),
    Case(
        "parts of a window as columns",
        f"SELECT value, w.start AS begins, w.end AS ends FROM (SELECT value, window(at, '5 minutes', '5 minutes', '2 minutes') AS w FROM {READINGS})",
        f'{PY_READINGS}.select("value", sf.window("at", "5 minutes", "5 minutes", "2 minutes").alias("w")).select("value", sf.col("w.start").alias("begins"), sf.col("w.end").alias("ends"))',
    ),
    Case(
        "sliding windows as a column",
        f"SELECT value, window(at, '10 minutes', '5 minutes') AS w FROM {READINGS}",
        f'{PY_READINGS}.select("value", sf.window("at", "10 minutes", "5 minutes").alias("w"))',
    ),
    Case(
        "window_time as a column",
        f"SELECT value, window_time(w) AS t FROM (SELECT value, window(at, '5 minutes') AS w FROM {READINGS})",
        f'{PY_READINGS}.select("value", sf.window("at", "5 minutes").alias("w")).select("value", sf.window_time("w").alias("t"))',
    ),
]


def _windowed(
    name: str, select: str, python: str, *, source: str = READINGS, **more: object
) -> Case:
    return Case(name, select.replace("{readings}", source), python, judged="stream", **more)


AGGREGATES = [
    _windowed(
        "count by tumbling window",
        "SELECT window(at, '5 minutes') AS w, count(*) AS n FROM {readings} GROUP BY window(at, '5 minutes')",
        f'{PY_READINGS}.groupBy(sf.window("at", "5 minutes").alias("w")).agg(sf.count("*").alias("n"))',
    ),
    _windowed(
        "aggregates by window and key",
        "SELECT sensor, w.start AS begins, count(value) AS n, sum(value) AS total, avg(value) AS mean, min(value) AS low, max(value) AS high, sort_array(collect_list(value)) AS vs "
        "FROM (SELECT sensor, value, window(at, '5 minutes') AS w FROM {readings}) GROUP BY sensor, w",
        f'{PY_READINGS}.groupBy("sensor", sf.window("at", "5 minutes").alias("w")).agg(sf.count("value").alias("n"), sf.sum("value").alias("total"), sf.avg("value").alias("mean"), '
        'sf.min("value").alias("low"), sf.max("value").alias("high"), sf.sort_array(sf.collect_list("value")).alias("vs")).select("sensor", sf.col("w.start").alias("begins"), "n", "total", "mean", "low", "high", "vs")',
    ),
    _windowed(
        "the shortest way to count by window",
        "SELECT window, count(*) AS count FROM {readings} GROUP BY window(at, '5 minutes')",
        f'{PY_READINGS}.groupBy(sf.window("at", "5 minutes")).count()',
    ),
    _windowed(
        "sum by sliding window",
        "SELECT window.start AS begins, window.end AS ends, sum(value) AS total FROM {readings} GROUP BY window(at, '10 minutes', '5 minutes')",
        f'{PY_READINGS}.groupBy(sf.window("at", "10 minutes", "5 minutes")).agg(sf.sum("value").alias("total")).select(sf.col("window.start").alias("begins"), sf.col("window.end").alias("ends"), "total")',
    ),
    _windowed(
        "windows that begin at another minute",
        "SELECT window.start AS begins, count(*) AS n FROM {readings} GROUP BY window(at, '5 minutes', '5 minutes', '2 minutes')",
        f'{PY_READINGS}.groupBy(sf.window("at", "5 minutes", "5 minutes", "2 minutes")).agg(sf.count("*").alias("n")).select(sf.col("window.start").alias("begins"), "n")',
    ),
    _windowed(
        "HAVING over windows",
        "SELECT sensor, window.start AS begins, sum(value) AS total FROM {readings} GROUP BY window(at, '5 minutes'), sensor HAVING sum(value) > 5 AND count(*) < 3",
        f'{PY_READINGS}.groupBy(sf.window("at", "5 minutes"), "sensor").agg(sf.sum("value").alias("total"), sf.count("*").alias("n")).where("total > 5 AND n < 3").select("sensor", sf.col("window.start").alias("begins"), "total")',
    ),
    _windowed(
        "GROUP BY an expression and a window",
        "SELECT upper(sensor) AS name, value % 2 AS odd, window.end AS ends, count(value) AS n FROM {readings} WHERE value < 100 GROUP BY upper(sensor), value % 2, window(at, '15 minutes')",
        f'{PY_READINGS}.where("value < 100").groupBy(sf.upper("sensor").alias("name"), (sf.col("value") % 2).alias("odd"), sf.window("at", "15 minutes")).agg(sf.count("value").alias("n"))'
        '.select("name", "odd", sf.col("window.end").alias("ends"), "n")',
    ),
    _windowed(
        "GROUP BY the event time",
        "SELECT at, count(*) AS n FROM {readings} GROUP BY at",
        f'{PY_READINGS}.groupBy("at").agg(sf.count("*").alias("n"))',
    ),
    _windowed(
        "DISTINCT rows by window",
        "SELECT window.start AS begins, count(*) AS n FROM (SELECT DISTINCT sensor, value, at FROM {readings}) GROUP BY window(at, '5 minutes')",
        f'{PY_READINGS}.select("sensor", "value", "at").distinct().groupBy(sf.window("at", "5 minutes")).agg(sf.count("*").alias("n")).select(sf.col("window.start").alias("begins"), "n")',
    ),
    _windowed(
        "windows of windows",
        "SELECT window.start AS begins, max(n) AS most FROM (SELECT window_time(w) AS t, n FROM (SELECT window(at, '5 minutes') AS w, count(*) AS n FROM {readings} GROUP BY window(at, '5 minutes'))) GROUP BY window(t, '10 minutes')",
        f'{PY_READINGS}.groupBy(sf.window("at", "5 minutes").alias("w")).agg(sf.count("*").alias("n")).select(sf.window_time("w").alias("t"), "n").groupBy(sf.window("t", "10 minutes"))'
        '.agg(sf.max("n").alias("most")).select(sf.col("window.start").alias("begins"), "most")',
    ),
    _windowed(
        "window_time of a window with a count",
        "SELECT window_time(w) AS t, n FROM (SELECT window(at, '5 minutes') AS w, count(*) AS n FROM {readings} GROUP BY window(at, '5 minutes'))",
        f'{PY_READINGS}.groupBy(sf.window("at", "5 minutes")).agg(sf.count("*").alias("n")).select(sf.window_time("window").alias("t"), "n")',
    ),
    _windowed(
        "counts by window with a table",
        "SELECT window.start AS begins, city, count(*) AS n FROM {readings} r JOIN (SELECT lower(substr(who, 1, 1)) AS first, city FROM people) p ON r.sensor = p.first GROUP BY window(at, '5 minutes'), city",
        f'{PY_READINGS}.alias("r").join(spark.read.table("people").select(sf.lower(sf.substring("who", 1, 1)).alias("first"), "city").alias("p"), sf.expr("r.sensor = p.first"))'
        '.groupBy(sf.window("at", "5 minutes"), "city").agg(sf.count("*").alias("n")).select(sf.col("window.start").alias("begins"), "city", "n")',
    ),
]

SESSIONS = [
    _windowed(
        "sessions",
        "SELECT session_window.start AS begins, session_window.end AS ends, count(*) AS n FROM {readings} GROUP BY session_window(at, '5 minutes'), sensor < 'c'",
        f"""{PY_READINGS}.groupBy(sf.session_window("at", "5 minutes"), sf.expr("sensor < 'c'")).agg(sf.count("*").alias("n")).select(sf.col("session_window.start").alias("begins"), sf.col("session_window.end").alias("ends"), "n")""",
    ),
    _windowed(
        "sessions by key",
        "SELECT sensor, session_window.start AS begins, session_window.end AS ends, sum(value) AS total FROM {readings} GROUP BY sensor, session_window(at, '3 minutes')",
        f'{PY_READINGS}.groupBy("sensor", sf.session_window("at", "3 minutes")).agg(sf.sum("value").alias("total")).select("sensor", sf.col("session_window.start").alias("begins"), sf.col("session_window.end").alias("ends"), "total")',
    ),
    _windowed(
        "sessions that end where others begin",
        "SELECT session_window.start AS begins, session_window.end AS ends, count(*) AS n FROM {readings} GROUP BY session_window(at, '1 minute'), sensor < 'c'",
        f"""{PY_READINGS}.groupBy(sf.session_window("at", "1 minute"), sf.expr("sensor < 'c'")).agg(sf.count("*").alias("n")).select(sf.col("session_window.start").alias("begins"), sf.col("session_window.end").alias("ends"), "n")""",
    ),
    _windowed(
        "sessions with a gap of each row's own",
        "SELECT session_window.start AS begins, session_window.end AS ends, count(*) AS n FROM {readings} GROUP BY session_window(at, CASE WHEN sensor = 'a' THEN '2 minutes' ELSE '6 minutes' END), sensor < 'c'",
        f"""{PY_READINGS}.groupBy(sf.session_window("at", sf.when(sf.col("sensor") == "a", "2 minutes").otherwise("6 minutes")), sf.expr("sensor < 'c'")).agg(sf.count("*").alias("n"))"""
        '.select(sf.col("session_window.start").alias("begins"), sf.col("session_window.end").alias("ends"), "n")',
    ),
]

WATERMARKS = [
    _windowed(
        "the lower of two watermarks",
        "SELECT window.start AS begins, count(*) AS n FROM (SELECT sensor, at FROM {readings} UNION ALL SELECT sensor, at FROM "
        + GAUGES
        + ") GROUP BY window(at, '5 minutes')",
        f'{PY_READINGS}.select("sensor", "at").union({PY_GAUGES}.select("sensor", "at")).groupBy(sf.window("at", "5 minutes")).agg(sf.count("*").alias("n")).select(sf.col("window.start").alias("begins"), "n")',
    ),
    _windowed(
        "two watermarks and DISTINCT",
        "SELECT DISTINCT sensor, at FROM (SELECT sensor, at FROM {readings} UNION ALL SELECT sensor, at FROM "
        + GAUGES
        + ")",
        f'{PY_READINGS}.select("sensor", "at").union({PY_GAUGES}.select("sensor", "at")).distinct()',
    ),
    _windowed(
        "a watermark after a filter",
        "SELECT window.start AS begins, count(*) AS n FROM (SELECT * FROM STREAM readings WHERE value < 17) WATERMARK at DELAY OF INTERVAL 10 MINUTES GROUP BY window(at, '5 minutes')",
        'spark.readStream.table("readings").where("value < 17").withWatermark("at", "10 minutes").groupBy(sf.window("at", "5 minutes")).agg(sf.count("*").alias("n")).select(sf.col("window.start").alias("begins"), "n")',
    ),
    _windowed(
        "a filter after a watermark",
        "SELECT window.start AS begins, count(*) AS n FROM {readings} WHERE value < 17 GROUP BY window(at, '5 minutes')",
        f'{PY_READINGS}.where("value < 17").groupBy(sf.window("at", "5 minutes")).agg(sf.count("*").alias("n")).select(sf.col("window.start").alias("begins"), "n")',
    ),
    _windowed(
        "a watermark on an expression",
        "SELECT window.start AS begins, count(*) AS n FROM STREAM readings WATERMARK date_trunc('MINUTE', at) AS minute DELAY OF INTERVAL 10 MINUTES GROUP BY window(minute, '5 minutes')",
        'spark.readStream.table("readings").withColumn("minute", sf.date_trunc("MINUTE", "at")).withWatermark("minute", "10 minutes").groupBy(sf.window("minute", "5 minutes"))'
        '.agg(sf.count("*").alias("n")).select(sf.col("window.start").alias("begins"), "n")',
    ),
    _windowed(
        "an event time under another name",
        "SELECT window.start AS begins, sum(v) AS total FROM (SELECT value AS v, at AS t FROM {readings}) GROUP BY window(t, '5 minutes')",
        f'{PY_READINGS}.select(sf.col("value").alias("v"), sf.col("at").alias("t")).groupBy(sf.window("t", "5 minutes")).agg(sf.sum("v").alias("total")).select(sf.col("window.start").alias("begins"), "total")',
    ),
    _windowed(
        "no delay",
        "SELECT window.start AS begins, count(*) AS n FROM STREAM readings WATERMARK at DELAY OF INTERVAL 0 SECONDS GROUP BY window(at, '5 minutes')",
        'spark.readStream.table("readings").withWatermark("at", "0 seconds").groupBy(sf.window("at", "5 minutes")).agg(sf.count("*").alias("n")).select(sf.col("window.start").alias("begins"), "n")',
    ),
    _windowed(
        "windows of times before 1970",
        "SELECT window.start AS begins, count(*) AS n FROM STREAM relics WATERMARK at DELAY OF INTERVAL 10 MINUTES GROUP BY window(at, '5 minutes')",
        'spark.readStream.table("relics").withWatermark("at", "10 minutes").groupBy(sf.window("at", "5 minutes")).agg(sf.count("*").alias("n")).select(sf.col("window.start").alias("begins"), "n")',
    ),
    _windowed(
        "counts by window over a join of streams",
        "SELECT window.start AS begins, count(*) AS n FROM (SELECT a.shown FROM (SELECT * FROM STREAM ads WATERMARK shown DELAY OF INTERVAL 5 MINUTES) a JOIN (SELECT * FROM STREAM clicks WATERMARK clicked DELAY OF INTERVAL 2 MINUTES) c "
        "ON a.ad = c.ad AND clicked BETWEEN shown AND shown + INTERVAL 10 MINUTES) GROUP BY window(shown, '5 minutes')",
        'spark.readStream.table("ads").withWatermark("shown", "5 minutes").alias("a").join(spark.readStream.table("clicks").withWatermark("clicked", "2 minutes").alias("c"), '
        'sf.expr("a.ad = c.ad AND clicked BETWEEN shown AND shown + INTERVAL 10 MINUTES")).groupBy(sf.window("shown", "5 minutes")).agg(sf.count("*").alias("n")).select(sf.col("window.start").alias("begins"), "n")',
    ),
]

CASES = [*PROJECTIONS, *AGGREGATES, *SESSIONS, *WATERMARKS]
