"""A read of files, or of a source that has none, is found in a query with all that it asks for."""

import json

import pytest
from pyspark.sql.types import IntegerType, StructType

from millpond.engine.protocol import EmptyInput, TableRead
from millpond.errors.engine import (
    InvalidReadOptionError,
    UnresolvedColumnError,
    UnsupportedReadError,
    UnsupportedStreamingSourceError,
)
from tests.engine.queries import empty, plan, python, rows, sql, tables

FILES = "a INT, b STRING"


def shown(read):
    return read.format, read.paths, read.columns, read.streaming, dict(read.options)


IN_PYTHON = {
    "cloudFiles": (
        lambda spark: (
            spark.readStream.format("cloudFiles")
            .option("cloudFiles.format", "csv")
            .option("cloudFiles.allowOverwrites", True)
            .schema("a INT, b STRING")
            .load("/data")
        ),
        (
            "cloudfiles",
            ("/data",),
            "a INT, b STRING",
            True,
            {"cloudfiles.format": "csv", "cloudfiles.allowoverwrites": "true"},
        ),
    ),
    "csv stream": (
        lambda spark: spark.readStream.schema("a INT").csv("/data/*.csv", header=True),
        ("csv", ("/data/*.csv",), "a INT", True, {"header": "true"}),
    ),
    "json stream": (
        lambda spark: spark.readStream.format("JSON").load("s3://bucket/x"),
        ("json", ("s3://bucket/x",), None, True, {}),
    ),
    "path as an option": (
        lambda spark: spark.readStream.format("text").option("path", "/a").load(),
        ("text", ("/a",), None, True, {}),
    ),
    "several paths": (
        lambda spark: spark.read.format("parquet").load(["/a", "file:/b"]),
        ("parquet", ("/a", "file:/b"), None, False, {}),
    ),
    "csv": (
        lambda spark: spark.read.csv("/a", sep=";", schema="a INT"),
        ("csv", ("/a",), "a INT", False, {"sep": ";"}),
    ),
    "parquet": (
        lambda spark: spark.read.parquet("/a", "/b"),
        ("parquet", ("/a", "/b"), None, False, {}),
    ),
    "binary": (
        lambda spark: spark.read.format("binaryFile").load("/a"),
        ("binaryfile", ("/a",), None, False, {}),
    ),
    "avro": (
        lambda spark: spark.read.format("avro").load("/a"),
        ("avro", ("/a",), None, False, {}),
    ),
    "xml": (
        lambda spark: spark.read.format("xml").option("rowTag", "r").load("/a"),
        ("xml", ("/a",), None, False, {"rowtag": "r"}),
    ),
    "rate": (
        lambda spark: spark.readStream.format("rate").option("rowsPerSecond", 5).load(),
        ("rate", (), None, True, {"rowspersecond": "5"}),
    ),
    "kafka": (
        lambda spark: spark.readStream.format("kafka").option("subscribe", "t").load(),
        ("kafka", (), None, True, {"subscribe": "t"}),
    ),
    "text in Python": (
        lambda spark: spark.sql("SELECT * FROM STREAM read_files('/a', header => true)"),
        ("read_files", ("/a",), None, True, {"header": "true"}),
    ),
}


@pytest.mark.parametrize(("build", "expected"), IN_PYTHON.values(), ids=IN_PYTHON)
def test_reads_in_python(engine, spark, build, expected):
    found = plan(engine, python(lambda: build(spark)))
    (read,) = found.reads
    assert shown(read) == expected
    assert read.name == ()
    assert read.path is None
    assert read.location.file.endswith("test_file_reads.py")
    assert found.is_streaming == read.streaming


def test_columns_given_as_a_type_are_kept_as_json(engine, spark):
    schema = StructType().add("a", IntegerType())
    (read,) = plan(engine, python(lambda: spark.readStream.schema(schema).json("/a"))).reads
    assert StructType.fromJson(json.loads(read.columns)) == schema


def test_a_relative_path_starts_where_the_definition_was_made(engine, spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    build = python(lambda: spark.read.csv(["data/a.csv", "b/*.csv", "gs://c/d", "odd:name.csv"]))
    found = plan(engine, build)
    monkeypatch.chdir("/")
    assert found.reads[0].paths == (
        f"{tmp_path}/data/a.csv",
        f"{tmp_path}/b/*.csv",
        "gs://c/d",
        f"{tmp_path}/odd:name.csv",
    )


IN_SQL = {
    "stream": (
        "SELECT * FROM STREAM read_files('/a', format => 'csv', allowOverwrites => true)",
        ("read_files", ("/a",), None, True, {"format": "csv", "allowoverwrites": "true"}),
    ),
    "in parentheses": (
        "SELECT f.a FROM STREAM(read_files('/a', schema => 'a INT')) AS f",
        ("read_files", ("/a",), "a INT", True, {}),
    ),
    "in parentheses with spaces": (
        "SELECT f.a FROM STREAM ( READ_FILES ( '/a' ) ) f",
        ("read_files", ("/a",), None, True, {}),
    ),
    "batch": (
        "SELECT * FROM read_files(path => '/a', maxFilesPerTrigger => 3, x => -1.5, y => FALSE)",
        (
            "read_files",
            ("/a",),
            None,
            False,
            {"maxfilespertrigger": "3", "x": "-1.5", "y": "false"},
        ),
    ),
    "strings beside each other, escapes, a comma": (
        r"SELECT * FROM read_files('/a' '/b', sep => ',', quote => '\'', t => '\t') WHERE a > 1",
        ("read_files", ("/a/b",), None, False, {"sep": ",", "quote": "'", "t": "\t"}),
    ),
    "several lines and comments": (
        "SELECT *\nFROM STREAM read_files(\n  '/a', -- here\n  /* the */ header => true\n) AS f\n",
        ("read_files", ("/a",), None, True, {"header": "true"}),
    ),
    "a key with a dot": (
        "SELECT * FROM STREAM read_files('/a', cloudFiles.schemaHints => 'a INT')",
        ("read_files", ("/a",), None, True, {"cloudfiles.schemahints": "a INT"}),
    ),
    "with a watermark": (
        "SELECT * FROM STREAM read_files('/a') AS f WATERMARK ts DELAY OF INTERVAL 1 HOUR",
        ("read_files", ("/a",), None, True, {}),
    ),
    "with options behind": (
        "SELECT * FROM STREAM read_files('/a', header => true) WITH (maxBytesPerTrigger = '1m')",
        ("read_files", ("/a",), None, True, {"header": "true", "maxbytespertrigger": "1m"}),
    ),
    "in a subquery": (
        "SELECT a FROM (SELECT * FROM STREAM read_files('/a')) x WHERE a > 0",
        ("read_files", ("/a",), None, True, {}),
    ),
    "in an expression": (
        "SELECT * FROM range(3) WHERE id IN (SELECT a FROM read_files('/a'))",
        ("read_files", ("/a",), None, False, {}),
    ),
    "in a CTE of the function's name": (
        "WITH read_files AS (SELECT * FROM STREAM read_files('/a')) SELECT * FROM read_files",
        ("read_files", ("/a",), None, True, {}),
    ),
    "kafka": (
        "SELECT * FROM STREAM read_kafka(bootstrapServers => 'h:1', subscribe => 't')",
        ("kafka", (), None, True, {"bootstrapservers": "h:1", "subscribe": "t"}),
    ),
}


@pytest.mark.parametrize(("text", "expected"), IN_SQL.values(), ids=IN_SQL)
def test_reads_in_sql(engine, text, expected):
    (read,) = plan(engine, sql(text)).reads
    assert shown(read) == expected


def test_a_read_is_told_by_the_place_of_its_name(engine):
    text = "SELECT a\nFROM STREAM\n  read_files('/a')"
    (read,) = plan(engine, sql(text)).reads
    assert (read.location.line, read.location.column) == (3, 3)


def test_several_reads_come_in_order(engine):
    text = (
        "WITH x AS (SELECT a FROM STREAM read_files('/a')) "
        "SELECT x.a FROM x JOIN read_files('/b') f ON x.a = f.a "
        "UNION ALL SELECT a FROM STREAM t UNION ALL SELECT a FROM STREAM(read_files('/c'))"
    )
    found = plan(engine, sql(text))
    assert [(read.name, read.paths, read.streaming) for read in found.reads] == [
        ((), ("/a",), True),
        ((), ("/b",), False),
        (("t",), (), True),
        ((), ("/c",), True),
    ]


def test_a_table_may_be_called_as_the_function_is(engine):
    (read,) = plan(engine, sql("SELECT read_files.a FROM STREAM read_files")).reads
    assert (read.name, read.format) == (("read_files",), None)


QUERIES = {
    "no alias": ("SELECT * FROM read_files('/t')", [(1, "x"), (2, "y")]),
    "name of the function": ("SELECT read_files.a FROM read_files('/t')", [(1,), (2,)]),
    "names for its columns": (
        "SELECT * FROM read_files('/t') AS f(x, y) WHERE x > 1",
        [(2, "y")],
    ),
    "alias": ("SELECT f.b FROM STREAM(read_files('/t')) AS f WHERE f.a > 1", [("y",)]),
    "join": (
        "SELECT x.a, y.c FROM STREAM read_files('/t') x JOIN read_files('/u') y ON x.a = y.a",
        [(1, "p")],
    ),
    "union": (
        "SELECT a FROM read_files('/t') UNION ALL SELECT a FROM read_files('/u')",
        [(1,), (1,), (2,)],
    ),
    "cte": ("WITH f AS (SELECT * FROM read_files('/t')) SELECT max(a) AS m FROM f", [(2,)]),
    "sample before an alias": (
        "SELECT f.a FROM read_files('/t') TABLESAMPLE (100 PERCENT) AS f",
        [(1,), (2,)],
    ),
    "beside a table": (
        "SELECT t.a FROM t LEFT SEMI JOIN read_files('/u') AS u ON t.a = u.a",
        [(1,)],
    ),
}


def by_path(engine, folder):
    """A binder over two tables, each by its name or by the path of that name."""
    given = {
        "t": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
        "u": [{"a": 1, "c": "p"}],
    }
    bind = tables(engine, folder, **given)
    return lambda read: bind(
        read if read.name else TableRead(name=(read.paths[0].removeprefix("/"),))
    )


@pytest.mark.parametrize(("text", "expected"), QUERIES.values(), ids=QUERIES)
def test_files_are_bound_like_tables(engine, tmp_path, text, expected):
    bind = by_path(engine, tmp_path)
    found = plan(engine, sql(text), bind)
    batch = engine.stage(found, bind, folder=tmp_path / "out")
    assert rows(batch) == expected


def test_other_names_for_the_columns_of_files_are_kept(engine, tmp_path):
    bind = by_path(engine, tmp_path)
    found = plan(engine, sql("SELECT * FROM STREAM read_files('/t') AS f(x, y)"), bind)
    assert engine.stage(found, bind, folder=tmp_path / "out").schema.names == ["x", "y"]


REFUSED_IN_SQL = {
    "a computed value": (
        "SELECT * FROM read_files('/a', modifiedAfter => current_timestamp())",
        InvalidReadOptionError,
        "current_timestamp()",
    ),
    "a computed path": (
        "SELECT * FROM STREAM read_files(concat('/a', '/b'))",
        InvalidReadOptionError,
        "concat('/a', '/b')",
    ),
    "a map": (
        "SELECT * FROM read_files('/a', x => map('a', 1))",
        InvalidReadOptionError,
        "map('a', 1)",
    ),
    "null": ("SELECT * FROM read_files('/a', x => NULL)", InvalidReadOptionError, "NULL"),
    "two values in a row": ("SELECT * FROM read_files('/a', '/b')", InvalidReadOptionError, "'/b'"),
    "no value": ("SELECT * FROM read_files('/a', x =>)", InvalidReadOptionError, "x =>"),
    "no argument between commas": (
        "SELECT * FROM read_files('/a', , b => 1)",
        InvalidReadOptionError,
        ",",
    ),
    "twice": (
        "SELECT * FROM read_files('/a', header => true, Header => 1)",
        InvalidReadOptionError,
        "Header => 1",
    ),
    "two paths": (
        "SELECT * FROM read_files('/a', path => '/b')",
        InvalidReadOptionError,
        "path => '/b'",
    ),
    "a parameter": ("SELECT * FROM read_files(:path)", InvalidReadOptionError, ":path"),
    "no path": (
        "SELECT * FROM read_files(format => 'csv')",
        UnsupportedReadError,
        "read_files(format => 'csv')",
    ),
    "no arguments": ("SELECT * FROM STREAM read_files()", UnsupportedReadError, "read_files()"),
    "lateral": (
        "SELECT * FROM t, LATERAL read_files('/a')",
        UnsupportedReadError,
        "read_files",
    ),
    "another function": (
        "SELECT * FROM STREAM read_pulsar('/a')",
        UnsupportedStreamingSourceError,
        "read_pulsar",
    ),
    "stream of a CTE": (
        "WITH f AS (SELECT * FROM read_files('/a')) SELECT * FROM STREAM f",
        UnsupportedStreamingSourceError,
        "f",
    ),
}


@pytest.mark.parametrize(
    ("text", "error_class", "marked"), REFUSED_IN_SQL.values(), ids=REFUSED_IN_SQL
)
def test_what_is_wrong_in_a_call_is_shown(engine, text, error_class, marked):
    with pytest.raises(error_class) as caught:
        plan(engine, sql(text))
    *_, line, carets = caught.value.detail.split("\n")
    start = carets.index("^")
    assert line[start : start + carets.count("^")] == marked


REFUSED_IN_PYTHON = {
    "no path": (lambda spark: spark.readStream.format("csv").load(), UnsupportedReadError),
    "an empty path": (lambda spark: spark.read.format("csv").load(""), UnsupportedReadError),
    "a path beside the option": (
        lambda spark: spark.readStream.option("path", "/b").csv("/a"),
        UnsupportedReadError,
    ),
    "a path beside the option in a batch": (
        lambda spark: spark.read.format("json").option("PATH", "/b").load(["/a"]),
        UnsupportedReadError,
    ),
    "cloudFiles beside the option": (
        lambda spark: spark.readStream.format("cloudFiles").option("path", "/a").load("/a"),
        UnsupportedReadError,
    ),
    "cloudFiles as a batch": (
        lambda spark: spark.read.format("cloudFiles").load("/a"),
        UnsupportedReadError,
    ),
    "orc": (lambda spark: spark.read.orc("/a"), UnsupportedReadError),
    "rate as a batch": (lambda spark: spark.read.format("rate").load(), UnsupportedReadError),
    "orc as a stream": (
        lambda spark: spark.readStream.format("orc").load("/a"),
        UnsupportedStreamingSourceError,
    ),
}


@pytest.mark.parametrize(
    ("build", "error_class"), REFUSED_IN_PYTHON.values(), ids=REFUSED_IN_PYTHON
)
def test_reads_that_can_not_be_are_refused_where_they_stand(engine, spark, build, error_class):
    with pytest.raises(error_class) as caught:
        plan(engine, python(lambda: build(spark)))
    assert caught.value.where.file.endswith("test_file_reads.py")
    assert caught.value.hint


def test_a_misspelt_format_is_refused_with_the_one_meant(engine, spark):
    builds = {
        "cloudFiles": lambda: spark.readStream.format("cloudfile").load("/a"),
        "parquet": lambda: spark.read.format("parket").load("/a"),
    }
    for meant, build in builds.items():
        with pytest.raises((UnsupportedReadError, UnsupportedStreamingSourceError)) as caught:
            plan(engine, python(build))
        assert caught.value.hint == f"did you mean {meant}?"


@pytest.mark.parametrize("call", ["STREAM({})", "STREAM {}", "{}"])
def test_the_older_cloud_files_points_to_read_files(engine, call):
    text = "SELECT * FROM " + call.format("cloud_files('/a', 'json', map('a', 'b'))")
    with pytest.raises(UnsupportedReadError, match="cloud_files") as caught:
        plan(engine, sql(text))
    assert "read_files('/data/folder', format => 'json')" in caught.value.hint
    assert "^" * len("cloud_files") in caught.value.detail


def test_an_error_behind_a_call_is_shown_in_its_place(engine):
    text = "SELECT a FROM STREAM read_files('/a', header => true)\nWHERE wrong > 1"
    found = plan(engine, sql(text))
    schema = engine.parse_schema(FILES)
    with pytest.raises(UnresolvedColumnError) as caught:
        engine.schema(found, lambda _: EmptyInput(schema))
    assert (caught.value.where.line, caught.value.where.column) == (2, 7)


def test_a_stream_of_files_keeps_state(engine):
    text = (
        "SELECT window(ts, '1 hour') AS w, count(*) AS n "
        "FROM STREAM read_files('/a') WATERMARK ts DELAY OF INTERVAL 1 HOUR GROUP BY window(ts, '1 hour')"
    )
    bind = empty(engine, "a INT, ts TIMESTAMP")
    found = plan(engine, sql(text), bind)
    assert engine.schema(found, bind).names == ["w", "n"]
    assert engine.state(found, bind)
    (read,) = found.reads
    assert read.paths == ("/a",)
