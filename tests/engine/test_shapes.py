"""What a query may do over a stream: the same in SQL and in Python, refused in the same words."""

import inspect

import pandas as pd
import pytest
from pyspark.sql import Window
from pyspark.sql import functions as sf

from millpond.errors.engine import UnsupportedReadError, UnsupportedStreamingOperationError
from tests.engine.queries import empty, plan, python, sql

BEFORE = "CREATE STREAMING TABLE x AS "

# What is refused: the SQL with the word that is pointed at, Python with the line that is named, and
# the reason in both.
CHANGES = "its result would change with every later batch"
REMEMBERS = "it must remember the rows of all earlier batches"
WINDOW = "rows of other batches belong to the same window"
CUT = "which rows come out would depend on how the stream is cut"
SORTS = "the rows of a table have no order"
COMPARES = "it compares rows of all batches"
EVENT_TIME = "state over event time is not kept"
JOINS = "by inner join, or by left outer join with the stream on the left"


def stream(spark, name="t"):
    return spark.readStream.table(name)


def table(spark, name="u"):
    return spark.read.table(name)


REFUSED = {
    "group by": (
        "SELECT k, count(*) FROM STREAM t GROUP BY k",
        "GROUP",
        lambda spark: stream(spark).groupBy("k").count(),
        CHANGES,
    ),
    "group by all": (
        "SELECT k, v FROM STREAM t GROUP BY ALL",
        "GROUP",
        lambda spark: stream(spark).rollup("k").count(),
        CHANGES,
    ),
    "aggregate": (
        "SELECT sum(v) FROM STREAM t",
        "sum",
        lambda spark: stream(spark).agg(sf.sum("v")),
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
    "distinct": (
        "SELECT DISTINCT k FROM STREAM t",
        "DISTINCT",
        lambda spark: stream(spark).select("k").distinct(),
        REMEMBERS,
    ),
    "union distinct": (
        "SELECT k FROM STREAM t UNION SELECT k FROM STREAM u",
        "UNION",
        lambda spark: stream(spark).union(stream(spark, "u")).dropDuplicates(["k"]),
        REMEMBERS,
    ),
    "window function": (
        "SELECT row_number() OVER (PARTITION BY k ORDER BY ts) FROM STREAM t",
        "OVER",
        lambda spark: stream(spark).withColumn(
            "n", sf.row_number().over(Window.partitionBy("k").orderBy("ts"))
        ),
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
    "limit": (
        "SELECT k FROM STREAM t LIMIT 3",
        "LIMIT",
        lambda spark: stream(spark).limit(3),
        CUT,
    ),
    "offset": (
        "SELECT k FROM STREAM t OFFSET 3",
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
    "stream with stream": (
        "SELECT t.k FROM STREAM t JOIN STREAM u ON t.k = u.k",
        "JOIN",
        lambda spark: stream(spark).join(stream(spark, "u"), "k"),
        "rows of both streams would have to be kept",
    ),
    "right join": (
        "SELECT t.k FROM STREAM t RIGHT JOIN u ON t.k = u.k",
        "JOIN",
        lambda spark: stream(spark).join(table(spark), "k", "right"),
        JOINS,
    ),
    "full join": (
        "SELECT t.k FROM STREAM t FULL OUTER JOIN u ON t.k = u.k",
        "JOIN",
        lambda spark: stream(spark).join(table(spark), "k", "full_outer"),
        JOINS,
    ),
    "semi join": (
        "SELECT t.k FROM STREAM t LEFT SEMI JOIN u ON t.k = u.k",
        "JOIN",
        lambda spark: stream(spark).join(table(spark), "k", "left_semi"),
        JOINS,
    ),
    "anti join": (
        "SELECT t.k FROM STREAM t LEFT ANTI JOIN u ON t.k = u.k",
        "JOIN",
        lambda spark: stream(spark).join(table(spark), "k", "left_anti"),
        JOINS,
    ),
    "left join from a table": (
        "SELECT t.k FROM u LEFT JOIN STREAM t ON t.k = u.k",
        "JOIN",
        lambda spark: table(spark).join(stream(spark), "k", "left"),
        "with the stream on the right",
    ),
    "pivot": (
        "SELECT * FROM STREAM t PIVOT (sum(v) FOR k IN (1, 2))",
        "v",
        lambda spark: stream(spark).groupBy("k").pivot("v", [1]).sum("v"),  # noqa: PD010 - a Spark DataFrame
        "it aggregates rows of all batches",
    ),
    "sample": (
        "SELECT k FROM STREAM t TABLESAMPLE (10 PERCENT)",
        "t",
        lambda spark: stream(spark).sample(0.1),
        "a batch that runs again would give other rows",
    ),
    "watermark": (
        "SELECT k FROM STREAM t WATERMARK ts DELAY OF INTERVAL 10 MINUTES AS x",
        "WATERMARK",
        lambda spark: stream(spark).withWatermark("ts", "10 minutes"),
        EVENT_TIME,
    ),
    "time window": (
        "SELECT window(ts, '5 minutes') FROM STREAM t",
        "window",
        lambda spark: stream(spark).select(sf.window("ts", "5 minutes")),
        EVENT_TIME,
    ),
    "subquery in WHERE": (
        "SELECT k FROM STREAM t WHERE k IN (SELECT k FROM u)",
        "k",
        lambda spark: stream(spark).where(table(spark).where("k > 1").exists()),
        "only subqueries in FROM are",
    ),
    "scalar subquery": (
        "SELECT (SELECT max(k) FROM u) FROM STREAM t",
        "k",
        lambda spark: stream(spark).withColumn("m", table(spark).agg(sf.max("k")).scalar()),
        "only subqueries in FROM are",
    ),
    "subquery over a stream": (
        "SELECT k FROM u WHERE EXISTS (SELECT 1 FROM STREAM t)",
        "t",
        lambda spark: table(spark).where(stream(spark).exists()),
        "only subqueries in FROM are",
    ),
    "lateral subquery": (
        "SELECT k FROM STREAM t, LATERAL (SELECT t.k + 1)",
        "t",
        None,
        "a subquery that refers to the stream's rows",
    ),
    "recursion": (
        "WITH RECURSIVE r AS (SELECT k FROM STREAM t UNION ALL SELECT k FROM r) SELECT * FROM r",
        "UNION",
        None,
        "does not stream would come again",
    ),
    "group map": (
        None,
        None,
        lambda spark: stream(spark).groupBy("k").applyInPandas(lambda group: group, "k INT"),
        CHANGES,
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
        "millpond does not know what it means",
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
    _, first = inspect.getsourcelines(build)
    assert caught.value.where.file.endswith("test_shapes.py")
    assert first <= caught.value.where.line <= first + 3
    assert caught.value.hint


def test_the_line_is_that_of_the_call_in_a_chain(engine, spark):
    def function():
        return (
            stream(spark)
            .where("k > 1")
            .distinct()  # this one
            .select("k")
        )

    with pytest.raises(UnsupportedStreamingOperationError, match=r"distinct\(\)") as caught:
        plan(engine, python(function))
    lines, first = inspect.getsourcelines(function)
    assert "this one" in lines[caught.value.where.line - first]


def test_text_inside_python_obeys_the_same_rules(engine, spark):
    def function():
        return spark.sql("SELECT DISTINCT k FROM {rows}", rows=stream(spark).where("k > 1"))

    with pytest.raises(UnsupportedStreamingOperationError, match="DISTINCT") as caught:
        plan(engine, python(function))
    assert caught.value.where.file.endswith("test_shapes.py")
    assert "^^^^^^^^" in caught.value.detail


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
