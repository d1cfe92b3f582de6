"""Cases that join a stream with a table, or with another stream."""

from __future__ import annotations

from tests.shapes.case import Case

ORDERS = 'spark.readStream.table("orders")'
PAYMENTS = 'spark.readStream.table("payments")'
PEOPLE = 'spark.read.table("people")'

STATIC = [
    Case(
        "an inner join with a table",
        "SELECT o.id, o.who, p.city FROM STREAM orders o JOIN people p ON o.who = p.who",
        f'{ORDERS}.join({PEOPLE}, "who").select("id", "who", "city")',
        keys=("city",),
        sequence="id",
    ),
    Case(
        "an inner join with the stream on the right",
        "SELECT id, city FROM people p JOIN STREAM orders o ON p.who = o.who",
        f'{PEOPLE}.join({ORDERS}, "who").select("id", "city")',
    ),
    Case(
        "a left join with a table",
        "SELECT o.id, o.who, p.city FROM STREAM orders o LEFT JOIN people p ON o.who = p.who",
        f'{ORDERS}.join({PEOPLE}, "who", "left").select("id", "who", "city")',
        keys=("who",),
        sequence="id",
    ),
    Case(
        "a left join with a table on null-safe equality",
        "SELECT o.id, p.city FROM STREAM orders o LEFT OUTER JOIN people p ON o.who <=> p.who AND p.city <> 'Riga'",
        f"""{ORDERS}.alias("o").join({PEOPLE}.alias("p"), sf.expr("o.who <=> p.who AND p.city <> 'Riga'"), "left_outer").select("o.id", "p.city")""",
    ),
    Case(
        "a join with a table on a range",
        "SELECT o.id, r.rate FROM STREAM orders o JOIN rates r ON o.amount >= r.low",
        f'{ORDERS}.alias("o").join(spark.read.table("rates").alias("r"), sf.expr("o.amount >= r.low")).select("id", "rate")',
    ),
    Case(
        "a cross join with a table",
        "SELECT o.id, r.rate FROM STREAM orders o CROSS JOIN rates r",
        f'{ORDERS}.crossJoin(spark.read.table("rates")).select("id", "rate")',
    ),
    Case(
        "a join with an aggregate of a table",
        "SELECT o.id, a.n FROM STREAM orders o JOIN (SELECT who, count(*) AS n FROM people GROUP BY who) a USING (who)",
        f'{ORDERS}.join({PEOPLE}.groupBy("who").agg(sf.count("*").alias("n")), "who").select("id", "n")',
    ),
    Case(
        "joins with two tables",
        "SELECT o.id, p.city, r.rate FROM STREAM orders o LEFT JOIN people p ON o.who = p.who LEFT JOIN rates r ON r.low = 50 AND o.amount > r.low",
        f'{ORDERS}.alias("o").join({PEOPLE}.alias("p"), sf.expr("o.who = p.who"), "left").join(spark.read.table("rates").alias("r"), '
        'sf.expr("r.low = 50 AND o.amount > r.low"), "left").select("id", "city", "rate")',
    ),
]

INNER = [
    Case(
        "an inner join of two streams",
        "SELECT o.id, p.pid, o.who FROM STREAM orders o JOIN STREAM payments p ON o.who = p.who",
        f'{ORDERS}.join({PAYMENTS}, "who").select("id", "pid", "who")',
        keys=("who",),
        sequence="id",
    ),
    Case(
        "an inner join of two streams with USING",
        "SELECT * FROM STREAM orders JOIN (SELECT paid, who, pid FROM STREAM(payments)) USING (who)",
        f'{ORDERS}.join({PAYMENTS}.select("paid", "who", "pid"), ["who"])',
    ),
    Case(
        "an inner join with more than equality",
        "SELECT o.id, p.pid FROM STREAM orders o JOIN STREAM payments p ON o.who = p.who AND p.paid < o.amount",
        f'{ORDERS}.alias("o").join({PAYMENTS}.alias("p"), sf.expr("o.who = p.who AND p.paid < o.amount")).select("o.id", "p.pid")',
    ),
    Case(
        "an inner join with the condition in WHERE",
        "SELECT o.id, p.pid FROM STREAM orders o, STREAM payments p WHERE o.who = p.who AND p.paid > 5",
        f'{ORDERS}.alias("o").join({PAYMENTS}.alias("p"), sf.expr("o.who = p.who")).where("p.paid > 5").select("o.id", "p.pid")',
    ),
    Case(
        "an inner join on several keys with NaN and zeros",
        "SELECT o.id, p.pid FROM STREAM orders o JOIN STREAM payments p ON o.who = p.who AND o.x = p.x",
        f'{ORDERS}.join({PAYMENTS}, ["who", "x"]).select("id", "pid")',
    ),
    Case(
        "an inner join on null-safe equality",
        "SELECT o.id, p.pid FROM STREAM orders o JOIN STREAM payments p ON o.who <=> p.who AND o.x <=> p.x",
        f'{ORDERS}.alias("o").join({PAYMENTS}.alias("p"), sf.col("o.who").eqNullSafe(sf.col("p.who")) & sf.col("o.x").eqNullSafe(sf.col("p.x"))).select("o.id", "p.pid")',
    ),
    Case(
        "an inner join on expressions",
        "SELECT o.id, p.pid FROM STREAM orders o JOIN STREAM payments p ON upper(o.who) = upper(p.who) AND o.amount + 5 >= p.paid",
        f'{ORDERS}.alias("o").join({PAYMENTS}.alias("p"), (sf.upper("o.who") == sf.upper("p.who")) & (sf.col("o.amount") + 5 >= sf.col("p.paid"))).select("o.id", "p.pid")',
    ),
    Case(
        "an inner join on keys of different types",
        "SELECT o.id, p.pid FROM STREAM orders o JOIN STREAM payments p ON o.amount = p.paid * 2",
        f'{ORDERS}.alias("o").join({PAYMENTS}.alias("p"), sf.col("o.amount") == sf.col("p.paid") * 2).select("o.id", "p.pid")',
    ),
    Case(
        "a join of a stream with itself",
        "SELECT a.id AS one, b.id AS two FROM STREAM orders a JOIN STREAM orders b ON a.who = b.who AND a.id < b.id",
        f'{ORDERS}.alias("a").join({ORDERS}.alias("b"), sf.expr("a.who = b.who AND a.id < b.id")).select(sf.col("a.id").alias("one"), sf.col("b.id").alias("two"))',
    ),
    Case(
        "a join of three streams",
        "SELECT o.id, p.pid, s.sid FROM STREAM orders o JOIN STREAM payments p ON o.who = p.who JOIN STREAM shipments s ON p.pid = s.pid",
        f'{ORDERS}.join({PAYMENTS}, "who").join(spark.readStream.table("shipments"), "pid").select("id", "pid", "sid")',
    ),
    Case(
        "a join of joins of subqueries",
        "WITH o AS (SELECT id, upper(who) AS name FROM STREAM orders WHERE amount > 10), p AS (SELECT pid, upper(who) AS name FROM STREAM payments) SELECT name, o.id, p.pid, c.city FROM o JOIN p USING (name) LEFT JOIN people c ON name = upper(c.who)",
        f'{ORDERS}.where("amount > 10").select("id", sf.upper("who").alias("name")).join({PAYMENTS}.select("pid", sf.upper("who").alias("name")), "name")'
        f'.join({PEOPLE}.select(sf.upper("who").alias("name"), "city"), "name", "left").select("name", "id", "pid", "city")',
    ),
    Case(
        "DISTINCT over a join",
        "SELECT DISTINCT o.who FROM STREAM orders o JOIN STREAM payments p ON o.who = p.who",
        f'{ORDERS}.join({PAYMENTS}, "who").select("who").distinct()',
        expected=(("ann",), ("bob",), ("cid",), ("dan",)),
    ),
    Case(
        "a join over DISTINCT",
        "SELECT o.who, p.paid FROM (SELECT DISTINCT who FROM STREAM orders) o JOIN (SELECT DISTINCT * FROM STREAM payments) p ON o.who = p.who",
        f'{ORDERS}.select("who").distinct().join({PAYMENTS}.distinct(), "who").select("who", "paid")',
    ),
    Case(
        "a generator over a join",
        "SELECT o.id, explode(array(o.amount, p.paid)) AS n FROM STREAM orders o JOIN STREAM payments p ON o.who = p.who",
        f'{ORDERS}.join({PAYMENTS}, "who").select("id", sf.explode(sf.array("amount", "paid")).alias("n"))',
    ),
]

ADS = "(SELECT * FROM STREAM ads WATERMARK shown DELAY OF INTERVAL 5 MINUTES)"
CLICKS = "(SELECT * FROM STREAM clicks WATERMARK clicked DELAY OF INTERVAL 2 MINUTES)"
PY_ADS = 'spark.readStream.table("ads").withWatermark("shown", "5 minutes").alias("a")'
PY_CLICKS = 'spark.readStream.table("clicks").withWatermark("clicked", "2 minutes").alias("c")'
COLUMNS = "a.ad, shown, place, clicked, who"
PY_COLUMNS = '"a.ad", "shown", "place", "clicked", "who"'

BETWEEN = "a.ad = c.ad AND clicked BETWEEN shown AND shown + INTERVAL 10 MINUTES"
# Ways to say how far the times of two rows may be apart.
RANGES = {
    "BETWEEN": BETWEEN,
    "two comparisons": "a.ad = c.ad AND c.clicked >= a.shown AND c.clicked <= a.shown + INTERVAL 10 MINUTES",
    "open ends": "a.ad = c.ad AND shown < clicked AND clicked < shown + INTERVAL 10 MINUTES",
    "the shift on the other side": "a.ad = c.ad AND clicked - INTERVAL 10 MINUTES <= shown AND shown <= clicked",
    "before and after": "a.ad = c.ad AND clicked BETWEEN shown - INTERVAL 1 MINUTE AND shown + INTERVAL 90 SECONDS",
    "more conditions": BETWEEN + " AND place <> 'p4' AND (who <> 'u1' OR place = 'p9')",
}


def _outer(name: str, how: str, on: str, **more: object) -> Case:
    ads, py_ads = ADS, PY_ADS
    if how == "full":
        # Spark takes null keys for equal in full outer joins of streams, as in no other join.
        ads = ADS.replace(")", " WHERE ad IS NOT NULL)")
        py_ads = PY_ADS + '.where("ad IS NOT NULL")'
    return Case(
        name,
        f"SELECT {COLUMNS} FROM {ads} a {how.upper()} JOIN {CLICKS} c ON {on}",
        f'{py_ads}.join({PY_CLICKS}, sf.expr("{on}"), "{how}").select({PY_COLUMNS})',
        judged="stream",
        **more,
    )


TIMED = [
    _outer("inner join in a time range", "inner", BETWEEN, keys=("place",), sequence="clicked"),
    *(_outer(f"left outer join, {name}", "left", on) for name, on in RANGES.items()),
    _outer("right outer join", "right", BETWEEN),
    _outer("right outer join, before and after", "right", RANGES["before and after"]),
    _outer("right outer join, more conditions", "right", RANGES["more conditions"]),
    _outer("full outer join", "full", BETWEEN),
    _outer("full outer join, open ends", "full", RANGES["open ends"]),
    Case(
        "full outer join, null keys",
        f"SELECT place, who FROM {ADS} a FULL JOIN {CLICKS} c ON {BETWEEN} WHERE a.ad IS NULL AND c.ad IS NULL",
        f'{PY_ADS}.join({PY_CLICKS}, sf.expr("{BETWEEN}"), "full").where("a.ad IS NULL AND c.ad IS NULL").select("place", "who")',
        spark_errs="it takes null keys for equal in full outer joins of streams",
    ),
    Case(
        "left outer join as REPLACE USING takes it",
        f"SELECT a.ad, a.shown, c.who FROM {ADS} a LEFT JOIN {CLICKS} c ON {BETWEEN} WHERE shown IS NOT NULL",
        f'{PY_ADS}.join({PY_CLICKS}, sf.expr("{BETWEEN}"), "left").where("shown IS NOT NULL").select("a.ad", "a.shown", "c.who")',
        judged="stream",
        keys=("ad",),
        sequence="shown",
    ),
    Case(
        "left outer join on the same time window",
        f"SELECT a.ad, place, who FROM (SELECT *, window(shown, '5 minutes') AS w FROM {ADS}) a LEFT JOIN (SELECT *, window(clicked, '5 minutes') AS w FROM {CLICKS}) c ON a.ad = c.ad AND a.w = c.w",
        'spark.readStream.table("ads").withWatermark("shown", "5 minutes").withColumn("w", sf.window("shown", "5 minutes")).alias("a").join('
        'spark.readStream.table("clicks").withWatermark("clicked", "2 minutes").withColumn("w", sf.window("clicked", "5 minutes")).alias("c"), '
        'sf.expr("a.ad = c.ad AND a.w = c.w"), "left").select("a.ad", "place", "who")',
        judged="stream",
    ),
    Case(
        "left outer join on the event time",
        f"SELECT a.ad, place, who FROM {ADS} a LEFT JOIN {CLICKS} c ON a.ad = c.ad AND a.shown = c.clicked",
        f'{PY_ADS}.join({PY_CLICKS}, sf.expr("a.ad = c.ad AND a.shown = c.clicked"), "left").select("a.ad", "place", "who")',
        judged="stream",
    ),
    Case(
        "a filter over a left outer join",
        f"SELECT a.ad, place FROM {ADS} a LEFT JOIN {CLICKS} c ON {BETWEEN} WHERE who IS NULL",
        f'{PY_ADS}.join({PY_CLICKS}, sf.expr("{BETWEEN}"), "left").where("who IS NULL").select("a.ad", "place")',
        judged="stream",
    ),
    Case(
        "left outer join of a filtered stream",
        f"SELECT a.ad, place, who FROM (SELECT ad, shown, place FROM STREAM ads WATERMARK shown DELAY OF INTERVAL 5 MINUTES WHERE place <> 'p2') a LEFT JOIN {CLICKS} c ON {BETWEEN}",
        """spark.readStream.table("ads").withWatermark("shown", "5 minutes").where("place <> 'p2'").alias("a")"""
        f'.join({PY_CLICKS}, sf.expr("{BETWEEN}"), "left").select("a.ad", "place", "who")',
        judged="stream",
    ),
    Case(
        "an outer join of an outer join",
        f"SELECT a.ad, place, who, viewed FROM {ADS} a LEFT JOIN {CLICKS} c ON {BETWEEN} LEFT JOIN (SELECT ad, viewed FROM STREAM views WATERMARK viewed DELAY OF INTERVAL 1 MINUTE) v ON a.ad = v.ad AND viewed BETWEEN shown AND shown + INTERVAL 5 MINUTES",
        f'{PY_ADS}.join({PY_CLICKS}, sf.expr("{BETWEEN}"), "left").join(spark.readStream.table("views").withWatermark("viewed", "1 minute").alias("v"), '
        'sf.expr("a.ad = v.ad AND viewed BETWEEN shown AND shown + INTERVAL 5 MINUTES"), "left").select("a.ad", "place", "who", "viewed")',
        judged="stream",
    ),
]

CASES = [*STATIC, *INNER]
