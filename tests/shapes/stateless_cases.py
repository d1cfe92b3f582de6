"""Cases without state: each row of the result comes from one row of a stream."""

from __future__ import annotations

from tests.shapes.case import Case

EXPRESSIONS = [
    Case(
        "projection, renaming, reordering",
        "SELECT v AS n, k, id AS number FROM STREAM events",
        'spark.readStream.table("events").select(sf.col("v").alias("n"), "k", sf.col("id").alias("number"))',
        keys=("k",),
        sequence="number",
    ),
    Case(
        "every column of the stream",
        "SELECT * FROM STREAM(events)",
        'spark.readStream.table("events")',
    ),
    Case(
        "WHERE with nulls",
        "SELECT id FROM STREAM events WHERE v > 1 AND NOT (k = 'b') OR x IS NULL",
        """spark.readStream.table("events").where("v > 1 AND NOT (k = 'b') OR x IS NULL").select("id")""",
    ),
    Case(
        "CAST and arithmetic",
        "SELECT id, CAST(v AS STRING) AS s, v * 2 + 1 AS n, price * 2 AS twice, v % 3 AS r, CAST(id AS DOUBLE) / 4 AS q FROM STREAM events",
        'spark.readStream.table("events").select("id", sf.col("v").cast("string").alias("s"), (sf.col("v") * 2 + 1).alias("n"), '
        '(sf.col("price") * 2).alias("twice"), (sf.col("v") % 3).alias("r"), (sf.col("id").cast("double") / 4).alias("q"))',
    ),
    Case(
        "CASE and coalesce",
        "SELECT id, CASE WHEN v > 5 THEN 'high' WHEN v IS NULL THEN 'none' ELSE 'low' END AS level, coalesce(k, '-') AS k, if(v = 2, 1, 0) AS two FROM STREAM events",
        'spark.readStream.table("events").select("id", sf.when(sf.col("v") > 5, "high").when(sf.col("v").isNull(), "none").otherwise("low").alias("level"), '
        'sf.coalesce("k", sf.lit("-")).alias("k"), sf.expr("if(v = 2, 1, 0)").alias("two"))',
    ),
    Case(
        "text functions",
        "SELECT id, upper(k) AS u, length(k) AS n, concat_ws('-', k, CAST(v AS STRING)) AS c, regexp_replace(st.b, '[aeiou]', '*') AS r, k LIKE 'a%' AS a FROM STREAM events",
        """spark.readStream.table("events").select("id", sf.upper("k").alias("u"), sf.length("k").alias("n"), sf.concat_ws("-", "k", sf.col("v").cast("string")).alias("c"), """
        """sf.regexp_replace("st.b", "[aeiou]", "*").alias("r"), sf.col("k").like("a%").alias("a"))""",
    ),
    Case(
        "times and dates",
        "SELECT id, date_trunc('HOUR', ts) AS h, CAST(ts AS DATE) AS d, year(day) AS y, date_add(day, 30) AS later, ts + INTERVAL 90 MINUTES AS soon, unix_micros(ts) AS u FROM STREAM events",
        """spark.readStream.table("events").select("id", sf.date_trunc("HOUR", "ts").alias("h"), sf.col("ts").cast("date").alias("d"), sf.year("day").alias("y"), """
        """sf.date_add("day", 30).alias("later"), (sf.col("ts") + sf.expr("INTERVAL 90 MINUTES")).alias("soon"), sf.unix_micros("ts").alias("u"))""",
    ),
    Case(
        "struct functions",
        "SELECT id, st.a AS a, struct(k, v) AS kv, named_struct('x', v, 'y', st) AS nested FROM STREAM events",
        'spark.readStream.table("events").select("id", sf.col("st.a").alias("a"), sf.struct("k", "v").alias("kv"), '
        'sf.struct(sf.col("v").alias("x"), sf.col("st").alias("y")).alias("nested"))',
    ),
    Case(
        "array functions",
        "SELECT id, size(xs) AS n, array_contains(xs, 4) AS four, sort_array(xs) AS s, array_distinct(xs) AS d, slice(xs, 1, 2) AS two, array_max(xs) AS most, concat(xs, array(0)) AS more FROM STREAM events",
        'spark.readStream.table("events").select("id", sf.size("xs").alias("n"), sf.array_contains("xs", 4).alias("four"), sf.sort_array("xs").alias("s"), '
        'sf.array_distinct("xs").alias("d"), sf.slice("xs", 1, 2).alias("two"), sf.array_max("xs").alias("most"), sf.concat("xs", sf.array(sf.lit(0))).alias("more"))',
    ),
    Case(
        "map functions",
        "SELECT id, map_keys(m) AS ks, map_values(m) AS vs, m['p'] AS p, map(k, v) AS kv, cardinality(m) AS n FROM STREAM events WHERE k IS NOT NULL",
        'spark.readStream.table("events").where("k IS NOT NULL").select("id", sf.map_keys("m").alias("ks"), sf.map_values("m").alias("vs"), '
        'sf.col("m")["p"].alias("p"), sf.create_map("k", "v").alias("kv"), sf.cardinality("m").alias("n"))',
    ),
    Case(
        "lambdas",
        "SELECT id, transform(xs, x -> x * 10) AS tens, filter(xs, x -> x > 2) AS big, exists(xs, x -> x = 8) AS eight, aggregate(xs, 0, (a, x) -> a + coalesce(x, 0)) AS total, transform(xs, (x, i) -> x + i) AS placed FROM STREAM events",
        'spark.readStream.table("events").select("id", sf.transform("xs", lambda x: x * 10).alias("tens"), sf.filter("xs", lambda x: x > 2).alias("big"), '
        'sf.exists("xs", lambda x: x == 8).alias("eight"), sf.aggregate("xs", sf.lit(0), lambda a, x: a + sf.coalesce(x, sf.lit(0))).alias("total"), '
        'sf.transform("xs", lambda x, i: x + i).alias("placed"))',
    ),
    Case(
        "lambdas over structs",
        "SELECT id, transform(sts, s -> s.a) AS firsts, filter(sts, s -> s.b IS NOT NULL) AS named FROM STREAM events",
        'spark.readStream.table("events").select("id", sf.transform("sts", lambda s: s["a"]).alias("firsts"), sf.filter("sts", lambda s: s["b"].isNotNull()).alias("named"))',
    ),
]

GENERATORS = [
    Case(
        "explode an array",
        "SELECT id, explode(xs) AS x FROM STREAM events",
        'spark.readStream.table("events").select("id", sf.explode("xs").alias("x"))',
        keys=("id",),
        sequence="id",
    ),
    Case(
        "explode_outer an array",
        "SELECT id, explode_outer(xs) AS x FROM STREAM events",
        'spark.readStream.table("events").select("id", sf.explode_outer("xs").alias("x"))',
    ),
    Case(
        "explode a map",
        "SELECT id, explode(m) AS (name, n) FROM STREAM events",
        'spark.readStream.table("events").select("id", sf.explode("m").alias("name", "n"))',
    ),
    Case(
        "posexplode",
        "SELECT id, posexplode(xs) AS (place, x) FROM STREAM events",
        'spark.readStream.table("events").select("id", sf.posexplode("xs").alias("place", "x"))',
    ),
    Case(
        "posexplode_outer",
        "SELECT id, posexplode_outer(xs) AS (place, x) FROM STREAM events",
        'spark.readStream.table("events").select("id", sf.posexplode_outer("xs").alias("place", "x"))',
    ),
    Case(
        "inline",
        "SELECT id, inline(sts) AS (one, two) FROM STREAM events",
        'spark.readStream.table("events").select("id", sf.inline("sts").alias("one", "two"))',
    ),
    Case(
        "inline_outer",
        "SELECT id, inline_outer(sts) AS (one, two) FROM STREAM events",
        'spark.readStream.table("events").select("id", sf.inline_outer("sts").alias("one", "two"))',
    ),
    Case(
        "stack",
        "SELECT id, stack(2, 'v', v, 'a', st.a) AS (what, n) FROM STREAM events",
        """spark.readStream.table("events").selectExpr("id", "stack(2, 'v', v, 'a', st.a) AS (what, n)")""",
    ),
    Case(
        "LATERAL VIEW",
        "SELECT id, item FROM STREAM events LATERAL VIEW explode(xs) l AS item",
        'spark.sql("SELECT id, item FROM STREAM(events) LATERAL VIEW explode(xs) l AS item")',
    ),
    Case(
        "LATERAL VIEW OUTER",
        "SELECT id, p, item FROM STREAM events LATERAL VIEW OUTER posexplode(xs) l AS p, item",
        'spark.sql("SELECT id, p, item FROM STREAM(events) LATERAL VIEW OUTER posexplode(xs) l AS p, item")',
    ),
    Case(
        "two LATERAL VIEWs",
        "SELECT id, item, name, n FROM STREAM events LATERAL VIEW explode(xs) l AS item LATERAL VIEW OUTER explode(m) r AS name, n WHERE item > 1",
        'spark.readStream.table("events").select("id", "m", sf.explode("xs").alias("item")).where("item > 1").select("id", "item", sf.explode_outer("m").alias("name", "n"))',
    ),
    Case(
        "a lateral table function",
        "SELECT e.id, t.x FROM STREAM events AS e, LATERAL explode(e.xs) AS t(x)",
        'spark.readStream.table("events").lateralJoin(spark.tvf.explode(sf.col("xs").outer())).select("id", sf.col("col").alias("x"))',
    ),
    Case(
        "a left join with a lateral table function",
        "SELECT e.id, t.x FROM STREAM events AS e LEFT JOIN LATERAL explode(e.xs) AS t(x) ON true",
        'spark.readStream.table("events").lateralJoin(spark.tvf.explode(sf.col("xs").outer()), sf.lit(True), "left").select("id", sf.col("col").alias("x"))',
        spark_errs="it takes the query for an aggregate",
    ),
    Case(
        "unpivot",
        "SELECT id, what, n FROM STREAM events LATERAL VIEW stack(2, 'v', CAST(v AS BIGINT), 'id', id) s AS what, n",
        'spark.readStream.table("events").select("id", sf.col("v").cast("bigint"), sf.col("id").alias("same")).unpivot(["id"], ["v", "same"], "what", "n")'
        """.withColumn("what", sf.expr("if(what = 'same', 'id', what)"))""",
    ),
]

QUERIES = [
    Case(
        "a common table expression",
        "WITH big AS (SELECT id, k, v FROM STREAM events WHERE v > 3) SELECT k, id FROM big WHERE k <> 'b'",
        """spark.sql("WITH big AS (SELECT id, k, v FROM STREAM(events) WHERE v > 3) SELECT k, id FROM big WHERE k <> 'b'")""",
    ),
    Case(
        "common table expressions in a chain",
        "WITH a AS (SELECT id, xs, k FROM STREAM events), b AS (SELECT id, explode(xs) AS x, k FROM a), c AS (SELECT x, k, id FROM b WHERE x > 1) SELECT * FROM c",
        'spark.readStream.table("events").select("id", sf.explode("xs").alias("x"), "k").where("x > 1").select("x", "k", "id")',
        keys=("k",),
        sequence="id",
    ),
    Case(
        "a subquery in FROM",
        "SELECT s.n, s.id FROM (SELECT id, v + 1 AS n FROM STREAM events WHERE k IS NOT NULL) AS s WHERE s.n > 3",
        'spark.readStream.table("events").where("k IS NOT NULL").select("id", (sf.col("v") + 1).alias("n")).alias("s").where("s.n > 3").select("s.n", "s.id")',
    ),
    Case(
        "UNION ALL of two streams",
        "SELECT id, k, v FROM STREAM events UNION ALL SELECT id, k, v FROM STREAM more",
        'spark.readStream.table("events").select("id", "k", "v").union(spark.readStream.table("more"))',
        keys=("k",),
        sequence="id",
    ),
    Case(
        "UNION ALL of three streams",
        "SELECT id, k FROM STREAM more UNION ALL SELECT id, k FROM STREAM third UNION ALL SELECT id, upper(k) FROM STREAM events WHERE v > 2",
        'spark.readStream.table("more").select("id", "k").unionAll(spark.readStream.table("third").select("id", "k"))'
        '.unionAll(spark.readStream.table("events").where("v > 2").select("id", sf.upper("k")))',
    ),
    Case(
        "UNION ALL of a stream with itself",
        "SELECT id, 'low' AS half FROM STREAM more WHERE v < 4 UNION ALL SELECT id, 'high' AS half FROM STREAM more WHERE v > 2",
        'spark.readStream.table("more").where("v < 4").select("id", sf.lit("low").alias("half")).union('
        'spark.readStream.table("more").where("v > 2").select("id", sf.lit("high").alias("half")))',
    ),
    Case(
        "union by name",
        "SELECT id, k, v FROM STREAM more UNION ALL SELECT id, k, CAST(NULL AS INT) AS v FROM STREAM third",
        'spark.readStream.table("more").unionByName(spark.readStream.table("third").select("k", "id"), allowMissingColumns=True)',
    ),
    Case(
        "a filter over UNION ALL in a subquery",
        "SELECT k, count_ AS n FROM (SELECT k, v AS count_ FROM STREAM more UNION ALL SELECT k, v FROM STREAM third) u WHERE count_ > 4",
        'spark.readStream.table("more").select("k", "v").union(spark.readStream.table("third").select("k", "v")).where("v > 4").select("k", sf.col("v").alias("n"))',
    ),
    Case(
        "columns added, renamed, dropped, filled",
        "SELECT id AS number, coalesce(k, '?') AS k, coalesce(v, -1) AS v, 1 AS one FROM STREAM more WHERE id > 101",
        'spark.readStream.table("more").withColumns({"one": sf.lit(1), "two": sf.lit(2)}).drop("two").withColumnRenamed("id", "number")'
        '.na.fill({"k": "?", "v": -1}).where("number > 101")',
    ),
]

FUNCTIONS = [
    Case(
        "a Python UDF",
        None,
        'spark.readStream.table("events").where(is_even("v")).select("id", doubled("v").alias("twice"))',
        setup="""\
            @sf.udf("INT")
            def doubled(v):
                return None if v is None else v * 2


            @sf.udf("BOOLEAN")
            def is_even(v):
                return v is None or v % 2 == 0
        """,
    ),
    Case(
        "a Python UDF under its name in SQL",
        None,
        'spark.sql("SELECT id, shouted(k) AS k FROM STREAM(events) WHERE k IS NOT NULL")',
        setup="""\
            def shouted(k):
                return k.upper() + "!"


            spark.udf.register("shouted", shouted, "STRING")
        """,
    ),
    Case(
        "a pandas UDF",
        None,
        'spark.readStream.table("more").select("id", longer("k", "id").alias("name"))',
        setup="""\
            import pandas as pd


            @sf.pandas_udf("STRING")
            def longer(k: pd.Series, number: pd.Series) -> pd.Series:
                return k.fillna("?") + number.astype(str)
        """,
    ),
    Case(
        "mapInPandas",
        None,
        'spark.readStream.table("more").mapInPandas(both, "id LONG, side STRING")',
        setup="""\
            def both(frames):
                for frame in frames:
                    for side in ("left", "right"):
                        yield frame[["id"]].assign(side=side)
        """,
    ),
    Case(
        "mapInArrow",
        None,
        'spark.readStream.table("more").select("id", "v").mapInArrow(known, "id LONG, v INT").where("v > 1")',
        setup="""\
            def known(batches):
                for batch in batches:
                    yield batch.filter(batch.column("v").is_valid())
        """,
    ),
]

CASES = [*EXPRESSIONS, *GENERATORS, *QUERIES, *FUNCTIONS]
