"""A user's file in which every form of the API is used as it is meant: type checkers accept it."""

# ruff: noqa: F821, N812 - what pipelines' authors write; the linter does not see that spark is set

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millpond import pipelines as dp

spark: SparkSession


@dp.table
def bare() -> DataFrame:
    return spark.readStream.table("a")


@dp.table()
def empty() -> DataFrame:
    return dp.read_stream("a")


@dp.table(name="a.b.c", replace_using=["region"], sequence_by="version", private=True)
@dp.expect("positive", "amount > 0")
@dp.expect_or_drop("has id", "id IS NOT NULL")
@dp.expect_or_fail("known", "currency IN ('EUR')")
@dp.expect_all({"a": "b"})
@dp.expect_all_or_drop({"c": "d"})
@dp.expect_all_or_fail({"e": "f"})
def replaced() -> DataFrame:
    return spark.readStream.table("a")


@dp.table(replace_using=["region"], sequence_by=F.col("version"), schema="a INT")
def by_column() -> DataFrame:
    return spark.readStream.table("a")


@dp.materialized_view
def totals() -> DataFrame:
    return dp.read("bare")


@dp.materialized_view(refresh_policy="auto", cluster_by=["a"], table_properties={"a": "b"})
def clustered() -> DataFrame:
    return spark.table("bare")


@dp.temporary_view
def recent() -> DataFrame:
    return spark.table("bare")


@dp.view(comment="The old name")
def older() -> DataFrame:
    return spark.table("bare")


dp.create_streaming_table("target", expect_all_or_drop={"has id": "id IS NOT NULL"})


@dp.append_flow(target="target", once=True)
def backfill() -> DataFrame:
    return spark.table("bare")


@dp.replace_flow(target="target", replace_using=["id"], sequence_by="version", name="changes")
def more() -> DataFrame:
    return spark.readStream.table("a")
