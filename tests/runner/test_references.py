"""Above an operator with state, columns go by the names that they had: also by its own DataFrame's."""

from __future__ import annotations

import pytest

ORDERS = [{"k": 1, "v": "x"}, {"k": 1, "v": "x"}, {"k": 2, "v": None}]
PAYMENTS = [{"k": 1, "w": "x"}, {"k": 2, "w": None}]

QUERIES = {
    "distinct": "x = orders.distinct()\n    return x.select(x.k, x['v'])",
    "duplicates": "x = orders.dropDuplicates(['k'])\n    return x.select(x.k, orders.v)",
    "limited": "x = orders.distinct().limit(9)\n    return x.where(x.k > 0).select(x.k, x.v)",
    "watermarked": (
        "x = orders.withColumn('at', sf.timestamp_seconds('k')).withWatermark('at', '1 day')\n"
        "    return x.where(x.k > 0).select(x.k, x.v).distinct()"
    ),
    "joined": (
        "x = orders.distinct()\n    y = payments.distinct()\n"
        "    z = x.join(y, x.k == y.k)\n    return z.select(x.k, x.v)"
    ),
    "whole": "x = orders.distinct().join(payments, 'k')\n    return x.select(x.k, orders.v)",
}

PYTHON = """\
from pyspark import pipelines as dp
from pyspark.sql import functions as sf


@dp.table
def {name}():
    orders = spark.readStream.table("orders")
    payments = spark.readStream.table("payments")
    {query}
"""


@pytest.fixture
def fed(folder):
    folder.feed("orders", ORDERS)
    folder.feed("payments", PAYMENTS)
    return folder


def test_columns_are_named_by_the_dataframe_that_keeps_state(fed):
    for name, query in QUERIES.items():
        fed.write(f"{name}.py", PYTHON.format(name=name, query=query))
    assert fed.run().problems == ()
    for name in QUERIES:
        assert fed.rows(name) == [(1, "x"), (2, None)], name


def test_null_safe_keys_may_have_different_names(fed):
    fed.write(
        "joined.sql",
        """
        CREATE OR REFRESH STREAMING TABLE joined AS SELECT o.k, p.w
        FROM (SELECT DISTINCT * FROM STREAM orders) AS o
        JOIN STREAM payments AS p ON o.v <=> p.w;
        """,
    )
    assert fed.run().problems == ()
    assert fed.rows("joined") == [(1, "x"), (2, None)]


def test_a_column_of_using_may_have_two_types(fed):
    """A row without a match has the type of its own side: it comes out with that of the join."""
    fed.write(
        "joined.sql",
        """
        CREATE TEMPORARY VIEW few AS
        SELECT CAST(k AS INT) AS k, timestamp_seconds(k) AS at, v FROM STREAM orders;

        CREATE TEMPORARY VIEW many AS
        SELECT k + 1 AS k, timestamp_seconds(k + 1) AS at, w FROM STREAM payments
        UNION ALL SELECT 100000, timestamp_seconds(100000), w FROM STREAM payments;

        CREATE OR REFRESH STREAMING TABLE joined AS SELECT k, v, w
        FROM STREAM few WATERMARK at DELAY OF INTERVAL 0 SECONDS
        FULL JOIN STREAM many WATERMARK at DELAY OF INTERVAL 0 SECONDS USING (k, at);
        """,
    )
    fed.run()
    fed.feed("orders", [{"k": 1000, "v": "y"}])
    result = fed.run()
    assert [flow.error for flow in result.flows] == [None]
    assert fed.rows("joined") == [
        (1, "x", None),
        (1, "x", None),
        (1000, "y", None),
        (2, None, "x"),
        (3, None, None),
    ]
