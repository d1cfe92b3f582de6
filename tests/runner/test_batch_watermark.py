"""A watermark over a table that is no stream means nothing, as in Spark."""

from __future__ import annotations


def test_with_watermark_over_a_table_changes_nothing(folder):
    folder.feed("orders", [{"id": 1, "at": "2026-01-01"}, {"id": 2, "at": "2026-01-02"}])
    folder.write(
        "counts.py",
        """
        from pyspark import pipelines as dp

        @dp.materialized_view
        def counts():
            orders = spark.read.table("orders").selectExpr("id", "CAST(at AS TIMESTAMP) AS at")
            return orders.withWatermark("at", "1 minute").where(orders.id > 1).select("id")
        """,
    )
    assert not folder.run().problems
    assert folder.rows("counts") == [(2,)]
