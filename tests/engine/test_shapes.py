"""What a query may do over a stream: the same in SQL and in Python, refused in the same words."""

import inspect

import pandas as pd
import pytest
from pyspark.sql import Window
from pyspark.sql import functions as sf
from pyspark.sql.streaming import StatefulProcessor as PySparkProcessor

from millpond.errors.engine import UnsupportedReadError, UnsupportedStreamingOperationError
from tests.engine.queries import empty, plan, python, sql

BEFORE = "CREATE STREAMING TABLE x AS "


class StatefulProcessor(PySparkProcessor):
    def init(self, handle):
        pass

    def handleInputRows(self, _key, rows, _timers):  # noqa: N802 - PySpark's name
        return rows

    def close(self):
        pass


# What is refused: the SQL with the word that is pointed at, Python with the line that is named, and
# the reason in both.
CHANGES = "its result would change with every later batch"
FINAL = "no watermark says when a group is complete"
WINDOW = "rows of other batches belong to the same window"
CUT = "would depend on how the stream is cut"
SORTS = "the rows of a table have no order"
COMPARES = "it compares rows of all batches"
NEEDS_WATERMARK = "a time window needs a watermark"
JOINS = "by inner join, or by left outer join with the stream on the left"
NO_MATCH = "without a watermark on both sides nothing shows that no match can come"
OF_STREAM = "only a subquery in FROM may read a stream"
AS_VALUE = "the engine knows it only as a condition of WHERE"
DELAY = "WATERMARK ts DELAY OF INTERVAL 10 MINUTES"


def stream(spark, name="t"):
    return spark.readStream.table(name)


def late(spark, name="t"):
    return stream(spark, name).withWatermark("ts", "10 minutes")


def table(spark, name="u"):
    return spark.read.table(name)


REFUSED = {
    "group by without watermark": (
        "SELECT k, count(*) FROM STREAM t GROUP BY k",
        "GROUP",
        lambda spark: stream(spark).groupBy("k").count(),
        FINAL,
    ),
    "time window of a group without watermark": (
        "SELECT k, count(*) FROM STREAM t GROUP BY k, window(ts, '5 minutes')",
        "GROUP",
        lambda spark: stream(spark).groupBy(sf.window("ts", "5 minutes")).count(),
        FINAL,
    ),
    "watermark on the table only": (
        f"SELECT t.k FROM STREAM t JOIN u {DELAY} ON t.k = u.k GROUP BY t.k",
        "GROUP",
        lambda spark: (
            stream(spark)
            .join(table(spark).withWatermark("ts", "1 hour").select("k"), "k")
            .groupBy("k")
            .count()
        ),
        FINAL,
    ),
    "group by all": (
        "SELECT k, v FROM STREAM t GROUP BY ALL",
        "GROUP",
        None,
        "what it groups by is not written down",
    ),
    "rollup": (
        f"SELECT k, count(*) FROM STREAM t {DELAY} GROUP BY ROLLUP(k, ts)",
        "GROUP",
        lambda spark: late(spark).rollup("k", "ts").count(),
        "the totals over several groups would change",
    ),
    "cube": (
        f"SELECT k, count(*) FROM STREAM t {DELAY} GROUP BY k, ts WITH CUBE",
        "GROUP",
        lambda spark: late(spark).cube("k", "ts").count(),
        "the totals over several groups would change",
    ),
    "grouping sets": (
        f"SELECT k, count(*) FROM STREAM t {DELAY} GROUP BY k, ts GROUPING SETS ((k, ts), (k))",
        "GROUP",
        lambda spark: late(spark).groupingSets([["k"], ["k", "ts"]], "k", "ts").count(),
        "the totals over several groups would change",
    ),
    "aggregate": (
        "SELECT sum(v) FROM STREAM t",
        "sum",
        lambda spark: stream(spark).agg(sf.sum("v")),
        CHANGES,
    ),
    "aggregate of all rows with a watermark": (
        f"SELECT sum(v) FROM STREAM t {DELAY}",
        "sum",
        lambda spark: late(spark).groupBy().agg(sf.sum("v")),
        CHANGES,
    ),
    "aggregate over groups": (
        f"SELECT max(n) FROM (SELECT ts, count(*) AS n FROM STREAM t {DELAY} GROUP BY ts)",
        "max",
        lambda spark: late(spark).groupBy("ts").count().select(sf.max("count")),
        CHANGES,
    ),
    "aggregate in a projection": (
        "SELECT 1 + approx_count_distinct(v) FROM STREAM t",
        "approx_count_distinct",
        lambda spark: stream(spark).select(sf.lit(1) + sf.approx_count_distinct("v")),
        CHANGES,
    ),
    "aggregate in text": (
        "SELECT max(v) AS m FROM STREAM t",
        "max",
        lambda spark: stream(spark).selectExpr("max(v) AS m"),
        CHANGES,
    ),
    "aggregate over a subquery": (
        "SELECT first(v) FROM (SELECT v FROM STREAM t WHERE v > 1)",
        "first",
        lambda spark: stream(spark).where("v > 1").select(sf.first("v")),
        CHANGES,
    ),
    "having": (
        "SELECT 1 FROM STREAM t HAVING count(*) > 1",
        "HAVING",
        lambda spark: stream(spark).groupBy().agg(sf.count("*").alias("n")).where("n > 1"),
        CHANGES,
    ),
    "union distinct": (
        "SELECT k FROM STREAM t UNION SELECT k FROM STREAM u",
        "UNION",
        None,
        "streams are put together by UNION ALL only",
    ),
    "duplicates within no watermark": (
        None,
        None,
        lambda spark: stream(spark).dropDuplicatesWithinWatermark(["k"]),
        "no watermark says how long a row is remembered",
    ),
    "window function": (
        "SELECT row_number() OVER (PARTITION BY k ORDER BY ts) FROM STREAM t",
        "OVER",
        lambda spark: stream(spark).withColumn(
            "n", sf.row_number().over(Window.partitionBy("k").orderBy("ts"))
        ),
        WINDOW,
    ),
    "window function with a watermark": (
        f"SELECT k, sum(count(*)) OVER (ORDER BY k) FROM STREAM t {DELAY} GROUP BY k, ts",
        "OVER",
        lambda spark: late(spark).withColumn("n", sf.sum("v").over(Window.partitionBy("k"))),
        WINDOW,
    ),
    "window function in text": (
        "SELECT lag(v) OVER w FROM STREAM t WINDOW w AS (ORDER BY ts)",
        "WINDOW",
        lambda spark: stream(spark).selectExpr("lag(v) OVER (ORDER BY ts)"),
        WINDOW,
    ),
    "qualify": (
        "SELECT k FROM STREAM t QUALIFY row_number() OVER (ORDER BY k) = 1",
        "QUALIFY",
        lambda spark: stream(spark).withColumn("n", sf.expr("rank() OVER (ORDER BY k)")),
        WINDOW,
    ),
    "limit of an expression": (
        "SELECT k FROM STREAM t LIMIT length('abc')",
        "LIMIT",
        None,
        "the number of rows must be known",
    ),
    "limit of a subquery": (
        "SELECT k FROM STREAM t LIMIT (SELECT count(*) FROM u)",
        "LIMIT",
        None,
        "the number of rows must be known",
    ),
    "offset": (
        "SELECT k FROM STREAM t LIMIT 3 OFFSET 3",
        "OFFSET",
        lambda spark: stream(spark).offset(3),
        CUT,
    ),
    "order by": (
        "SELECT k FROM STREAM t ORDER BY k",
        "ORDER",
        lambda spark: stream(spark).orderBy("k"),
        SORTS,
    ),
    "order by and limit": (
        "SELECT k FROM STREAM t UNION ALL SELECT k FROM STREAM u ORDER BY k LIMIT 3",
        "ORDER",
        lambda spark: stream(spark).sort("k").limit(3),
        SORTS,
    ),
    "order by in a subquery": (
        "SELECT k FROM (SELECT k FROM STREAM t ORDER BY k) x",
        "ORDER",
        lambda spark: stream(spark).sort("k").select("k"),
        SORTS,
    ),
    "sort by": (
        "SELECT k FROM STREAM t SORT BY k",
        "SORT",
        lambda spark: stream(spark).sortWithinPartitions("k"),
        SORTS,
    ),
    "cluster by": ("SELECT k FROM STREAM t CLUSTER BY k", "CLUSTER", None, SORTS),
    "intersect": (
        "SELECT k FROM STREAM t INTERSECT SELECT k FROM STREAM u",
        "INTERSECT",
        lambda spark: stream(spark).intersect(stream(spark, "u")),
        COMPARES,
    ),
    "except": (
        "SELECT k FROM STREAM t EXCEPT SELECT k FROM u",
        "EXCEPT",
        lambda spark: stream(spark).exceptAll(table(spark)),
        COMPARES,
    ),
    "minus": (
        "SELECT k FROM u MINUS SELECT k FROM STREAM t",
        "MINUS",
        lambda spark: table(spark).subtract(stream(spark)),
        COMPARES,
    ),
    "union with a table": (
        "SELECT k FROM STREAM t UNION ALL SELECT k FROM u",
        "UNION",
        lambda spark: stream(spark).unionByName(table(spark)),
        "the rows of the side that does not stream would come again",
    ),
    "union with given rows": (
        "SELECT k FROM STREAM t UNION ALL VALUES (1)",
        "UNION",
        lambda spark: stream(spark).select("k").union(spark.range(3)),
        "the rows of the side that does not stream would come again",
    ),
    "left join of streams": (
        "SELECT t.k FROM STREAM t LEFT JOIN STREAM u ON t.k = u.k",
        "JOIN",
        lambda spark: stream(spark).join(stream(spark, "u"), "k", "left"),
        NO_MATCH,
    ),
    "right join of streams": (
        "SELECT t.k FROM STREAM t RIGHT JOIN STREAM u ON t.k = u.k",
        "JOIN",
        lambda spark: stream(spark).join(stream(spark, "u"), "k", "right"),
        NO_MATCH,
    ),
    "full join of streams": (
        "SELECT t.k FROM STREAM t FULL JOIN STREAM u ON t.k = u.k",
        "JOIN",
        lambda spark: stream(spark).join(stream(spark, "u"), "k", "full"),
        NO_MATCH,
    ),
    "semi join of streams": (
        f"SELECT t.k FROM STREAM t {DELAY} LEFT SEMI JOIN STREAM u ON t.k = u.k",
        "JOIN",
        lambda spark: late(spark).join(late(spark, "u"), "k", "left_semi"),
        "known only when all of the other stream was read",
    ),
    "anti join of streams": (
        f"SELECT t.k FROM STREAM t {DELAY} LEFT ANTI JOIN STREAM u ON t.k = u.k",
        "JOIN",
        lambda spark: late(spark).join(late(spark, "u"), "k", "left_anti"),
        "known only when all of the other stream was read",
    ),
    "right join": (
        "SELECT t.k FROM STREAM t RIGHT JOIN u ON t.k = u.k",
        "JOIN",
        lambda spark: stream(spark).join(table(spark), "k", "right"),
        JOINS,
    ),
    "right join from a table": (
        "SELECT t.k FROM u RIGHT JOIN STREAM t ON t.k = u.k",
        "JOIN",
        lambda spark: table(spark).join(stream(spark), "k", "right"),
        JOINS,
    ),
    "full join": (
        "SELECT t.k FROM STREAM t FULL OUTER JOIN u ON t.k = u.k",
        "JOIN",
        lambda spark: stream(spark).join(table(spark), "k", "full_outer"),
        JOINS,
    ),
    "left join from a table": (
        "SELECT t.k FROM u LEFT JOIN STREAM t ON t.k = u.k",
        "JOIN",
        lambda spark: table(spark).join(stream(spark), "k", "left"),
        "with the stream on the right",
    ),
    "semi join from a table": (
        "SELECT u.k FROM u LEFT SEMI JOIN STREAM t ON t.k = u.k",
        "JOIN",
        lambda spark: table(spark).join(stream(spark), "k", "left_semi"),
        "with the stream on the right",
    ),
    "anti join from a table": (
        "SELECT u.k FROM u LEFT ANTI JOIN STREAM t ON t.k = u.k",
        "JOIN",
        lambda spark: table(spark).join(stream(spark), "k", "left_anti"),
        "with the stream on the right",
    ),
    "join that Spark has not": (
        "SELECT u.k FROM STREAM t RIGHT SEMI JOIN u ON t.k = u.k",
        "JOIN",
        None,
        "millpond does not know what it means",
    ),
    "pivot": (
        "SELECT * FROM STREAM t PIVOT (sum(v) FOR k IN (1, 2))",
        "PIVOT",
        lambda spark: stream(spark).groupBy("k").pivot("v", [1]).sum("v"),  # noqa: PD010 - a Spark DataFrame
        "it aggregates rows of all batches",
    ),
    "sample": (
        "SELECT k FROM STREAM t TABLESAMPLE (10 PERCENT)",
        "TABLESAMPLE",
        lambda spark: stream(spark).sample(0.1),
        "a sample is taken of a whole table",
    ),
    "time window": (
        "SELECT window(ts, '5 minutes') FROM STREAM t",
        "window",
        lambda spark: stream(spark).select(sf.window("ts", "5 minutes")),
        NEEDS_WATERMARK,
    ),
    "session window": (
        "SELECT session_window(ts, '5 minutes') FROM STREAM t",
        "session_window",
        lambda spark: stream(spark).select(sf.session_window("ts", "5 minutes")),
        NEEDS_WATERMARK,
    ),
    "time of a window": (
        "SELECT window_time(w) FROM STREAM t",
        "window_time",
        lambda spark: stream(spark).withColumn("x", sf.window_time("w")),
        NEEDS_WATERMARK,
    ),
    "row numbers": (
        "SELECT monotonically_increasing_id() FROM STREAM t",
        "monotonically_increasing_id",
        lambda spark: stream(spark).select(sf.monotonically_increasing_id()),
        "its numbers begin again with every batch",
    ),
    "IN with a subquery as a value": (
        "SELECT k IN (SELECT k FROM u) FROM STREAM t",
        "SELECT k FROM u",
        lambda spark: stream(spark).select(sf.col("k").isin(table(spark).select("k"))),
        AS_VALUE,
    ),
    "NOT IN with a subquery under OR": (
        "SELECT k FROM STREAM t WHERE v > 1 OR NOT k IN (SELECT k FROM u)",
        "SELECT k FROM u",
        lambda spark: stream(spark).where(
            (sf.col("v") > 1) | ~sf.col("k").isin(table(spark).select("k"))
        ),
        AS_VALUE,
    ),
    "NOT IN with a subquery of two columns": (
        "SELECT k FROM STREAM t WHERE (k, v) NOT IN (SELECT k, v FROM u)",
        "SELECT k, v FROM u",
        lambda spark: stream(spark).where(~sf.struct("k", "v").isin(table(spark).select("k", "v"))),
        AS_VALUE,
    ),
    "NOT over an IN with a subquery": (
        "SELECT k FROM STREAM t WHERE NOT (v > 1 AND k IN (SELECT k FROM u))",
        "SELECT k FROM u",
        lambda spark: stream(spark).where(
            ~((sf.col("v") > 1) & sf.col("k").isin(table(spark).select("k")))
        ),
        AS_VALUE,
    ),
    "EXISTS with an aggregate": (
        "SELECT k FROM STREAM t WHERE EXISTS (SELECT count(*) FROM u WHERE u.k = t.k)",
        "SELECT count",
        lambda spark: stream(spark).where(table(spark).agg(sf.count("*")).exists()),
        "an aggregate without GROUP BY always gives a row",
    ),
    "subquery in the condition of a join": (
        "SELECT t.k FROM STREAM t JOIN u ON t.k = u.k AND t.v > (SELECT max(v) FROM w)",
        "SELECT max",
        lambda spark: stream(spark).join(
            table(spark), sf.col("s") == table(spark, "w").select("s").scalar()
        ),
        "can't compute it in the condition of a join",
    ),
    "subquery over a stream": (
        "SELECT k FROM u WHERE EXISTS (SELECT 1 FROM STREAM t)",
        "SELECT 1",
        lambda spark: table(spark).where(stream(spark).exists()),
        OF_STREAM,
    ),
    "subquery over a stream beside a stream": (
        "SELECT k FROM STREAM t WHERE k IN (SELECT k FROM STREAM u)",
        "SELECT k FROM STREAM u",
        lambda spark: stream(spark).where(sf.col("k").isin(stream(spark, "u").select("k"))),
        OF_STREAM,
    ),
    "lateral subquery": (
        "SELECT k FROM STREAM t, LATERAL (SELECT t.k + 1)",
        "t",
        lambda spark: stream(spark).lateralJoin(table(spark).select("v")),
        "a subquery that refers to the stream's rows",
    ),
    "recursion": (
        "WITH RECURSIVE r AS (SELECT k FROM STREAM t UNION ALL SELECT k FROM r) SELECT * FROM r",
        "UNION",
        None,
        "does not stream would come again",
    ),
    "function over groups": (
        None,
        None,
        lambda spark: stream(spark).groupBy("ts").applyInPandas(lambda group: group, "k INT"),
        "the rows of a group come in several batches",
    ),
    "function over groups of two": (
        None,
        None,
        lambda spark: (
            stream(spark)
            .groupBy("k")
            .cogroup(table(spark).groupBy("k"))
            .applyInPandas(lambda one, _other: one, "k INT")
        ),
        "the rows of a group come in several batches",
    ),
    "function with state": (
        None,
        None,
        lambda spark: (
            stream(spark)
            .groupBy("k")
            .applyInPandasWithState(
                lambda _key, frames, _state: frames, "k INT", "n INT", "append", "NoTimeout"
            )
        ),
        "state that a function of your own keeps",
    ),
    "processor with state": (
        None,
        None,
        lambda spark: (
            stream(spark)
            .groupBy("k")
            .transformWithStateInPandas(StatefulProcessor(), "k INT", "append", "None")
        ),
        "state that a function of your own keeps",
    ),
    "observed figures": (
        None,
        None,
        lambda spark: stream(spark).observe("figures", sf.count("*")),
        "its figures could not be asked for",
    ),
    "unknown": (
        None,
        None,
        lambda spark: stream(spark).transpose(),
        "millpond does not know what it means",
    ),
    "statistics": (
        None,
        None,
        lambda spark: stream(spark).describe(),
        CHANGES,
    ),
}


@pytest.mark.parametrize(
    ("text", "marked", "reason"),
    [(text, marked, reason) for text, marked, _, reason in REFUSED.values() if text],
    ids=[name for name, case in REFUSED.items() if case[0]],
)
def test_sql_is_refused_at_the_word(engine, text, marked, reason):
    query = sql(text, before=BEFORE)
    with pytest.raises(UnsupportedStreamingOperationError, match=reason) as caught:
        plan(engine, query)
    where = caught.value.where
    assert where.line == 1
    assert query.file_text[where.column - 1 :].startswith(marked)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("build", "reason"),
    [(build, reason) for _, _, build, reason in REFUSED.values() if build],
    ids=[name for name, case in REFUSED.items() if case[2]],
)
def test_python_is_refused_at_the_line(engine, spark, build, reason):
    def function():
        return build(spark)

    with pytest.raises(UnsupportedStreamingOperationError, match=reason) as caught:
        plan(engine, python(function))
    lines, first = inspect.getsourcelines(build)
    assert caught.value.where.file.endswith("test_shapes.py")
    assert first <= caught.value.where.line < first + len(lines)
    assert caught.value.hint


def test_the_line_is_that_of_the_call_in_a_chain(engine, spark):
    def function():
        return (
            stream(spark)
            .where("k > 1")
            .offset(3)  # this one
            .select("k")
        )

    with pytest.raises(UnsupportedStreamingOperationError, match=r"offset\(\)") as caught:
        plan(engine, python(function))
    lines, first = inspect.getsourcelines(function)
    assert "this one" in lines[caught.value.where.line - first]


def test_text_inside_python_obeys_the_same_rules(engine, spark):
    def function():
        return spark.sql("SELECT k FROM {rows} OFFSET 3", rows=stream(spark).where("k > 1"))

    with pytest.raises(UnsupportedStreamingOperationError, match="OFFSET") as caught:
        plan(engine, python(function))
    assert caught.value.where.file.endswith("test_shapes.py")
    assert "^^^^^^" in caught.value.detail


def test_an_aggregating_pandas_function_is_an_aggregate(engine, spark):
    @sf.pandas_udf("double")
    def middle(values: pd.Series) -> float:
        return values.median()

    with pytest.raises(UnsupportedStreamingOperationError, match="middle"):
        plan(engine, python(lambda: stream(spark).select(middle("v"))))


@pytest.mark.parametrize(
    "build",
    [
        lambda spark: spark.sql("SELECT My_Middle(v) AS m FROM STREAM t"),
        lambda spark: stream(spark).selectExpr("`my_middle`(v) AS m"),
        lambda spark: stream(spark).select(sf.call_function("my_middle", "v")),
    ],
)
def test_a_registered_aggregate_is_one_under_its_name(engine, spark, build):
    @sf.pandas_udf("double")
    def middle(values: pd.Series) -> float:
        return values.median()

    spark.udf.register("my_middle", middle)
    with pytest.raises(UnsupportedStreamingOperationError, match=r"(?i)my_middle"):
        plan(engine, python(lambda: build(spark)))
    table_of_one = "SELECT my_middle(v) AS m FROM VALUES (1), (4) AS t(v)"
    assert engine.query(table_of_one, empty(engine)).to_pylist() == [{"m": 2.5}]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM explode((SELECT collect_list(k) FROM STREAM t))",
        "SELECT * FROM VALUES ((SELECT max(k) FROM STREAM t)) AS v(x)",
        "SELECT 1 AS a UNION ALL SELECT 2 LIMIT (SELECT count(*) FROM STREAM t)",
        "SELECT * FROM no_matter(TABLE(SELECT * FROM STREAM t))",
        "WITH unused AS (SELECT * FROM STREAM t) SELECT * FROM u",
    ],
)
def test_a_stream_that_gives_the_query_no_rows_is_refused_where_it_stands(engine, text):
    with pytest.raises(UnsupportedStreamingOperationError, match="A subquery") as caught:
        plan(engine, sql(text))
    assert caught.value.where.column == text.index("STREAM t") + len("STREAM t")


def test_the_line_that_is_shown_is_numbered_as_in_the_file(engine):
    text = "SELECT k\nFROM STREAM t\nORDER BY k"
    with pytest.raises(UnsupportedStreamingOperationError) as caught:
        plan(engine, sql(text, before="-- first\nCREATE STREAMING TABLE x AS "))
    assert (caught.value.where.line, caught.value.where.column) == (4, 1)
    assert caught.value.detail.splitlines()[0] == "4 | ORDER BY k"


def test_a_table_function_that_nobody_knows_is_refused(engine):
    with pytest.raises(UnsupportedStreamingOperationError, match="LATERAL"):
        plan(engine, sql("SELECT * FROM STREAM t, LATERAL my_rows(t.k) AS r(x)"))


def test_an_aggregate_behind_an_equals_sign_is_one(engine, spark):
    with pytest.raises(UnsupportedStreamingOperationError, match=CHANGES):
        plan(engine, sql("SELECT true = any(k > 1) AS x FROM STREAM t"))
    for text in ("3 = count(*) AS x", "true = some(k > 1) AS x", "s LIKE max(s) AS x"):
        with pytest.raises(UnsupportedStreamingOperationError, match=CHANGES):
            plan(engine, python(lambda text=text: stream(spark).selectExpr(text)))


def test_a_subquery_in_an_expression_text_is_refused(engine, spark):
    with pytest.raises(UnsupportedReadError, match="subquery in the text"):
        plan(engine, python(lambda: table(spark).where("k IN (SELECT k FROM u)")))


ALLOWED = {
    "projection": (
        "SELECT k + 1 AS n, upper(s) FROM STREAM t WHERE v > 1",
        lambda spark: (
            stream(spark).where("v > 1").select((sf.col("k") + 1).alias("n"), sf.upper("s"))
        ),
    ),
    "generators": (
        "SELECT explode(xs) FROM STREAM t LATERAL VIEW OUTER posexplode(xs) l AS p, x",
        lambda spark: stream(spark).select(sf.explode_outer("xs")),
    ),
    "inline and stack": (
        "SELECT stack(2, k, v) FROM STREAM t LATERAL VIEW inline(array(struct(1))) l",
        lambda spark: stream(spark).selectExpr("stack(2, k, v) AS (a)"),
    ),
    "functions on arrays": (
        (
            "SELECT aggregate(xs, 0, (x, y) -> x + y), exists(xs, x -> x > 1), array_max(xs) "
            "FROM STREAM t WHERE s LIKE 'a'"
        ),
        lambda spark: stream(spark).select(sf.aggregate("xs", sf.lit(0), lambda x, y: x + y)),
    ),
    "common table expressions": (
        "WITH a AS (SELECT k FROM STREAM t), b AS (SELECT k FROM a) SELECT k FROM b",
        lambda spark: spark.sql("WITH a AS (SELECT k FROM STREAM(t)) SELECT k FROM a"),
    ),
    "semi join": (
        "SELECT t.k FROM STREAM t LEFT SEMI JOIN u ON t.k = u.k",
        lambda spark: stream(spark).join(table(spark).select("k"), "k", "left_semi"),
    ),
    "anti join": (
        "SELECT t.k FROM STREAM t LEFT ANTI JOIN u ON t.k = u.k",
        lambda spark: stream(spark).join(table(spark).select("k"), "k", "left_anti"),
    ),
    "rows that no table holds": (
        "SELECT t.k FROM STREAM t JOIN range(3) AS r ON t.k = r.id JOIN (VALUES (1)) AS v(x)",
        lambda spark: stream(spark).join(spark.range(3), sf.col("k") == sf.col("id")),
    ),
    "IN with a subquery": (
        (
            "SELECT k FROM STREAM t WHERE (k IN (SELECT k FROM u) OR v > 1) "
            "AND v NOT IN (SELECT v FROM w) AND NOT (k IN (SELECT v FROM u))"
        ),
        lambda spark: stream(spark).where(
            (sf.col("k").isin(table(spark).select("k")) | (sf.col("v") > 1))
            & ~sf.col("v").isin(table(spark, "w").select("v"))
        ),
    ),
    "EXISTS with a subquery": (
        (
            "SELECT k, EXISTS (SELECT 1 FROM w WHERE w.k = t.k) AS x FROM STREAM t "
            "WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)"
        ),
        lambda spark: (
            stream(spark)
            .alias("a")
            .where(~table(spark).where(sf.col("u.k") == sf.col("a.k").outer()).exists())
        ),
    ),
    "scalar subquery": (
        "SELECT v - (SELECT max(v) FROM u) AS x FROM STREAM t WHERE v > (SELECT avg(v) FROM w)",
        lambda spark: stream(spark).withColumn("x", table(spark).agg(sf.max("v")).scalar()),
    ),
    "scalar subquery that refers to the stream": (
        "SELECT k, (SELECT max(v) FROM u WHERE u.k = t.k) AS x FROM STREAM t",
        lambda spark: (
            stream(spark)
            .alias("a")
            .withColumn(
                "x",
                table(spark)
                .where(sf.col("u.k") == sf.col("a.k").outer())
                .agg(sf.max("v"))
                .scalar(),
            )
        ),
    ),
    "functions that give another value at each call": (
        "SELECT rand() AS r, uuid() AS id, current_timestamp() AS now FROM STREAM t",
        lambda spark: stream(spark).select(sf.rand().alias("r"), sf.current_date().alias("d")),
    ),
    "all rows": ("SELECT k FROM STREAM t LIMIT ALL", lambda spark: stream(spark).select("k")),
    "union all": (
        "SELECT k FROM STREAM t UNION ALL SELECT k FROM STREAM u",
        lambda spark: stream(spark).union(stream(spark, "u")).unionByName(stream(spark, "w")),
    ),
    "inner join": (
        "SELECT t.k FROM STREAM t JOIN u ON t.k = u.k CROSS JOIN w",
        lambda spark: stream(spark).join(table(spark).select("k"), "k"),
    ),
    "inner join from a table": (
        "SELECT t.k FROM u JOIN STREAM t ON t.k = u.k",
        lambda spark: table(spark).select("k").join(stream(spark), "k"),
    ),
    "left join": (
        "SELECT t.k FROM STREAM t LEFT JOIN u ON t.k = u.k",
        lambda spark: stream(spark).join(table(spark).select("k"), "k", "left"),
    ),
    "anything on the static side": (
        (
            "SELECT t.k, m FROM STREAM t JOIN (SELECT k, max(v) AS m FROM u GROUP BY k ORDER BY k "
            "LIMIT 3) a ON t.k = a.k"
        ),
        lambda spark: stream(spark).join(
            table(spark).groupBy("k").agg(sf.max("v").alias("m")).distinct().limit(3), "k"
        ),
    ),
    "renaming and the like": (
        None,
        lambda spark: (
            stream(spark)
            .drop("v")
            .withColumnRenamed("k", "n")
            .withColumns({"one": sf.lit(1)})
            .alias("a")
            .hint("broadcast")
            .repartition(2)
            .na.fill(0)
            .na.drop(subset=["n"])
            .toDF("a", "b", "c", "d", "e")
        ),
    ),
    "python functions": (
        None,
        lambda spark: (
            stream(spark)
            .select("k", sf.udf(lambda k: k, "INT")("k").alias("same"))
            .mapInPandas(lambda frames: frames, "k INT, same INT")
            .mapInArrow(lambda batches: batches, "k INT, same INT")
        ),
    ),
    "unpivot": (
        None,
        lambda spark: stream(spark).unpivot(["k"], ["v"], "name", "value"),
    ),
}


# What keeps state from batch to batch.
ALLOWED_WITH_STATE = {
    "distinct": (
        "SELECT DISTINCT k FROM STREAM t",
        lambda spark: stream(spark).select("k").distinct(),
    ),
    "duplicates by column": (
        "SELECT DISTINCT k, v FROM (SELECT * FROM STREAM t)",
        lambda spark: stream(spark).dropDuplicates(["k"]),
    ),
    "duplicates within a watermark": (
        None,
        lambda spark: late(spark).dropDuplicatesWithinWatermark(["k"]),
    ),
    "union without duplicates": (
        "SELECT DISTINCT * FROM (SELECT k FROM STREAM t UNION ALL SELECT k FROM STREAM u)",
        lambda spark: stream(spark).union(stream(spark, "u")).distinct(),
    ),
    "limit": (
        "SELECT k FROM STREAM t LIMIT 3",
        lambda spark: stream(spark).limit(3),
    ),
    "limit that is computed": (
        "SELECT k FROM STREAM t UNION ALL SELECT k FROM STREAM u LIMIT 2 * 50",
        lambda spark: spark.sql("SELECT k FROM STREAM t LIMIT :rows", args={"rows": 3}),
    ),
    "watermark": (
        f"SELECT k FROM STREAM t {DELAY} AS x",
        late,
    ),
    "watermark on a subquery": (
        f"SELECT window(ts, '5 minutes') FROM (SELECT * FROM (SELECT ts FROM STREAM t)) {DELAY}",
        lambda spark: (
            stream(spark)
            .select("ts")
            .withWatermark("ts", "1 minute")
            .select(sf.window("ts", "5 minutes"))
        ),
    ),
    "watermark and options": (
        f"SELECT window(ts, '5 minutes') FROM STREAM(t) WITH (maxFilesPerTrigger = 1) {DELAY} AS a",
        lambda spark: late(spark).select(sf.window("ts", "5 minutes", "1 minute")),
    ),
    "watermark in a common table expression": (
        f"WITH a AS (SELECT * FROM STREAM t {DELAY}) SELECT session_window(ts, '1 hour') FROM a",
        lambda spark: spark.sql(
            "SELECT session_window(ts, '1 hour') AS w FROM {rows}", rows=late(spark)
        ),
    ),
    "group by": (
        (
            f"SELECT k, window(ts, '5 minutes').end, count(DISTINCT v), max(v) FROM STREAM t {DELAY} "
            "GROUP BY k, window(ts, '5 minutes') HAVING count(*) > 1"
        ),
        lambda spark: (
            late(spark)
            .groupBy("k", sf.window("ts", "5 minutes"))
            .agg(sf.count_distinct("v"), sf.expr("max(v) AS m"))
            .where("m > 1")
        ),
    ),
    "group by the column with the watermark": (
        f"SELECT ts, any_value(s), sum(v) FILTER (WHERE v > 1) FROM STREAM t {DELAY} GROUP BY ts",
        lambda spark: late(spark).groupBy("ts").agg(sf.median("v")),
    ),
    "inner join of streams": (
        "SELECT t.k FROM STREAM t JOIN STREAM u ON t.k = u.k",
        lambda spark: stream(spark).join(stream(spark, "u"), "k"),
    ),
    "left join of streams": (
        (
            f"SELECT t.k FROM STREAM t {DELAY} LEFT JOIN STREAM u {DELAY} "
            "ON t.k = u.k AND u.ts BETWEEN t.ts AND t.ts + INTERVAL 1 HOUR"
        ),
        lambda spark: late(spark).join(late(spark, "u"), "k", "left"),
    ),
    "right join of streams": (
        f"SELECT t.k FROM STREAM t {DELAY} RIGHT JOIN STREAM u {DELAY} ON t.ts = u.ts",
        lambda spark: late(spark).join(late(spark, "u"), "ts", "right"),
    ),
    "full join of streams": (
        f"SELECT t.k FROM STREAM t {DELAY} FULL JOIN STREAM u {DELAY} ON t.ts = u.ts",
        lambda spark: late(spark).join(late(spark, "u"), "ts", "full"),
    ),
}


@pytest.mark.parametrize(
    "text",
    [text for text, _ in ALLOWED_WITH_STATE.values() if text],
    ids=[name for name, case in ALLOWED_WITH_STATE.items() if case[0]],
)
def test_what_sql_may_keep_of_a_stream(engine, text):
    assert plan(engine, sql(text)).is_streaming


@pytest.mark.parametrize(
    "build", [build for _, build in ALLOWED_WITH_STATE.values()], ids=ALLOWED_WITH_STATE
)
def test_what_python_may_keep_of_a_stream(engine, spark, build):
    assert plan(engine, python(lambda: build(spark))).is_streaming


@pytest.mark.parametrize(
    "text",
    [text for text, _ in ALLOWED.values() if text],
    ids=[n for n in ALLOWED if ALLOWED[n][0]],
)
def test_what_sql_over_a_stream_may_hold(engine, text):
    assert plan(engine, sql(text)).is_streaming


@pytest.mark.parametrize("build", [build for _, build in ALLOWED.values()], ids=ALLOWED)
def test_what_python_over_a_stream_may_hold(engine, spark, build):
    found = plan(engine, python(lambda: build(spark)))
    assert found.is_streaming
    assert engine.schema(found, empty(engine)).names


@pytest.mark.parametrize(
    "text", [text for text, *_ in REFUSED.values() if text and "RECURSIVE" not in text]
)
def test_everything_is_allowed_where_nothing_streams(engine, text):
    plain = text.replace("STREAM ", "")
    found = plan(engine, sql(plain))
    assert not found.is_streaming
