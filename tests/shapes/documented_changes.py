"""Queries before and after, for every line of the table of changes in docs/state.md.

Between the two the table of orders gets a column.
"""

from __future__ import annotations

_ORDERS = (
    "(SELECT id, customer, ordered FROM STREAM orders "
    "WATERMARK ordered DELAY OF INTERVAL 10 MINUTES) AS o"
)
_PAYMENTS = "(SELECT * FROM STREAM payments WATERMARK paid DELAY OF INTERVAL 5 MINUTES) AS p"
_EACH = "SELECT DISTINCT customer FROM STREAM orders"
_JOIN = "SELECT o.id, p.method FROM (SELECT id, customer FROM STREAM orders) AS o JOIN STREAM payments AS p ON o.id = p.order_id"
_TIMED = (
    f"SELECT o.id, p.method FROM {_ORDERS} JOIN {_PAYMENTS} "
    "ON o.id = p.order_id AND paid BETWEEN ordered AND ordered + INTERVAL 10 MINUTES"
)
_WINDOW = f"SELECT window.start AS begins, count(*) AS n FROM {_ORDERS} GROUP BY window(ordered, '10 minutes')"
_SESSION = f"SELECT session_window.start AS begins, count(*) AS n FROM {_ORDERS} GROUP BY customer, session_window(ordered, '5 minutes')"
# They have all columns of the orders.
_ALL_EACH = "SELECT DISTINCT * FROM STREAM orders"
_ALL_JOIN = (
    "SELECT o.id, p.method FROM STREAM orders AS o JOIN STREAM payments AS p ON o.id = p.order_id"
)
_ALL_WINDOW = _WINDOW.replace(
    _ORDERS, "STREAM orders WATERMARK ordered DELAY OF INTERVAL 10 MINUTES"
)
_ORDER_IDS = "SELECT id FROM STREAM orders"
_PAID_IDS = "SELECT order_id AS id FROM STREAM payments"
_LIMIT = "SELECT id FROM STREAM orders LIMIT 5"

CHANGES: dict[str, list[tuple[str, str]]] = {
    "filters above or below an operator, columns above it, expressions below it": [
        (_EACH, f"{_EACH} WHERE id > 3"),
        (_EACH, f"SELECT upper(customer) AS customer, 1 AS one FROM ({_EACH})"),
        (_JOIN, f"{_JOIN} WHERE p.method = 'card'"),
        (_JOIN, _JOIN.replace("SELECT o.id,", "SELECT o.id, o.customer,")),
    ],
    "aggregate functions, `HAVING`, more keys beside a window": [
        (_WINDOW, _WINDOW.replace("count(*)", "sum(id)")),
        (_WINDOW, f"{_WINDOW} HAVING count(*) > 1"),
        (_WINDOW, f"{_WINDOW}, customer"),
    ],
    "the delay of a watermark": [
        (_WINDOW, _WINDOW.replace("INTERVAL 10", "INTERVAL 20")),
        (_TIMED, _TIMED.replace("INTERVAL 5", "INTERVAL 1")),
    ],
    "one more stream in `UNION ALL`, a join with a table": [
        (_EACH, f"{_EACH} UNION ALL SELECT method FROM STREAM payments"),
        (_EACH, f"SELECT * FROM ({_EACH}) JOIN customers USING (customer)"),
        (
            f"SELECT DISTINCT id FROM ({_ORDER_IDS})",
            f"SELECT DISTINCT id FROM ({_ORDER_IDS} UNION ALL {_PAID_IDS})",
        ),
    ],
    "the order of the columns of a `DISTINCT`": [
        (
            "SELECT DISTINCT id, customer FROM STREAM orders",
            "SELECT DISTINCT customer, id FROM STREAM orders",
        ),
    ],
    "the columns of a `DISTINCT`, the number of a `LIMIT`": [
        (_EACH, "SELECT DISTINCT customer, id FROM STREAM orders"),
        (_EACH, "SELECT DISTINCT id FROM STREAM orders"),
        (_LIMIT, "SELECT id FROM STREAM orders LIMIT 6"),
    ],
    "kind or condition of a join of streams, as it is written": [
        (_JOIN, f"{_JOIN} AND p.method = 'card'"),
        (_JOIN, _JOIN.replace("o.id = p.order_id", "p.order_id = o.id")),
        (_TIMED, _TIMED.replace(" JOIN ", " LEFT JOIN ")),
        (_TIMED, _TIMED.replace("+ INTERVAL 10", "+ INTERVAL 15")),
    ],
    "length or column of a window, gap or keys of a session": [
        (_WINDOW, _WINDOW.replace("'10 minutes'", "'5 minutes'")),
        (_SESSION, _SESSION.replace("'5 minutes'", "'6 minutes'")),
        (_SESSION, _SESSION.replace("GROUP BY customer", "GROUP BY upper(customer)")),
        (_SESSION, _SESSION.replace("GROUP BY customer", "GROUP BY id")),
    ],
    "an operator more or less, a watermark among them": [
        (_EACH, "SELECT customer FROM STREAM orders"),
        ("SELECT customer FROM STREAM orders", _EACH),
        (_EACH, f"SELECT DISTINCT customer FROM {_ORDERS}"),
        (_EACH, f"SELECT * FROM ({_EACH}) LIMIT 100"),
    ],
    "the stream that an operator reads, the sides of a join": [
        (
            f"SELECT DISTINCT * FROM ({_ORDER_IDS}) UNION ALL {_PAID_IDS}",
            f"{_ORDER_IDS} UNION ALL SELECT DISTINCT * FROM ({_PAID_IDS})",
        ),
        (
            f"SELECT a.id FROM ({_ORDER_IDS}) AS a JOIN ({_PAID_IDS}) AS b ON a.id = b.id",
            f"SELECT a.id FROM ({_PAID_IDS}) AS a JOIN ({_ORDER_IDS}) AS b ON a.id = b.id",
        ),
    ],
    "anything below one of several operators that keep the same columns of the same streams": [
        (
            f"{_EACH} WHERE id > 3 UNION ALL {_EACH} WHERE id <= 3",
            f"{_EACH} WHERE id <= 3 UNION ALL {_EACH} WHERE id > 3",
        ),
        (
            f"{_EACH} WHERE id > 3 UNION ALL {_EACH} WHERE id <= 3",
            f"{_EACH} WHERE id > 3 UNION ALL {_EACH} WHERE id <= 4",
        ),
    ],
    "a new column in a source, where an operator has all of its columns": [
        (query, query) for query in (_ALL_EACH, _ALL_JOIN, _ALL_WINDOW)
    ],
}
