"""What is refused before any data is read: the cause, the place, the words that help."""

from __future__ import annotations

import pytest

from millpond.runner import dry_run

LANDING = [{"k": "a", "s": 1, "m": {"x": 1}, "v": 1.5}]

TABLE = "CREATE STREAMING TABLE t FLOW REPLACE USING ({keys}) SEQUENCE BY {by} BY NAME {query}"


def replacing(keys="k", by="s", query="SELECT k, s, v FROM STREAM(landing)"):
    return TABLE.format(keys=keys, by=by, query=query)


PYTHON = "from pyspark import pipelines as dp\nfrom pyspark.sql import functions as F\n"

# One source file each: its text, the class it is refused with, and words of the message.
CASES = {
    "batch source": (
        replacing(query="SELECT k, s FROM landing"),
        "REPLACE_USING_NOT_STREAMING",
        ["main.sales.t", "STREAM"],
    ),
    "batch source in Python": (
        PYTHON + "@dp.table(replace_using=['k'], sequence_by='s')\n"
        "def t():\n    return spark.range(3).selectExpr('id AS k', 'id AS s')\n",
        "REPLACE_USING_NOT_STREAMING",
        ["main.sales.t", "readStream"],
    ),
    "key not in the query": (
        replacing(keys="kk"),
        "REPLACE_USING_KEY_NOT_FOUND",
        ["'kk'", "did you mean 'k'"],
    ),
    "sequence not in the query": (
        replacing(by="version"),
        "REPLACE_USING_SEQUENCE_NOT_FOUND",
        ["'version'", "k, s, v"],
    ),
    "sequence column not in the query, in Python": (
        PYTHON + "@dp.table(replace_using=['k'], sequence_by=F.col('version'))\n"
        "def t():\n    return spark.readStream.table('landing').select('k', 's')\n",
        "REPLACE_USING_SEQUENCE_NOT_FOUND",
        ["'version'"],
    ),
    "key of a type without order": (
        replacing(keys="m", query="SELECT map('x', 1) AS m, s FROM STREAM(landing)"),
        "REPLACE_USING_KEY_NOT_ORDERABLE",
        ["'m'", "map<string,int>"],
    ),
    "sequence of a type without order": (
        replacing(by="m", query="SELECT k, map('x', 1) AS m FROM STREAM(landing)"),
        "REPLACE_USING_SEQUENCE_NOT_ORDERABLE",
        ["map<string,int>"],
    ),
    "second flow on the target": (
        replacing() + ";\nCREATE FLOW more AS INSERT INTO t BY NAME SELECT * FROM STREAM(landing)",
        "REPLACE_USING_SECOND_FLOW",
        ["main.sales.t", "main.sales.more"],
    ),
    "target that the pipeline does not create": (
        (
            "CREATE FLOW f AS INSERT INTO elsewhere BY NAME REPLACE USING (k) SEQUENCE BY s\n"
            "SELECT k, s FROM STREAM(landing)"
        ),
        "REPLACE_USING_TARGET_NOT_CREATED",
        ["main.sales.elsewhere", "CREATE STREAMING TABLE"],
    ),
    "a time zone that the embedded engine half ignores": (
        "SET spark.sql.session.timeZone = 'Asia/Tokyo';\n" + replacing(),
        "INVALID_ENGINE_CONFIGURATION",
        ["Asia/Tokyo", "from_utc_timestamp"],
    ),
    "repeated key": (replacing(keys="k, K"), "REPLACE_USING_DUPLICATE_KEY", ["'K'"]),
    "no key": (replacing(keys=""), "REPLACE_USING_NO_KEY", ["main.sales.t"]),
    "no sequence": (
        "CREATE STREAMING TABLE t FLOW REPLACE USING (k) BY NAME SELECT k FROM STREAM(landing)",
        "REPLACE_USING_MISSING_SEQUENCE_BY",
        ["SEQUENCE BY"],
    ),
    "no BY NAME": (
        replacing().replace(" BY NAME", ""),
        "REPLACE_USING_MISSING_BY_NAME",
        ["BY NAME"],
    ),
    "once": (
        (
            "CREATE STREAMING TABLE t;\nCREATE FLOW f AS INSERT ONCE INTO t BY NAME\n"
            "REPLACE USING (k) SEQUENCE BY s SELECT k, s FROM STREAM(landing)"
        ),
        "REPLACE_USING_WITH_ONCE",
        ["ONCE"],
    ),
    "sequence without keys": (
        PYTHON + "@dp.table(sequence_by='s')\n"
        "def t():\n    return spark.readStream.table('landing')\n",
        "SEQUENCE_BY_WITHOUT_REPLACE_USING",
        ["replace_using"],
    ),
    "append from a batch": (
        "CREATE STREAMING TABLE t AS SELECT k FROM landing",
        "FLOW_NOT_STREAMING",
        ["main.sales.t", "STREAM(..)"],
    ),
    "materialized view over a stream": (
        "CREATE MATERIALIZED VIEW t AS SELECT k FROM STREAM(landing)",
        "FLOW_IS_STREAMING",
        ["main.sales.t"],
    ),
    "column without a name": (
        "CREATE MATERIALIZED VIEW t AS SELECT k, 1 AS `` FROM landing",
        "DELTA_INVALID_SCHEMA",
        ["A column has an empty name"],
    ),
    "fields that differ in case, where one is declared": (
        (
            "CREATE STREAMING TABLE t (p STRUCT<x: BIGINT>) AS\n"
            "SELECT named_struct('x', 1L, 'X', 2L) AS p FROM STREAM(landing)"
        ),
        "DELTA_INVALID_SCHEMA",
        ["The column 'p.X' occurs twice", ":2:1"],
    ),
    "fields that differ in case, in a second flow": (
        (
            "CREATE STREAMING TABLE t AS SELECT array(named_struct('x', 1)) AS p\n"
            "FROM STREAM(landing);\n"
            "CREATE FLOW more AS INSERT INTO t BY NAME\n"
            "SELECT array(named_struct('x', 1, 'X', 2)) AS p FROM STREAM(landing)"
        ),
        "DELTA_INVALID_SCHEMA",
        ["The column 'p.element.X' occurs twice"],
    ),
    "flow into nothing": (
        "CREATE FLOW f AS INSERT INTO nothing BY NAME SELECT k FROM STREAM(landing)",
        "FLOW_TARGET_NOT_FOUND",
        ["main.sales.nothing"],
    ),
    "table without a flow": ("CREATE STREAMING TABLE t", "DATASET_WITHOUT_FLOW", ["main.sales.t"]),
    "circle": (
        (
            "CREATE MATERIALIZED VIEW a AS SELECT * FROM b;\n"
            "CREATE MATERIALIZED VIEW b AS SELECT * FROM a"
        ),
        "CIRCULAR_DEPENDENCY",
        ["main.sales.a -> main.sales.b -> main.sales.a"],
    ),
    "missing table": (
        "CREATE MATERIALIZED VIEW a AS SELECT * FROM landings",
        "TABLE_OR_VIEW_NOT_FOUND",
        ["main.sales.landings"],
    ),
    "missing table that is named like its reader": (
        "CREATE STREAMING TABLE prices AS SELECT * FROM STREAM(price)",
        "TABLE_OR_VIEW_NOT_FOUND",
        ["main.sales.price,", "hint: a table outside"],
    ),
    "missing sample": (
        "CREATE MATERIALIZED VIEW a AS SELECT * FROM samples.wanderbricks.payment",
        "SAMPLE_TABLE_NOT_FOUND",
        ["did you mean payments?", ":1:45"],
    ),
    "missing location": (
        "CREATE STREAMING TABLE a AS SELECT * FROM STREAM(delta.`/nowhere/at/all`)",
        "DELTA_PATH_NOT_FOUND",
        ["/nowhere/at/all"],
    ),
    "location that can not be": (
        "CREATE STREAMING TABLE a AS SELECT * FROM STREAM(delta.`/dev/null`)",
        "DELTA_PATH_NOT_FOUND",
        ["/dev/null", "Not a directory"],
    ),
    "location that is no path": (
        "CREATE STREAMING TABLE a AS SELECT * FROM STREAM(delta.`file:/a%00b`)",
        "DELTA_PATH_NOT_FOUND",
        ["file:/a%00b", "null byte"],
    ),
    "location on another machine": (
        "CREATE STREAMING TABLE a AS SELECT * FROM STREAM(delta.`s3://lake/a`)",
        "DELTA_PATH_NOT_FOUND",
        ["s3://lake/a", "no folder of this machine"],
    ),
    "table below a file": (
        "CREATE STREAMING TABLE a LOCATION '/dev/null/a' AS SELECT * FROM STREAM(landing)",
        "TABLE_LOCATION_NOT_USABLE",
        ["main.sales.a", "/dev/null/a", "Not a directory"],
    ),
    "table with a name that is too long": (
        f"CREATE STREAMING TABLE a LOCATION '/{'a' * 300}' AS SELECT * FROM STREAM(landing)",
        "TABLE_LOCATION_NOT_USABLE",
        ["main.sales.a", "File name too long"],
    ),
    "table on another machine": (
        "CREATE STREAMING TABLE a LOCATION 's3://lake/a' AS SELECT * FROM STREAM(landing)",
        "TABLE_LOCATION_NOT_USABLE",
        ["main.sales.a", "at s3://lake/a", "s3://"],
    ),
    "streaming view read as a batch": (
        (
            "CREATE TEMPORARY VIEW v AS SELECT * FROM STREAM(landing);\n"
            "CREATE MATERIALIZED VIEW a AS SELECT * FROM v"
        ),
        "VIEW_READ_MISMATCH",
        ["STREAM(main.sales.v)"],
    ),
    "batch view read as a stream": (
        (
            "CREATE TEMPORARY VIEW v AS SELECT * FROM landing;\n"
            "CREATE STREAMING TABLE a AS SELECT * FROM STREAM(v)"
        ),
        "VIEW_READ_MISMATCH",
        ["main.sales.v"],
    ),
    "two flows that contradict each other": (
        (
            "CREATE STREAMING TABLE t;\n"
            "CREATE FLOW one AS INSERT INTO t BY NAME SELECT k FROM STREAM(landing);\n"
            "CREATE FLOW two AS INSERT INTO t BY NAME SELECT v AS k FROM STREAM(landing)"
        ),
        "FLOW_SCHEMA_CONFLICT",
        ["main.sales.two"],
    ),
    "columns that are not declared": (
        "CREATE STREAMING TABLE t (k STRING) AS SELECT k, v FROM STREAM(landing)",
        "DECLARED_SCHEMA_MISMATCH",
        ["v"],
    ),
    "declared columns that can not be read": (
        PYTHON + "@dp.table(schema='k NOTATYPE')\n"
        "def t():\n    return spark.readStream.table('landing').select('k')\n",
        "DECLARED_SCHEMA_MISMATCH",
        ["k NOTATYPE"],
    ),
    "generated column": (
        (
            "CREATE STREAMING TABLE t (k STRING, d INT GENERATED ALWAYS AS (1))\n"
            "AS SELECT k FROM STREAM(landing)"
        ),
        "UNSUPPORTED_COLUMN_DEFINITION",
        ["GENERATED ALWAYS AS"],
    ),
    "partitioned by a column that is not there": (
        "CREATE STREAMING TABLE t PARTITIONED BY (day) AS SELECT k FROM STREAM(landing)",
        "UNKNOWN_TABLE_COLUMN",
        ["day"],
    ),
    "column without a type": (
        "CREATE MATERIALIZED VIEW t AS SELECT k, NULL AS n FROM landing",
        "UNSUPPORTED_COLUMN_TYPE",
        ["n"],
    ),
    "reserved column name": (
        "CREATE MATERIALIZED VIEW t AS SELECT k AS __file FROM landing",
        "RESERVED_COLUMN_NAME",
        ["__file"],
    ),
    "property that millpond keeps for itself": (
        (
            "CREATE STREAMING TABLE t TBLPROPERTIES (millpond.datasetKind = 'x')\n"
            "AS SELECT k FROM STREAM(landing)"
        ),
        "RESERVED_TABLE_PROPERTY",
        ["millpond.datasetKind"],
    ),
    "property that asks for what can't be had": (
        (
            "CREATE STREAMING TABLE t TBLPROPERTIES (delta.enableIcebergCompatV2 = true)\n"
            "AS SELECT k FROM STREAM(landing)"
        ),
        "UNSUPPORTED_TABLE_FEATURE",
        ["enableIcebergCompatV2", "leave the property out"],
    ),
    "aggregation over a stream": (
        replacing(query="SELECT k, max(s) AS s FROM STREAM(landing) GROUP BY k"),
        "UNSUPPORTED_STREAMING_OPERATION",
        ["pipeline.sql:1"],
    ),
    "stream over a query of the same statement": (
        (
            "CREATE STREAMING TABLE t AS WITH c AS (SELECT * FROM STREAM(landing))\n"
            "SELECT k FROM STREAM(c)"
        ),
        "UNSUPPORTED_STREAMING_SOURCE",
        ["c, which is a query of the same statement", "pipeline.sql:2:22"],
    ),
    "GROUP BY ALL, which the engine lacks": (
        "CREATE MATERIALIZED VIEW m AS SELECT k, count(*) AS n FROM landing GROUP BY ALL",
        "QUERY_ANALYSIS_FAILED",
        ["BY ALL", "pipeline.sql:1:"],
    ),
    "LIKE ANY, which the engine lacks": (
        "CREATE MATERIALIZED VIEW m AS SELECT k FROM landing WHERE k LIKE ANY ('a', 'b')",
        "QUERY_ANALYSIS_FAILED",
        ["LIKE ANY", "pipeline.sql:1:"],
    ),
    "LIKE ANY in an expectation": (
        (
            "CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (k LIKE ANY ('a', 'b')))\n"
            "AS SELECT k FROM STREAM(landing)"
        ),
        "INVALID_EXPECTATION",
        ["LIKE ANY"],
    ),
    "query function that ends the program": (
        PYTHON + "@dp.materialized_view\ndef m():\n    raise SystemExit(0)\n",
        "QUERY_FUNCTION_FAILED",
        ["SystemExit", "pipeline.py:5"],
    ),
    "query function that fails": (
        PYTHON
        + "@dp.materialized_view\ndef m():\n    return spark.table('landing').where(1 / 0)\n",
        "QUERY_FUNCTION_FAILED",
        ["pipeline.py:5"],
    ),
    "expectation that is no condition": (
        (
            "CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (nothing > 1))\n"
            "AS SELECT k FROM STREAM(landing)"
        ),
        "nothing",
        ["c"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refused_before_data_is_read(folder, case):
    text, error_class, words = CASES[case]
    name = "pipeline.py" if text.startswith("from") else "pipeline.sql"
    folder.write(name, text)
    folder.feed("landing", LANDING)
    problems = dry_run(folder.project())
    messages = "\n".join(str(problem) for problem in problems)
    assert error_class in messages
    for word in words:
        assert word in messages
    assert all(problem.hint for problem in problems)
    assert all(problem.where.file == f"transformations/{name}" for problem in problems)
    assert all(problem.where.line for problem in problems)
    assert not folder.layout.checkpoints.exists()


def test_a_table_that_was_another_kind_of_dataset_needs_a_full_refresh(folder):
    folder.feed("landing", LANDING)
    folder.write("p.sql", "CREATE MATERIALIZED VIEW t AS SELECT k FROM landing")
    folder.run()
    folder.write("p.sql", "CREATE STREAMING TABLE t AS SELECT k FROM STREAM(landing)")
    (flow,) = folder.run().flows
    assert "TABLE_KIND_CHANGED" in str(flow.error)
    assert str(flow.error.where) == "transformations/p.sql:1:24"
    assert folder.run(full_refresh=["t"]).state == "COMPLETED"
    assert folder.rows("t") == [("a",)]


def test_a_storage_that_can_not_be_made_says_so(folder):
    folder.write("p.sql", "CREATE MATERIALIZED VIEW t AS SELECT 1 AS one")
    folder.layout.root.write_text("a file where the folder should be")
    with pytest.raises(OSError, match="STORAGE_NOT_WRITABLE"):
        folder.run()
