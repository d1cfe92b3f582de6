"""While source files are read, queries can be built and analysed; nothing runs and nothing changes."""

import inspect
import os

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from millpond.engine.protocol import EmptyInput
from millpond.errors.engine import (
    OperationNotAllowedError,
    QueryFunctionError,
    QueryFunctionResultError,
    UnresolvedColumnError,
    UnsupportedReadError,
    UnsupportedStreamingSourceError,
)
from millpond.errors.names import InvalidNameError
from tests.engine.queries import empty, plan, python

REFUSED = {
    "collect()": lambda spark: spark.table("t").collect(),
    "count()": lambda spark: spark.table("t").count(),
    "show()": lambda spark: spark.table("t").show(),
    "first()": lambda spark: spark.table("t").first(),
    "cloneSession()": lambda spark: spark.cloneSession(),
    "interruptAll()": lambda spark: spark.interruptAll(),
    "release_session()": lambda spark: spark.client.release_session(),
    "toPandas()": lambda spark: spark.table("t").toPandas(),
    "toLocalIterator()": lambda spark: [*spark.table("t").toLocalIterator()],
    "isEmpty()": lambda spark: spark.table("t").isEmpty(),
    "saveAsTable()": lambda spark: spark.table("t").write.saveAsTable("x"),
    "parquet()": lambda spark: spark.table("t").write.parquet("/x"),
    "append()": lambda spark: spark.table("t").writeTo("x").append(),
    "start()": lambda spark: spark.readStream.table("t").writeStream.format("noop").start(),
    "toTable()": lambda spark: spark.readStream.table("t").writeStream.toTable("x"),
    "createOrReplaceTempView()": lambda spark: spark.table("t").createOrReplaceTempView("x"),
    "cache()": lambda spark: spark.table("t").cache(),
    "checkpoint()": lambda spark: spark.table("t").checkpoint(),
    "inputFiles()": lambda spark: spark.table("t").inputFiles(),
    "listTables()": lambda spark: spark.catalog.listTables(),
    "tableExists()": lambda spark: spark.catalog.tableExists("t"),
    "setCurrentCatalog()": lambda spark: spark.catalog.setCurrentCatalog("x"),
    "spark.conf.set()": lambda spark: spark.conf.set("my.key", "x"),
    "spark.conf.unset()": lambda spark: spark.conf.unset("my.key"),
    "spark.sql('CREATE TABLE' ...)": lambda spark: spark.sql("CREATE TABLE x (a INT)"),
    "spark.sql('drop table' ...)": lambda spark: spark.sql("drop table x"),
    "spark.stop()": lambda spark: spark.stop(),
    "addArtifacts()": lambda spark: spark.addArtifacts("x.py", pyfile=True),
}


@pytest.mark.parametrize("operation", REFUSED)
def test_what_runs_or_changes_something_is_refused(engine, spark, operation):
    call = REFUSED[operation]
    with pytest.raises(OperationNotAllowedError) as caught:
        plan(engine, python(lambda: call(spark)))
    assert operation in caught.value.what
    _, line = inspect.getsourcelines(call)
    assert caught.value.where.line == line


def test_it_is_refused_outside_query_functions_as_well(engine, spark):
    with pytest.raises(OperationNotAllowedError, match="count"):
        spark.range(3).count()
    assert spark.conf.get("my.key") == "my value"


def test_schemas_are_those_of_the_bound_tables(engine, spark):
    seen = {}

    def function():
        rows = spark.readStream.table("s.t")
        seen["columns"] = rows.columns
        seen["types"] = dict(rows.dtypes)
        seen["attribute"] = rows["k"]
        seen["streaming"] = (rows.isStreaming, spark.table("u").isStreaming)
        seen["sql"] = spark.sql("SELECT k, s AS text FROM STREAM(t)").columns
        rows.printSchema()
        rows.explain()
        return rows.select(rows["k"], rows.k.alias("again"))

    found = plan(engine, python(function))
    assert seen["columns"] == ["k", "v", "s", "xs", "ts"]
    assert seen["types"]["xs"] == "array<int>"
    assert seen["streaming"] == (True, False)
    assert seen["sql"] == ["k", "text"]
    assert engine.schema(found, empty(engine)).names == ["k", "again"]


def test_the_binder_is_asked_only_while_the_definition_is_open(engine, spark):
    with pytest.raises(OperationNotAllowedError, match="outside a query function"):
        _ = spark.table("t").columns
    assert spark.range(3).columns == ["id"]


def test_definitions_may_nest(engine, spark):
    outer = engine.parse_schema("a INT")
    inner = engine.parse_schema("b INT")
    with engine.defining(lambda _: EmptyInput(outer)):
        with engine.defining(lambda _: EmptyInput(inner)):
            assert spark.table("t").columns == ["b"]
        assert spark.table("t").columns == ["a"]


def test_the_configuration_of_the_pipeline_is_seen(engine, spark):
    assert spark.conf.get("my.key") == "my value"
    assert spark.conf.get("no.such.key", "default") == "default"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_the_active_session_is_the_pipelines_while_its_code_runs(engine):
    seen = {}

    def function():
        seen["active"] = SparkSession.getActiveSession()
        seen["built"] = SparkSession.builder.appName("mine").config("a", "b").getOrCreate()
        seen["address"] = os.environ["SPARK_REMOTE"]
        return seen["built"].table("t")

    before = SparkSession.getActiveSession()
    plan(engine, python(function))
    assert seen["active"] is engine.session
    assert seen["built"] is engine.session
    # Not the server's: a session made by its address could run and write.
    assert seen["address"] == "sc://localhost"
    assert SparkSession.getActiveSession() is before


def test_registered_functions_are_known_to_the_engine(engine, spark, tmp_path):
    spark.udf.register("plus_seven", lambda number: number + 7, "INT")
    found = plan(engine, python(lambda: spark.range(2).selectExpr("plus_seven(int(id)) AS n")))
    staged = engine.stage(found, empty(engine), folder=tmp_path / "rows")
    assert staged.schema.simpleString() == "struct<n:int>"
    again = engine.query("SELECT plus_seven(1) AS n", empty(engine))
    assert again.to_pylist() == [{"n": 8}]


def test_functions_made_by_decorators_can_be_registered(engine, spark):
    @sf.pandas_udf("int")
    def plus_one(numbers: pd.Series) -> pd.Series:
        return numbers + 1

    @sf.udtf(returnType="n INT")
    class Count:
        def eval(self, until: int):
            yield from ((number,) for number in range(until))

    spark.udf.register("plus_one", plus_one)
    spark.udtf.register("count_to", Count)
    found = engine.query("SELECT plus_one(n) AS n FROM count_to(2)", empty(engine))
    assert found.to_pylist() == [{"n": 1}, {"n": 2}]


def test_an_exception_keeps_its_cause_and_names_the_line(engine):
    def function():
        numbers = {}
        return numbers["missing"]  # here

    with pytest.raises(QueryFunctionError, match="function raised KeyError: 'missing'") as caught:
        plan(engine, python(function))
    assert isinstance(caught.value.__cause__, KeyError)
    lines, first = inspect.getsourcelines(function)
    assert "# here" in lines[caught.value.where.line - first]


def test_errors_of_millpond_pass_through(engine, spark):
    with pytest.raises(InvalidNameError):
        plan(engine, python(lambda: spark.table("a..b")))


@pytest.mark.parametrize(("value", "shown"), [(None, "nothing"), ("text", "type str")])
def test_a_function_must_return_a_dataframe(engine, value, shown):
    with pytest.raises(QueryFunctionResultError, match=shown):
        plan(engine, python(lambda: value))


def test_a_wrong_column_is_found_at_its_line(engine, spark):
    def early():
        return spark.table("t").select("kk").select(sf.col("kk")).drop(*spark.table("t").columns)

    def asks():
        return spark.table("t").select("kk").columns

    with pytest.raises(UnresolvedColumnError, match="kk"):
        plan(engine, python(asks))
    with pytest.raises(UnresolvedColumnError, match="kk") as caught:
        engine.schema(plan(engine, python(early)), empty(engine))
    assert caught.value.where.line == inspect.getsourcelines(early)[1] + 1
    assert "did you mean k?" in caught.value.hint


READS = {
    "table": (lambda spark: spark.table("a.b"), ("a", "b"), None, False, {}),
    "read.table": (
        lambda spark: spark.read.option("versionAsOf", 2).table("`x y`.c.d"),
        ("x y", "c", "d"),
        None,
        False,
        {"versionasof": "2"},
    ),
    "readStream.table": (
        lambda spark: spark.readStream.option("skipChangeCommits", True).table("t"),
        ("t",),
        None,
        True,
        {"skipchangecommits": "true"},
    ),
    "delta path": (
        lambda spark: spark.read.format("delta").load("/data/x y"),
        (),
        "/data/x y",
        False,
        {},
    ),
    "delta path as an option": (
        lambda spark: spark.read.format("delta").option("path", "/d").load(),
        (),
        "/d",
        False,
        {},
    ),
    "stream of a delta path": (
        lambda spark: (
            spark.readStream.format("delta")
            .options(startingVersion=3, maxFilesPerTrigger="2")
            .load("/d")
        ),
        (),
        "/d",
        True,
        {"startingversion": "3", "maxfilespertrigger": "2"},
    ),
    "the default format": (lambda spark: spark.read.load("/d"), (), "/d", False, {}),
    "a path as a name": (lambda spark: spark.read.table("delta.`/d/e`"), (), "/d/e", False, {}),
    "legacy prefix": (lambda spark: spark.table("LIVE.t"), ("t",), None, False, {}),
}


@pytest.mark.parametrize(
    ("build", "name", "path", "streaming", "options"), READS.values(), ids=READS
)
def test_reads_in_python(engine, spark, build, name, path, streaming, options):
    (read,) = plan(engine, python(lambda: build(spark))).reads
    assert (read.name, read.path, read.streaming) == (name, path, streaming)
    assert dict(read.options) == options
    assert read.location.file.endswith("test_definition_guard.py")
    assert read.location.line >= inspect.getsourcelines(build)[1]
    if name:
        assert (read.catalog, read.schema) == ("main", "sales")


def test_reads_come_in_order_and_from_text_as_well(engine, spark):
    def function():
        left = spark.readStream.table("a").join(spark.table("b"), "k")
        right = spark.sql("SELECT * FROM {c} JOIN d USING (k)", c=spark.readStream.table("c"))
        return left.select("k").union(right.select("k"))

    found = plan(engine, python(function))
    shown = [(read.name, read.streaming) for read in found.reads]
    assert shown == [(("a",), True), (("b",), False), (("d",), False), (("c",), True)]


@pytest.mark.parametrize("name", ["orc", "socket", "kinesis"])
def test_streams_of_other_formats_are_refused(engine, spark, name):
    def function():
        return spark.readStream.format(name).schema("a INT").load("/x")

    with pytest.raises(UnsupportedStreamingSourceError, match=name.lower()):
        plan(engine, python(function))


@pytest.mark.parametrize(
    "build",
    [
        lambda spark: spark.read.format("jdbc").load(),
        lambda spark: spark.read.table("a.b.c.d"),
        lambda spark: spark.read.format("delta").load(["/a", "/b"]),
        lambda spark: spark.read.format("delta").schema("a INT").load("/a"),
        lambda spark: spark.read.option("readChangeFeed", "true").table("t"),
        lambda spark: spark.read.option("timestampAsOf", "2026-01-01").table("t"),
        lambda spark: spark.readStream.option("readChangeFeed", "true").table("t"),
    ],
)
def test_reads_that_can_not_be_followed_are_refused(engine, spark, build):
    with pytest.raises(UnsupportedReadError) as caught:
        plan(engine, python(lambda: build(spark)))
    assert caught.value.where.file.endswith("test_definition_guard.py")
