"""`_metadata` of files is there where a query names it, and in no star, no schema and no row else."""

import duckdb
import pytest
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from millpond.definitions import Expectation, ExpectationAction
from millpond.engine.protocol import EmptyInput, ParquetInput, PlanInput
from millpond.engine.sqltext.source import QueryText
from millpond.errors import MillpondError, SourceLocation
from millpond.errors.engine import (
    QueryAnalysisError,
    UnresolvedColumnError,
    UnsupportedReadError,
)
from millpond.files import METADATA_COLUMN, metadata_field
from millpond.state import FlowState
from millpond.storage import LocalStore
from tests.engine.queries import plan, python, rows, sql, tables

COLUMNS = {
    "/a": ("a INT, b STRING", "(1, 'x'), (2, 'y'), (2, 'y')"),
    "/c": ("k INT, c STRING", "(1, 'p'), (2, 'q')"),
    # Files that have a column of the name.
    "/own": ("a INT, _metadata STRING", "(1, 'mine'), (2, 'yours')"),
    "/timed": ("a INT, ts TIMESTAMP", "(1, TIMESTAMP '2026-01-01'), (2, TIMESTAMP '2026-01-01')"),
}
NAMES = {"/a": "a.csv", "/c": "c.csv", "/own": "own.csv", "/timed": "timed.csv"}


@pytest.fixture(scope="module")
def inputs(engine, tmp_path_factory):
    """For each path, rows with what is known of their file: a file of each name, of 10 bytes."""
    folder = tmp_path_factory.mktemp("files")
    found = {}
    for path, (columns, values) in COLUMNS.items():
        schema = engine.parse_schema(columns)
        file, name = folder / NAMES[path].replace("csv", "parquet"), NAMES[path]
        with duckdb.connect() as connection:
            connection.execute(
                f"""COPY (
                    SELECT *, {{
                        'file_path': 'file:///in/{name}', 'file_name': '{name}',
                        'file_size': 10::BIGINT, 'file_block_start': 0::BIGINT,
                        'file_block_length': 10::BIGINT,
                        'file_modification_time': TIMESTAMPTZ '2026-02-03 04:05:06+00'
                    }} AS {METADATA_COLUMN}
                    FROM (VALUES {values}) AS t({", ".join(schema.names)})
                ) TO '{file}'"""
            )
        found[path] = ParquetInput((str(file),), StructType([*schema.fields, metadata_field()]))
    found["t"] = tables(engine, folder, t=[{"i": 1, "z": "one"}])(_Named())
    return found


class _Named:
    name = ("t",)


@pytest.fixture
def bind(inputs):
    return lambda read: inputs[read.paths[0] if read.paths else "t"]


@pytest.fixture
def answer(engine, bind, tmp_path):
    """Plans a query, compares its columns with those of its rows, and gives both."""

    def answer(query, binder=bind):
        def without_rows(read):
            found = binder(read)
            return found if isinstance(found, PlanInput) else EmptyInput(found.schema, "source")

        found = plan(engine, query, without_rows)
        names = engine.schema(found, without_rows).names
        state = None
        if engine.state(found, without_rows):
            state = FlowState(tmp_path / "state", LocalStore()).begin(0)
        batch = engine.stage(found, binder, folder=tmp_path / "out", state=state)
        assert batch.schema.names == names
        return names, rows(batch)

    return answer


IN_SQL = {
    "not named": ("SELECT * FROM read_files('/a')", "a b", [(1, "x"), (2, "y"), (2, "y")]),
    "a field beside a star": (
        "SELECT *, _metadata.file_name AS f FROM STREAM read_files('/c')",
        "k c f",
        [(1, "p", "c.csv"), (2, "q", "c.csv")],
    ),
    "qualified": (
        "SELECT x.*, x._metadata.file_size FROM STREAM(read_files('/c')) x",
        "k c file_size",
        [(1, "p", 10), (2, "q", 10)],
    ),
    "by the function's name": (
        "SELECT read_files._metadata.file_size AS n, read_files.* FROM read_files('/c')",
        "n k c",
        [(10, 1, "p"), (10, 2, "q")],
    ),
    "in a filter alone": (
        "SELECT * FROM read_files('/a') WHERE _metadata.file_size > 10",
        "a b",
        [],
    ),
    "all of its fields": (
        "SELECT _metadata.* FROM read_files('/c') LIMIT 0",
        "file_path file_name file_size file_block_start file_block_length file_modification_time",
        [],
    ),
    "in other letters and quotes": (
        "SELECT `_METADATA`.File_Name AS f FROM read_files('/c') AS x WHERE x.`_metadata`.file_size = 10",
        "f",
        [("c.csv",), ("c.csv",)],
    ),
    "in a function": (
        "SELECT k, upper(_metadata.file_name) AS u, year(_metadata.file_modification_time) AS y FROM read_files('/c')",
        "k u y",
        [(1, "C.CSV", 2026), (2, "C.CSV", 2026)],
    ),
    "the star of a struct": (
        "SELECT struct(*) AS s, _metadata.file_name AS f FROM read_files('/c')",
        "s f",
        [({"k": 1, "c": "p"}, "c.csv"), ({"k": 2, "c": "q"}, "c.csv")],
    ),
    "count(*) and GROUP BY": (
        "SELECT _metadata.file_name AS f, count(*) AS n FROM read_files('/a') GROUP BY _metadata.file_name",
        "f n",
        [("a.csv", 3)],
    ),
    "DISTINCT": (
        "SELECT DISTINCT * FROM read_files('/a') WHERE _metadata.file_size = 10",
        "a b",
        [(1, "x"), (2, "y")],
    ),
    "DISTINCT over a stream": (
        "SELECT DISTINCT *, _metadata.file_name AS f FROM STREAM read_files('/a')",
        "a b f",
        [(1, "x", "a.csv"), (2, "y", "a.csv")],
    ),
    "UNION ALL": (
        "SELECT * FROM read_files('/a') WHERE _metadata.file_size = 10 UNION ALL SELECT * FROM read_files('/c')",
        "a b",
        [(1, "p"), (1, "x"), (2, "q"), (2, "y"), (2, "y")],
    ),
    "a subquery that gives it": (
        "SELECT _metadata.file_name AS f, k FROM (SELECT k, _metadata FROM read_files('/c')) x",
        "f k",
        [("c.csv", 1), ("c.csv", 2)],
    ),
    "a subquery whose star leaves it out": (
        "SELECT * FROM (SELECT *, _metadata.file_name AS f FROM read_files('/c')) x WHERE f <> ''",
        "k c f",
        [(1, "p", "c.csv"), (2, "q", "c.csv")],
    ),
    "a subquery or CTE that gives it beside files": (
        (
            "WITH m AS (SELECT 5 AS _metadata), read_files AS (SELECT 1 AS i) "
            "SELECT x.k, _metadata AS n FROM m CROSS JOIN read_files('/c') x "
            "UNION ALL SELECT y.k, _metadata FROM (SELECT 6 AS _metadata) z CROSS JOIN read_files('/c') y"
        ),
        "k n",
        [(1, 5), (1, 6), (2, 5), (2, 6)],
    ),
    "a CTE": (
        "WITH x AS (SELECT *, _metadata.file_size AS n FROM read_files('/c')) SELECT * FROM x",
        "k c n",
        [(1, "p", 10), (2, "q", 10)],
    ),
    "a join with a table": (
        "SELECT * FROM read_files('/c') x JOIN t ON x.k = t.i AND x._metadata.file_size = 10",
        "k c i z",
        [(1, "p", 1, "one")],
    ),
    "a join behind a table": (
        "SELECT * FROM t JOIN read_files('/c') ON k = i WHERE _metadata.file_size = 10",
        "i z k c",
        [(1, "one", 1, "p")],
    ),
    "a join in parentheses": (
        "SELECT * FROM (t JOIN read_files('/c') AS x ON k = i) WHERE x._metadata.file_size = 10",
        "i z k c",
        [(1, "one", 1, "p")],
    ),
    "a join of files": (
        (
            "SELECT *, x._metadata.file_name AS f, y._metadata.file_name AS g "
            "FROM STREAM read_files('/a') x JOIN read_files('/c') y ON a = k WHERE a = 1"
        ),
        "a b k c f g",
        [(1, "x", 1, "p", "a.csv", "c.csv")],
    ),
    "a join of files of which one is asked": (
        "SELECT a, y.*, y._metadata.file_name AS g FROM read_files('/a') x JOIN read_files('/c') y ON a = k WHERE a = 1",
        "a k c g",
        [(1, 1, "p", "c.csv")],
    ),
    "a semi join": (
        "SELECT * FROM t LEFT SEMI JOIN read_files('/c') x ON x.k = t.i AND x._metadata.file_size = 10",
        "i z",
        [(1, "one")],
    ),
    "LATERAL VIEW": (
        "SELECT *, _metadata.file_name AS f FROM read_files('/c') LATERAL VIEW explode(array(7, 8)) e AS n WHERE k = 1",
        "k c n f",
        [(1, "p", 7, "c.csv"), (1, "p", 8, "c.csv")],
    ),
    "a subquery in an expression": (
        "SELECT * FROM t WHERE i IN (SELECT k FROM read_files('/c') WHERE _metadata.file_size = 10)",
        "i z",
        [(1, "one")],
    ),
    "ORDER BY and a window": (
        (
            "SELECT *, row_number() OVER (PARTITION BY _metadata.file_name ORDER BY k) AS n "
            "FROM read_files('/c') ORDER BY _metadata.file_name"
        ),
        "k c n",
        [(1, "p", 1), (2, "q", 2)],
    ),
    "a join of streams": (
        (
            "SELECT *, x._metadata.file_name AS f, y._metadata.file_name AS g FROM STREAM read_files('/a') x "
            "JOIN STREAM read_files('/c') y ON x.a = y.k WHERE x._metadata.file_size = y._metadata.file_size AND a = 1"
        ),
        "a b k c f g",
        [(1, "x", 1, "p", "a.csv", "c.csv")],
    ),
    "a star of one side of a join of streams": (
        "SELECT y.*, y._metadata.file_name AS g FROM STREAM read_files('/a') x JOIN STREAM read_files('/c') y ON a = k WHERE a = 1",
        "k c g",
        [(1, "p", "c.csv")],
    ),
    "a stream with a watermark": (
        "SELECT *, _metadata.file_name AS f FROM STREAM read_files('/timed') WATERMARK ts DELAY OF INTERVAL 1 HOUR WHERE _metadata.file_size = 10 AND a = 1",
        "a ts f",
        None,
    ),
    "a watermark by it": (
        "SELECT a, _metadata.file_name AS f FROM STREAM read_files('/a') x WATERMARK CAST(_metadata.file_modification_time AS TIMESTAMP) AS at DELAY OF INTERVAL 1 HOUR",
        "a f",
        [(1, "a.csv"), (2, "a.csv"), (2, "a.csv")],
    ),
    "DISTINCT behind a watermark": (
        "SELECT DISTINCT _metadata.file_name AS f FROM STREAM read_files('/timed') x WATERMARK ts DELAY OF INTERVAL 1 HOUR",
        "f",
        [("timed.csv",)],
    ),
    "LATERAL VIEW behind a watermark": (
        (
            "SELECT a, n, _metadata.file_name AS f FROM STREAM read_files('/timed') x WATERMARK ts DELAY OF INTERVAL 1 HOUR "
            "LATERAL VIEW explode(array(7)) e AS n"
        ),
        "a n f",
        [(1, 7, "timed.csv"), (2, 7, "timed.csv")],
    ),
    "a static table of files beside a stream with a watermark": (
        (
            "SELECT a, y.*, y._metadata.file_name AS g FROM STREAM read_files('/timed') x WATERMARK ts DELAY OF INTERVAL 1 HOUR "
            "JOIN read_files('/c') y ON a = k"
        ),
        "a k c g",
        [(1, 1, "p", "c.csv"), (2, 2, "q", "c.csv")],
    ),
    "a column of the name": (
        "SELECT * FROM read_files('/own') WHERE _metadata = 'mine'",
        "a _metadata",
        [(1, "mine")],
    ),
    "a column of the name beside a star": (
        "SELECT *, upper(_metadata) AS u FROM STREAM read_files('/own') WHERE a = 1",
        "a _metadata u",
        [(1, "mine", "MINE")],
    ),
    "a column of the name in a join of streams": (
        "SELECT *, upper(x._metadata) AS u FROM STREAM read_files('/own') x JOIN STREAM read_files('/c') y ON a = k WHERE a = 1",
        "a _metadata k c u",
        [(1, "mine", 1, "p", "MINE")],
    ),
    "input_file_name()": (
        "SELECT k, input_file_name(), upper(INPUT_FILE_NAME( )) AS u FROM STREAM read_files('/c') WHERE k = 1",
        "k input_file_name() u",
        [(1, "file:///in/c.csv", "FILE:///IN/C.CSV")],
    ),
    "input_file_name() behind DISTINCT": (
        "SELECT DISTINCT input_file_name() AS f FROM STREAM read_files('/timed') x WATERMARK ts DELAY OF INTERVAL 1 HOUR",
        "f",
        [("file:///in/timed.csv",)],
    ),
}


@pytest.mark.parametrize(("text", "names", "expected"), IN_SQL.values(), ids=IN_SQL)
def test_metadata_in_sql(answer, text, names, expected):
    found_names, found = answer(sql(text))
    assert found_names == names.split()
    if expected is not None:
        assert found == expected


def files(spark, path="/a"):
    return spark.readStream.format("cloudFiles").option("cloudFiles.format", "csv").load(path)


def both(spark):
    return files(spark), files(spark, "/c")


IN_PYTHON = {
    "not named": (lambda spark: files(spark, "/c"), "k c", [(1, "p"), (2, "q")]),
    "a field beside a star": (
        lambda spark: files(spark, "/c").select("*", "_metadata.file_name"),
        "k c file_name",
        [(1, "p", "c.csv"), (2, "q", "c.csv")],
    ),
    "a field of a column": (
        lambda spark: spark.read.json("/c").select("k", sf.col("_metadata").getField("file_size")),
        "k _metadata.file_size",
        [(1, 10), (2, 10)],
    ),
    "by the DataFrame": (
        lambda spark: _with(
            files(spark, "/c"), lambda x: x.select(x["k"], x["_metadata"]["file_name"].alias("f"))
        ),
        "k f",
        [(1, "c.csv"), (2, "c.csv")],
    ),
    "in a filter": (
        lambda spark: files(spark, "/c").where(sf.col("_metadata.file_size") > 3),
        "k c",
        [(1, "p"), (2, "q")],
    ),
    "above a projection": (
        lambda spark: (
            files(spark, "/c")
            .select("k")
            .where("_metadata.file_size > 3")
            .limit(5)
            .withColumn("f", sf.col("_metadata.file_name"))
        ),
        "k f",
        [(1, "c.csv"), (2, "c.csv")],
    ),
    "above other steps": (
        lambda spark: (
            spark.read.csv("/c")
            .drop("c")
            .withColumnRenamed("k", "q")
            .alias("z")
            .sort("z.q")
            .where("z._metadata.file_size > 3")
        ),
        "q",
        [(1,), (2,)],
    ),
    "the DataFrame's columns above it": (
        lambda spark: _with(
            files(spark, "/c").where("_metadata.file_size > 3"),
            lambda x: x.select(x["c"], *x.columns[:1]),
        ),
        "c k",
        [("p", 1), ("q", 2)],
    ),
    "all rows as keys": (
        lambda spark: files(spark).withColumn("f", sf.col("_metadata.file_name")).dropDuplicates(),
        "a b f",
        [(1, "x", "a.csv"), (2, "y", "a.csv")],
    ),
    "behind distinct()": (
        lambda spark: files(spark).where("_metadata.file_size > 3").distinct(),
        "a b",
        [(1, "x"), (2, "y")],
    ),
    "above a key": (
        lambda spark: files(spark).dropDuplicates(["a"]).select("a", "_metadata.file_name"),
        "a file_name",
        [(1, "a.csv"), (2, "a.csv")],
    ),
    "groups": (
        lambda spark: spark.read.parquet("/a").groupBy("_metadata.file_name").count(),
        "file_name count",
        [("a.csv", 3)],
    ),
    "a join": (
        lambda spark: (
            files(spark)
            .join(spark.read.csv("/c"), sf.expr("a = k"))
            .where("a = 1")
            .select("*", sf.lit(1).alias("n"))
        ),
        "a b k c n",
        [(1, "x", 1, "p", 1)],
    ),
    "both sides of a join, by their DataFrames": (
        lambda spark: _with(
            both(spark),
            lambda two: (
                two[0]
                .join(two[1], two[0]["a"] == two[1]["k"])
                .where("a = 1")
                .select("*", two[1]["_metadata.file_name"])
            ),
        ),
        "a b k c file_name",
        [(1, "x", 1, "p", "c.csv")],
    ),
    "both sides of a join, by their names": (
        lambda spark: (
            files(spark)
            .alias("x")
            .join(
                files(spark, "/c").alias("y"),
                sf.expr("a = k AND x._metadata.file_size <= y._metadata.file_size"),
            )
            .where("a = 1")
            .selectExpr("x.*", "y._metadata.file_name AS g")
        ),
        "a b g",
        [(1, "x", "c.csv")],
    ),
    "a side of a join, in its condition alone": (
        lambda spark: _with(
            both(spark),
            lambda two: (
                two[0]
                .join(two[1], (two[0]["a"] == two[1]["k"]) & (two[1]["_metadata"]["file_size"] > 3))
                .where("a = 1")
            ),
        ),
        "a b k c",
        [(1, "x", 1, "p")],
    ),
    "USING": (
        lambda spark: (
            files(spark)
            .withColumnRenamed("a", "k")
            .where("_metadata.file_size > 3")
            .join(spark.read.csv("/c"), "k")
            .where("k = 1")
        ),
        "k b c",
        [(1, "x", "p")],
    ),
    "itself beside a star": (
        lambda spark: (
            files(spark, "/c")
            .select("*", "_metadata")
            .selectExpr("*", "_metadata.file_name AS f")
            .drop("_metadata")
        ),
        "k c f",
        [(1, "p", "c.csv"), (2, "q", "c.csv")],
    ),
    "itself with an alias as text": (
        lambda spark: files(spark, "/c").selectExpr("*", "_metadata.file_name AS _metadata"),
        "k c _metadata",
        [(1, "p", "c.csv"), (2, "q", "c.csv")],
    ),
    "itself hidden by a column": (
        lambda spark: files(spark, "/c").withColumn("_metadata", sf.lit(1)).select("*"),
        "k c _metadata",
        [(1, "p", 1), (2, "q", 1)],
    ),
    "a column of the name": (
        lambda spark: (
            spark.read.csv("/own")
            .where("_metadata = 'mine'")
            .select("*", sf.upper("_metadata").alias("u"))
        ),
        "a _metadata u",
        [(1, "mine", "MINE")],
    ),
    "columns of a pattern": (
        lambda spark: _with(
            spark.read.csv("/c"), lambda x: x.select(x.colRegex("`.*`"), "_metadata.file_name")
        ),
        "k c file_name",
        [(1, "p", "c.csv"), (2, "q", "c.csv")],
    ),
    "a union": (
        lambda spark: files(spark, "/c").where("_metadata.file_size > 3").union(files(spark, "/c")),
        "k c",
        [(1, "p"), (1, "p"), (2, "q"), (2, "q")],
    ),
    "a function over batches of rows": (
        lambda spark: (
            files(spark, "/c")
            .where("_metadata.file_size > 3")
            .mapInPandas(lambda them: them, "k INT, c STRING")
        ),
        "k c",
        [(1, "p"), (2, "q")],
    ),
    "text in Python": (
        lambda spark: spark.sql(
            "SELECT *, _metadata.file_name AS f FROM STREAM read_files('/c')"
        ).where("k = 1"),
        "k c f",
        [(1, "p", "c.csv")],
    ),
    "a windowed count": (
        lambda spark: (
            files(spark, "/timed")
            .withWatermark("ts", "1 hour")
            .groupBy(sf.window("ts", "1 hour"), "_metadata.file_name")
            .count()
        ),
        "window file_name count",
        [],
    ),
    "behind rows made of a column": (
        lambda spark: (
            files(spark, "/c")
            .lateralJoin(spark.tvf.explode(sf.array(sf.lit(7), sf.col("k").outer())))
            .select("k", "col", "_metadata.file_size")
            .where("k = 1")
        ),
        "k col file_size",
        [(1, 1, 10), (1, 7, 10)],
    ),
    "names that look like it": (
        lambda spark: (
            files(spark, "/c")
            .alias("my_metadata")
            .withColumn("a _metadata", sf.lit(1))
            .select("my_metadata.k", "a _metadata", "_metadata.file_size")
        ),
        None,
        [(1, 1, 10), (2, 1, 10)],
    ),
    "a count of rows": (
        lambda spark: spark.read.csv("/a").agg(
            sf.count("*").alias("n"),
            sf.expr("count(*) * 2 AS m"),
            sf.max("_metadata.file_size").alias("s"),
        ),
        "n m s",
        [(3, 6, 10)],
    ),
    "input_file_name()": (
        lambda spark: (
            files(spark, "/c")
            .where("k = 1")
            .select("k", sf.input_file_name(), sf.expr("upper(input_file_name()) AS u"))
        ),
        "k input_file_name() u",
        [(1, "file:///in/c.csv", "FILE:///IN/C.CSV")],
    ),
}


def _with(value, function):
    return function(value)


@pytest.mark.parametrize(("build", "names", "expected"), IN_PYTHON.values(), ids=IN_PYTHON)
def test_metadata_in_python(spark, answer, build, names, expected):
    found_names, found = answer(python(lambda: build(spark)))
    assert found == expected
    if names is not None:
        assert found_names == names.split(" ")


def test_its_values_and_types_are_those_of_spark(engine, bind, tmp_path):
    found = plan(engine, sql("SELECT _metadata FROM read_files('/c')"))
    schema = engine.schema(found, bind)
    assert schema["_metadata"].dataType == metadata_field().dataType
    batch = engine.stage(found, bind, folder=tmp_path / "out")
    fields = "_metadata.file_path, _metadata.file_block_length, _metadata.file_modification_time::VARCHAR"
    assert rows(batch, fields) == [("file:///in/c.csv", 10, "2026-02-03 04:05:06+00")] * 2


def test_a_read_says_whether_metadata_is_asked(engine, spark):
    def asked(query):
        return [read.metadata for read in plan(engine, query).reads]

    both = (
        "SELECT x.k, y._metadata.file_size FROM read_files('/a') x JOIN read_files('/c') y ON a = k"
    )
    assert asked(sql(both)) == [False, True]
    assert asked(sql("SELECT *, _metadata FROM STREAM read_kafka(subscribe => 't')")) == [False]
    assert asked(sql("SELECT * FROM read_files('/a')")) == [False]
    assert asked(python(lambda: files(spark))) == [False]
    assert asked(python(lambda: files(spark).select("_metadata.file_size"))) == [True]


def test_a_view_shows_no_more_than_it_selects(engine, bind, answer):
    view = plan(engine, sql("SELECT * FROM STREAM read_files('/c') WHERE _metadata.file_size > 3"))
    keeps = Expectation("k", "k > 1", ExpectationAction.DROP)
    inputs = {"v": PlanInput(view, (keeps,))}

    def binder(read):
        return inputs[read.name[-1]] if read.name else bind(read)

    assert answer(sql("SELECT * FROM STREAM v"), binder) == (["k", "c"], [(2, "q")])
    with pytest.raises(UnresolvedColumnError, match="_metadata"):
        answer(sql("SELECT _metadata.file_name FROM STREAM v"), binder)


def test_arguments_of_a_text_and_other_names_for_its_columns_change_nothing(engine, spark, bind):
    text = "SELECT DISTINCT *, _metadata.file_name AS f FROM STREAM read_files('/c') WHERE k > :k LIMIT 3"
    found = plan(engine, python(lambda: spark.sql(text, args={"k": 1})))
    assert engine.schema(found, bind).names == ["k", "c", "f"]
    renamed = engine.renamed(found, ["p", "q", "r"])
    assert engine.schema(renamed, bind).names == ["p", "q", "r"]
    own = plan(engine, python(lambda: spark.read.csv("/own").select("*", sf.upper("_metadata"))))
    assert engine.schema(engine.renamed(own, ["p", "q", "r"]), bind).names == ["p", "q", "r"]


def test_a_read_is_bound_once(engine, bind):
    asked = []

    def binder(read):
        asked.append(read)
        return bind(read)

    found = plan(engine, sql("SELECT *, _metadata.file_name AS f FROM read_files('/c')"))
    engine.schema(found, binder)
    assert len(asked) == 1


def test_the_hidden_column_can_not_be_named(engine, bind):
    found = plan(engine, sql(f"SELECT {METADATA_COLUMN} FROM read_files('/a')"), bind)
    with pytest.raises(UnresolvedColumnError) as caught:
        engine.schema(found, bind)
    assert METADATA_COLUMN not in (caught.value.hint or "")


def test_without_a_syntax_tree_files_are_found_and_metadata_is_refused(monkeypatch):
    from sqlglot.errors import ParseError

    from millpond.engine.sqltext import analysis as module

    monkeypatch.setattr(module, "parse_query", lambda _text: ParseError("no tree"))

    def analysed(text):
        return module.analyse(QueryText(text, SourceLocation("a.sql", 1, 1)), can_read=bool)

    found = analysed(
        "SELECT a FROM STREAM(read_files('/a', header => true)) JOIN read_files('/c') y"
    )
    assert [(read.paths, read.streaming) for read in found.reads] == [
        (("/a",), True),
        (("/c",), False),
    ]
    assert " ".join(found.bound(["one", "two"]).split()) == (
        "SELECT a FROM one AS `read_files` JOIN two y"
    )
    for text in ("SELECT _metadata.file_size", "SELECT x._metadata", "SELECT input_file_name()"):
        with pytest.raises(UnsupportedReadError, match="only the engine can read"):
            analysed(f"{text} FROM read_files('/a') x")
    assert analysed("SELECT _metadata.a FROM t").reads[0].name == ("t",)


REFUSED = {
    "of two files": (
        "SELECT _metadata.file_name FROM read_files('/a') x JOIN read_files('/c') y ON a = k",
        QueryAnalysisError,
        "ambiguous",
    ),
    "of a CTE": (
        "WITH x AS (SELECT * FROM read_files('/a')) SELECT _metadata FROM x",
        UnresolvedColumnError,
        "_metadata",
    ),
    "a star with USING": (
        "SELECT *, x._metadata.file_name AS f FROM read_files('/a') x JOIN t USING (a)",
        UnsupportedReadError,
        "USING",
    ),
    "a star with a subquery without a name": (
        "SELECT *, x._metadata.file_name AS f FROM read_files('/a') x JOIN (SELECT 1 AS n)",
        UnsupportedReadError,
        "without a name",
    ),
    "other names of columns": (
        "SELECT x.q, _metadata.file_name FROM read_files('/a') AS x(q, r)",
        UnsupportedReadError,
        "other names",
    ),
    "PIVOT": (
        "SELECT *, _metadata.file_name FROM read_files('/a') PIVOT (count(a) FOR b IN ('x'))",
        UnsupportedReadError,
        "PIVOT",
    ),
    "a star in an expression over a join of streams": (
        "SELECT struct(*) AS s, x._metadata.file_name FROM STREAM read_files('/a') x JOIN STREAM read_files('/c') y ON a = k",
        UnsupportedReadError,
        "star inside an expression",
    ),
}


@pytest.mark.parametrize(("text", "error_class", "words"), REFUSED.values(), ids=REFUSED)
def test_what_can_not_be_told_is_refused(engine, bind, text, error_class, words):
    with pytest.raises(MillpondError, match=words) as caught:
        engine.schema(plan(engine, sql(text), bind), bind)
    assert type(caught.value) is error_class
    assert caught.value.where.file == "transformations/a.sql"


@pytest.mark.parametrize(
    "build",
    [
        lambda spark: files(spark).select(sf.struct("*").alias("s"), "_metadata.file_name"),
        lambda spark: files(spark).selectExpr("to_json(struct(*)) AS s", "_metadata.file_name"),
        lambda spark: (
            files(spark).alias("x").selectExpr("hash(1, x.*) AS h", "_metadata.file_name")
        ),
        lambda spark: spark.read.csv("/a").agg(
            sf.count_distinct("*"), sf.max("_metadata.file_name")
        ),
        lambda spark: spark.read.csv("/a").agg(
            sf.expr("count(DISTINCT *)"), sf.max("_metadata.file_name")
        ),
    ],
)
def test_a_star_in_an_expression_is_refused_in_the_step_that_names_it(engine, spark, bind, build):
    with pytest.raises(UnsupportedReadError, match="star inside an expression") as caught:
        plan(engine, python(lambda: build(spark)), bind)
    assert caught.value.where.file.endswith("test_file_metadata.py")
