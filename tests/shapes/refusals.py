"""What a flow's query may not hold: each operation in SQL and in Python, and what is said of it.

`t` and `u` are read as streams, `w` as a table; all have the columns k STRING, s INT, v INT and
ts TIMESTAMP.
"""

from __future__ import annotations

from dataclasses import dataclass

DELAY = "WATERMARK ts DELAY OF INTERVAL 10 MINUTES"
STREAM = 'spark.readStream.table("t")'
OTHER = 'spark.readStream.table("u")'
TABLE = 'spark.read.table("w")'
LATE = '.withWatermark("ts", "10 minutes")'


@dataclass(frozen=True)
class Text:
    """A query in one of the languages.

    Attributes:
        text: SQL, or a Python expression that gives the DataFrame, a call on each line.
        at: What stands at the place that the message gives: in SQL the text from the token on, in
            Python a part of the line.
        operation: What the message calls it.
    """

    text: str
    at: str
    operation: str


@dataclass(frozen=True)
class Refused:
    """One operation.

    Attributes:
        reason: Words of the message.
        instead: Words of the hint.
        when_replacing: Words of the message of a REPLACE USING flow, where they are others.
        only_replacing: An append flow may have it.
    """

    reason: str
    instead: str
    sql: Text | None = None
    python: Text | None = None
    when_replacing: str | None = None
    only_replacing: bool = False


def chain(*calls: str) -> str:
    return "\n".join(calls)


CHANGES = "its result would change with every later batch"
FINAL = "no watermark says when a group is complete"
ELSEWHERE = "aggregate in a materialized view"
SORTS = "the rows of a table have no order"
WINDOWS = "rows of other batches belong to the same window"
AGAIN = "the rows of the side that does not stream would come again with every batch"
JOINS = "by left outer join with the stream on the left"
NO_MATCH = "nothing shows that no match can come"
IN_FROM = "only a subquery in FROM may read a stream"
REPLACES = "is a REPLACE USING flow, and those do not aggregate"

REFUSED = {
    "aggregate": Refused(
        CHANGES,
        ELSEWHERE,
        Text("SELECT sum(v) AS v FROM STREAM t", "sum(", "sum()"),
        Text(chain(STREAM, '.agg(sf.sum("v"))'), ".agg", "agg()"),
    ),
    "aggregate behind a watermark": Refused(
        CHANGES,
        ELSEWHERE,
        Text(f"SELECT count(*) AS n FROM STREAM t {DELAY}", "count(", "count()"),
        Text(chain(STREAM, LATE, '.select(sf.count("*"))'), ".select", "count()"),
    ),
    "group by": Refused(
        FINAL,
        "set a watermark below",
        Text("SELECT k, max(s) AS s FROM STREAM t GROUP BY k", "GROUP BY", "GROUP BY"),
        Text(chain(STREAM, '.groupBy("k")', '.agg(sf.max("s"))'), ".agg", "agg()"),
    ),
    "group by no time": Refused(
        FINAL,
        "window(ts, '5 minutes')",
        Text(f"SELECT k, max(s) AS s FROM STREAM t {DELAY} GROUP BY k", "GROUP BY", "GROUP BY"),
        Text(chain(STREAM, LATE, '.groupBy("k")', '.agg(sf.max("s"))'), ".agg", "agg()"),
        when_replacing=REPLACES,
    ),
    "having": Refused(
        CHANGES,
        ELSEWHERE,
        Text("SELECT 1 AS k FROM STREAM t HAVING count(*) > 1", "HAVING", "HAVING"),
    ),
    "rollup": Refused(
        "the totals over several groups would change",
        "group by the columns alone",
        Text(
            f"SELECT k, max(s) AS s FROM STREAM t {DELAY} GROUP BY ROLLUP(k, ts)",
            "GROUP BY",
            "GROUP BY with ROLLUP",
        ),
        Text(chain(STREAM, LATE, '.rollup("k", "ts")', '.agg(sf.max("s"))'), ".agg", "agg()"),
    ),
    "cube": Refused(
        "the totals over several groups would change",
        "group by the columns alone",
        Text(
            f"SELECT k, max(s) AS s FROM STREAM t {DELAY} GROUP BY CUBE(k, ts)",
            "GROUP BY",
            "GROUP BY with CUBE",
        ),
        Text(chain(STREAM, LATE, '.cube("k", "ts")', ".count()"), ".count", "count()"),
    ),
    "grouping sets": Refused(
        "the totals over several groups would change",
        "group by the columns alone",
        Text(
            f"SELECT k, max(s) AS s FROM STREAM t {DELAY} GROUP BY GROUPING SETS ((k), (k, ts))",
            "GROUP BY",
            "GROUP BY with GROUPING SETS",
        ),
    ),
    "group by all": Refused(
        "what it groups by is not written down",
        "name the columns",
        Text("SELECT k, max(s) AS s FROM STREAM t GROUP BY ALL", "GROUP BY", "GROUP BY ALL"),
    ),
    "pivot": Refused(
        "it aggregates rows of all batches",
        "pivot in a materialized view",
        Text("SELECT * FROM STREAM t PIVOT (sum(v) FOR k IN ('a'))", "PIVOT", "PIVOT"),
        Text(
            chain(STREAM, '.groupBy("s")', '.pivot("k", ["a"])', '.agg(sf.sum("v"))'),
            ".agg",
            "agg()",
        ),
    ),
    "grouping by time in a REPLACE USING flow": Refused(
        REPLACES,
        "in an append flow",
        Text(
            f"SELECT k, max(s) AS s FROM STREAM t {DELAY} GROUP BY k, window(ts, '5 minutes')",
            "GROUP BY",
            "GROUP BY",
        ),
        Text(
            chain(STREAM, LATE, '.groupBy("k", sf.window("ts", "5 minutes"))', ".count()"),
            ".count",
            "count()",
        ),
        only_replacing=True,
    ),
    "window function": Refused(
        WINDOWS,
        "use a REPLACE USING flow",
        Text(
            "SELECT k, row_number() OVER (PARTITION BY k ORDER BY s) AS s FROM STREAM t",
            "OVER",
            "A window function",
        ),
        Text(
            chain(
                STREAM,
                '.withColumn("n", sf.row_number().over(Window.partitionBy("k").orderBy("s")))',
            ),
            ".withColumn",
            "A window function",
        ),
    ),
    "window function behind a watermark": Refused(
        WINDOWS,
        "use a REPLACE USING flow",
        Text(
            f"SELECT k, lag(s) OVER (ORDER BY ts) AS s FROM STREAM t {DELAY}",
            "OVER",
            "A window function",
        ),
        Text(
            chain(STREAM, LATE, '.selectExpr("k", "lag(s) OVER (ORDER BY ts) AS s")'),
            ".selectExpr",
            "A window function",
        ),
    ),
    "qualify": Refused(
        WINDOWS,
        "use a REPLACE USING flow",
        Text(
            "SELECT k, s FROM STREAM t QUALIFY rank() OVER (ORDER BY s) = 1", "QUALIFY", "QUALIFY"
        ),
    ),
    "order by": Refused(
        SORTS,
        "leave it out",
        Text("SELECT k, s FROM STREAM t ORDER BY k", "ORDER BY", "ORDER BY"),
        Text(chain(STREAM, '.orderBy("k")', '.where("s > 1")'), ".orderBy", "orderBy()"),
    ),
    "sort by": Refused(
        SORTS,
        "leave it out",
        Text("SELECT k, s FROM STREAM t SORT BY k", "SORT BY", "SORT BY"),
        Text(
            chain(STREAM, '.sortWithinPartitions("k")'),
            ".sortWithinPartitions",
            "sortWithinPartitions()",
        ),
    ),
    "offset": Refused(
        "would depend on how the stream is cut into batches",
        "materialized view",
        Text("SELECT k, s FROM STREAM t LIMIT 5 OFFSET 3", "OFFSET", "OFFSET"),
        Text(chain(STREAM, ".offset(3)"), ".offset", "offset()"),
    ),
    "limit of a subquery": Refused(
        "the number of rows must be known",
        "write a number",
        Text("SELECT k, s FROM STREAM t LIMIT (SELECT count(*) FROM w)", "LIMIT", "LIMIT"),
    ),
    "sample": Refused(
        "a sample is taken of a whole table",
        "filter by a hash",
        Text("SELECT k, s FROM STREAM t TABLESAMPLE (5 PERCENT)", "TABLESAMPLE", "TABLESAMPLE"),
        Text(chain(STREAM, ".sample(0.05)"), ".sample", "sample()"),
    ),
    "intersect": Refused(
        "it compares rows of all batches",
        "materialized view",
        Text("SELECT k, s FROM STREAM t INTERSECT SELECT k, s FROM w", "INTERSECT", "INTERSECT"),
        Text(chain(STREAM, f".intersect({OTHER})"), ".intersect", "intersect()"),
    ),
    "except": Refused(
        "it compares rows of all batches",
        "materialized view",
        Text("SELECT k, s FROM STREAM t EXCEPT SELECT k, s FROM w", "EXCEPT", "EXCEPT"),
        Text(chain(STREAM, f".exceptAll({TABLE})"), ".exceptAll", "exceptAll()"),
    ),
    "minus": Refused(
        "it compares rows of all batches",
        "materialized view",
        Text("SELECT k, s FROM w MINUS SELECT k, s FROM STREAM t", "MINUS", "MINUS"),
        Text(chain(TABLE, f".subtract({STREAM})"), ".subtract", "subtract()"),
    ),
    "union with a table": Refused(
        AGAIN,
        "read every side as a stream",
        Text("SELECT k, s FROM STREAM t UNION ALL SELECT k, s FROM w", "UNION ALL", "UNION ALL"),
        Text(chain(STREAM, f".unionByName({TABLE})"), ".unionByName", "unionByName()"),
    ),
    "union with given rows": Refused(
        AGAIN,
        "read every side as a stream",
        Text(
            "SELECT k, s FROM STREAM t UNION ALL SELECT 'a' AS k, 1 AS s", "UNION ALL", "UNION ALL"
        ),
        Text(
            chain(STREAM, '.select("s")', '.union(spark.range(3).select("id"))'),
            ".union",
            "union()",
        ),
    ),
    "union without duplicates": Refused(
        "streams are put together by UNION ALL only",
        "SELECT DISTINCT over a subquery with UNION ALL",
        Text("SELECT k, s FROM STREAM t UNION SELECT k, s FROM STREAM u", "UNION SELECT", "UNION"),
    ),
    "right join with a table": Refused(
        JOINS,
        "use one of these two",
        Text("SELECT t.k, t.s FROM STREAM t RIGHT JOIN w ON t.k = w.k", "JOIN w", "RIGHT JOIN"),
        Text(chain(STREAM, f'.join({TABLE}, "k", "right")'), ".join", "join()"),
    ),
    "full join with a table": Refused(
        JOINS,
        "use one of these two",
        Text(
            "SELECT t.k, t.s FROM STREAM t FULL OUTER JOIN w ON t.k = w.k",
            "JOIN w",
            "FULL OUTER JOIN",
        ),
        Text(chain(STREAM, f'.join({TABLE}, "k", "full")'), ".join", "join()"),
    ),
    "left join with the stream on the right": Refused(
        "with the stream on the right",
        "put the stream on the left",
        Text("SELECT w.k, w.s FROM w LEFT JOIN STREAM t ON t.k = w.k", "JOIN STREAM", "LEFT JOIN"),
        Text(chain(TABLE, f'.join({STREAM}, "k", "left")'), ".join", "join()"),
    ),
    "right join with the stream on the right": Refused(
        JOINS,
        "put the stream on the left and write LEFT JOIN",
        Text(
            "SELECT w.k, w.s FROM w RIGHT JOIN STREAM t ON t.k = w.k", "JOIN STREAM", "RIGHT JOIN"
        ),
        Text(chain(TABLE, f'.join({STREAM}, "k", "right")'), ".join", "join()"),
    ),
    "left join of streams without watermark": Refused(
        NO_MATCH,
        "set one on each side",
        Text(
            "SELECT t.k, t.s FROM STREAM t LEFT JOIN STREAM u ON t.k = u.k AND t.ts = u.ts",
            "JOIN STREAM",
            "LEFT JOIN",
        ),
        Text(chain(STREAM, f'.join({OTHER}, ["k", "ts"], "left")'), ".join", "join()"),
    ),
    "full join of streams without watermark": Refused(
        NO_MATCH,
        "set one on each side",
        Text(
            "SELECT t.k, t.s FROM STREAM t FULL JOIN STREAM u ON t.k = u.k",
            "JOIN STREAM",
            "FULL JOIN",
        ),
        Text(chain(STREAM, f'.join({OTHER}, "k", "full")'), ".join", "join()"),
    ),
    "right join of streams without a time range": Refused(
        "",
        "BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR",
        Text(
            f"SELECT u.k, u.s FROM STREAM t {DELAY} RIGHT JOIN STREAM u {DELAY} ON t.k = u.k",
            "JOIN STREAM",
            "RIGHT JOIN",
        ),
        Text(chain(STREAM, LATE, f'.join({OTHER}{LATE}, "k", "right")'), ".join", "join()"),
    ),
    "semi join of streams": Refused(
        "known only when all of the other stream was read",
        "read the other side as a table",
        Text(
            "SELECT t.k, t.s FROM STREAM t LEFT SEMI JOIN STREAM u ON t.k = u.k",
            "JOIN STREAM",
            "LEFT SEMI JOIN",
        ),
        Text(chain(STREAM, f'.join({OTHER}, "k", "left_semi")'), ".join", "join()"),
    ),
    "anti join of streams": Refused(
        "known only when all of the other stream was read",
        "read the other side as a table",
        Text(
            "SELECT t.k, t.s FROM STREAM t LEFT ANTI JOIN STREAM u ON t.k = u.k",
            "JOIN STREAM",
            "LEFT ANTI JOIN",
        ),
        Text(chain(STREAM, f'.join({OTHER}, "k", "left_anti")'), ".join", "join()"),
    ),
    "time window without watermark": Refused(
        "a time window needs a watermark",
        "set one on the column below",
        Text("SELECT k, s, window(ts, '5 minutes') AS w FROM STREAM t", "window(", "window()"),
        Text(
            chain(STREAM, '.withColumn("w", sf.window("ts", "5 minutes"))'),
            ".withColumn",
            "window()",
        ),
    ),
    "session window without watermark": Refused(
        "a time window needs a watermark",
        "set one on the column below",
        Text(
            "SELECT k, s, session_window(ts, '5 minutes') AS w FROM STREAM t",
            "session_window(",
            "session_window()",
        ),
        Text(
            chain(STREAM, '.select("k", sf.session_window("ts", "5 minutes"))'),
            ".select",
            "session_window()",
        ),
    ),
    "duplicates within no watermark": Refused(
        "no watermark says how long a row is remembered",
        "dropDuplicates()",
        python=Text(
            chain(STREAM, '.dropDuplicatesWithinWatermark(["k"])'),
            ".dropDuplicatesWithin",
            "dropDuplicatesWithinWatermark()",
        ),
    ),
    "subquery over a stream": Refused(
        IN_FROM,
        "join the stream in FROM",
        Text(
            "SELECT k, s FROM STREAM t WHERE k IN (SELECT k FROM STREAM u)",
            "SELECT k FROM STREAM u",
            "A subquery",
        ),
        Text(
            chain(STREAM, f'.where(sf.col("k").isin({OTHER}.select("k")))'), ".where", "A subquery"
        ),
    ),
    "correlated subquery over a stream": Refused(
        IN_FROM,
        "join the stream in FROM",
        Text(
            "SELECT k, s FROM STREAM t WHERE EXISTS (SELECT 1 FROM STREAM u WHERE u.k = t.k)",
            "SELECT 1 FROM STREAM u",
            "A subquery",
        ),
        Text(
            chain(
                STREAM,
                '.alias("a")',
                f'.where({OTHER}.where(sf.col("k") == sf.col("a.k").outer()).exists())',
            ),
            ".where",
            "A subquery",
        ),
    ),
    "lateral subquery": Refused(
        "a subquery that refers to the stream's rows is not followed",
        "use explode()",
        Text("SELECT t.k, x.s FROM STREAM t, LATERAL (SELECT t.s) AS x", "t.s", "LATERAL"),
        Text(chain(STREAM, f'.lateralJoin({TABLE}.select("v"))'), ".lateralJoin", "lateralJoin()"),
    ),
    "IN as a value": Refused(
        "the engine knows it only as a condition of WHERE",
        "write EXISTS",
        Text(
            "SELECT k IN (SELECT k FROM w) AS k, s FROM STREAM t",
            "SELECT k FROM w",
            "IN with a subquery",
        ),
        Text(
            chain(STREAM, f'.withColumn("x", sf.col("k").isin({TABLE}.select("k")))'),
            ".withColumn",
            "IN with a subquery",
        ),
    ),
    "numbers of rows": Refused(
        "its numbers begin again with every batch",
        "use uuid()",
        Text(
            "SELECT k, monotonically_increasing_id() AS s FROM STREAM t",
            "monotonically_increasing_id",
            "monotonically_increasing_id()",
        ),
        Text(
            chain(STREAM, '.withColumn("s", sf.monotonically_increasing_id())'),
            ".withColumn",
            "monotonically_increasing_id()",
        ),
    ),
    "function over groups": Refused(
        "the rows of a group come in several batches",
        "materialized view",
        python=Text(
            chain(STREAM, '.groupBy("k")', '.applyInPandas(lambda rows: rows, "k STRING, s INT")'),
            ".applyInPandas",
            "applyInPandas()",
        ),
    ),
    "function with state": Refused(
        "state that a function of your own keeps between batches",
        "DISTINCT, a join of two streams or a time window",
        python=Text(
            chain(
                STREAM,
                '.groupBy("k")',
                ".applyInPandasWithState(",
                '    lambda key, rows, state: rows, "k STRING", "n INT", "append", "NoTimeout"',
                ")",
            ),
            ".applyInPandasWithState",
            "applyInPandasWithState()",
        ),
    ),
    "processor with state": Refused(
        "state that a function of your own keeps between batches",
        "DISTINCT, a join of two streams or a time window",
        python=Text(
            chain(
                STREAM,
                '.groupBy("k")',
                '.transformWithStateInPandas(Processor(), "k STRING", "append", "None")',
            ),
            ".transformWithStateInPandas",
            "transformWithStateInPandas()",
        ),
    ),
    "observed figures": Refused(
        "its figures could not be asked for",
        "count rows with expectations",
        python=Text(chain(STREAM, '.observe("figures", sf.count("*"))'), ".observe", "observe()"),
    ),
    "what nobody knows": Refused(
        "millpond does not know what it means over a stream",
        "materialized view",
        Text("SELECT t.k, t.s FROM STREAM t RIGHT SEMI JOIN w ON t.k = w.k", "JOIN", "RIGHT SEMI"),
        Text(chain(STREAM, ".transpose()"), ".transpose", "transpose()"),
    ),
}
