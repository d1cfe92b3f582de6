"""Queries for every line of the table of refusals in docs/queries.md."""

from __future__ import annotations

from tests.shapes.documented import Example

_ORDERS = "STREAM orders WATERMARK ordered DELAY OF INTERVAL 10 MINUTES AS o"
_PAYMENTS = "STREAM payments WATERMARK paid DELAY OF INTERVAL 5 MINUTES AS p"
_STREAM = 'spark.readStream.table("orders")'


def _sql(code: str) -> Example:
    return Example("refused", "sql", code)


def _python(code: str) -> Example:
    return Example("refused", "python", _STREAM + code)


def _replacing(query: str) -> Example:
    head = "CREATE STREAMING TABLE t FLOW REPLACE USING (customer) SEQUENCE BY n BY NAME"
    return Example("refused", "sql", f"{head} {query};")


_WINDOWED = f"FROM {_ORDERS} GROUP BY customer, window(ordered, '5 minutes')"

REFUSALS: dict[str, list[Example]] = {
    "`sum(..)`, `count(*)`, `HAVING` without groups": [
        _sql("SELECT sum(id) AS total FROM STREAM orders"),
        _sql(f"SELECT count(*) AS n FROM {_ORDERS}"),
        _sql("SELECT 1 AS one FROM STREAM orders HAVING count(*) > 1"),
    ],
    "`GROUP BY` without a watermark, or by no time": [
        _sql("SELECT customer, count(*) AS n FROM STREAM orders GROUP BY customer"),
        _sql(f"SELECT customer, count(*) AS n FROM {_ORDERS} GROUP BY customer"),
        _python('.groupBy("customer").count()'),
    ],
    "`GROUP BY` in a REPLACE USING flow, of any kind": [
        _replacing(f"SELECT customer, max(id) AS n {_WINDOWED}"),
        _replacing(f"SELECT customer, max(id) AS n FROM {_ORDERS} GROUP BY customer, ordered"),
    ],
    "`ROLLUP`, `CUBE`, `GROUPING SETS`, `PIVOT`": [
        _sql(f"SELECT customer, count(*) AS n FROM {_ORDERS} GROUP BY {grouping}")
        for grouping in (
            "ROLLUP (customer, ordered)",
            "CUBE (customer, ordered)",
            "GROUPING SETS ((customer), (customer, ordered))",
        )
    ]
    + [_python('.groupBy("customer").pivot("id", [1]).count()')],
    "`window(..)` without a watermark": [
        _sql("SELECT id, window(ordered, '5 minutes') AS w FROM STREAM orders"),
        _python('.select("id", sf.window("ordered", "5 minutes"))'),
    ],
    "`ROW_NUMBER() OVER (..)` and all other window functions, `QUALIFY`": [
        _sql(f"SELECT id, row_number() OVER (ORDER BY ordered) AS n FROM {_ORDERS}"),
        _sql("SELECT id, sum(id) OVER (PARTITION BY customer) AS n FROM STREAM orders"),
        _sql("SELECT id FROM STREAM orders QUALIFY rank() OVER (ORDER BY id) = 1"),
    ],
    "`ORDER BY`, `SORT BY`": [
        _sql("SELECT id FROM STREAM orders ORDER BY id"),
        _sql("SELECT id FROM STREAM orders SORT BY id"),
        _python('.orderBy("id")'),
    ],
    "`OFFSET`, `TABLESAMPLE`": [
        _sql("SELECT id FROM STREAM orders LIMIT 5 OFFSET 1"),
        _sql("SELECT id FROM STREAM orders TABLESAMPLE (5 PERCENT)"),
        _python(".sample(0.5)"),
    ],
    "`UNION` without `ALL`": [
        _sql("SELECT id FROM STREAM orders UNION SELECT order_id FROM STREAM payments"),
    ],
    "`UNION ALL` of a stream and a table": [
        _sql("SELECT customer FROM STREAM orders UNION ALL SELECT customer FROM customers"),
        _python('.select("customer").union(spark.read.table("customers").select("customer"))'),
    ],
    "`INTERSECT`, `EXCEPT`, `MINUS`": [
        _sql(f"SELECT customer FROM STREAM orders {operation} SELECT customer FROM customers")
        for operation in ("INTERSECT", "EXCEPT", "MINUS")
    ],
    "`RIGHT JOIN` and `FULL JOIN` with a table, `LEFT JOIN` with the stream on the right": [
        _sql("SELECT id, city FROM STREAM orders RIGHT JOIN customers USING (customer)"),
        _sql("SELECT id, city FROM STREAM orders FULL JOIN customers USING (customer)"),
        _sql("SELECT id, city FROM customers LEFT JOIN STREAM orders USING (customer)"),
    ],
    "`LEFT JOIN` of streams without watermarks or without a range of time; `RIGHT JOIN` and "
    "`FULL JOIN`, too": [
        _sql(f"SELECT o.id, p.method FROM {left} {how} JOIN {right} ON o.id = p.order_id")
        for how in ("LEFT", "RIGHT", "FULL")
        for left, right in (
            ("STREAM orders AS o", "STREAM payments AS p"),
            (_ORDERS, _PAYMENTS),
        )
    ],
    "`LEFT SEMI JOIN` and `LEFT ANTI JOIN` of streams": [
        _sql(f"SELECT id FROM STREAM orders AS o LEFT {kind} JOIN STREAM payments ON id = order_id")
        for kind in ("SEMI", "ANTI")
    ],
    "`JOIN` of streams without an equality": [
        _sql("SELECT id, method FROM STREAM orders JOIN STREAM payments ON paid > ordered"),
        _sql("SELECT id, method FROM STREAM orders CROSS JOIN STREAM payments"),
    ],
    "`WHERE .. IN (SELECT .. FROM STREAM ..)` and other subqueries over a stream outside of "
    "`FROM`": [
        _sql("SELECT id FROM STREAM orders WHERE id IN (SELECT order_id FROM STREAM payments)"),
        _sql("SELECT id FROM STREAM orders WHERE EXISTS (SELECT 1 FROM STREAM payments)"),
    ],
    "`dropDuplicatesWithinWatermark()` without a watermark": [
        _python('.dropDuplicatesWithinWatermark(["id"])'),
    ],
    "`applyInPandas()`, `applyInPandasWithState()`, `transformWithState()`": [
        _python('.groupBy("id").applyInPandas(lambda rows: rows, "id LONG")'),
        _python(
            '.groupBy("id").applyInPandasWithState(lambda key, rows, state: rows, "id LONG", '
            '"n INT", "append", "NoTimeout")'
        ),
    ],
    "`monotonically_increasing_id()`": [
        _sql("SELECT id, monotonically_increasing_id() AS n FROM STREAM orders"),
    ],
}
