"""One row a day, from the flights as they stand."""

from pyspark import pipelines as dp
from pyspark.sql import functions as sf


@dp.materialized_view(comment="Flights and delays of each day")
def days():
    return (
        spark.read.table("flights")
        .groupBy("year", "month", "day", "sent_at")
        .agg(
            sf.count("*").alias("flights"),
            sf.count("arr_delay").alias("landed"),
            sf.round(sf.avg("arr_delay"), 2).alias("mean_delay_minutes"),
        )
    )
