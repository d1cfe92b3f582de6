"""A batch's rows are computed once and written as Parquet that DuckDB reads as what they are."""

import datetime as dt
import re
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from millpond.definitions import Expectation
from millpond.engine.embedded import EmbeddedEngine
from millpond.engine.protocol import EXPECTATION_COLUMN, SEQUENCE_COLUMN, EmptyInput
from millpond.errors.engine import (
    DuplicateColumnError,
    QueryAnalysisError,
    QueryRunError,
    UnresolvedColumnError,
    UnresolvedRoutineError,
)
from millpond.errors.engine_start import EngineConfigurationError
from millpond.errors.graph import ReservedColumnNameError
from tests.engine.queries import empty, plan, python, rows, sql, tables

UTC = dt.UTC

# An expression, Spark's type of it, DuckDB's type of the file's column, and the value there.
TYPES = {
    "byte": ("CAST(-1 AS TINYINT)", "tinyint", "TINYINT", -1),
    "short": ("CAST(2 AS SMALLINT)", "smallint", "SMALLINT", 2),
    "int": ("3", "int", "INTEGER", 3),
    "long": ("9223372036854775807L", "bigint", "BIGINT", 2**63 - 1),
    "float": ("CAST(1.5 AS FLOAT)", "float", "FLOAT", 1.5),
    "double": ("2.25D", "double", "DOUBLE", 2.25),
    "infinity": ("double('-Infinity')", "double", "DOUBLE", float("-inf")),
    "decimal": ("CAST(1.25 AS DECIMAL(10,2))", "decimal(10,2)", "DECIMAL(10,2)", Decimal("1.25")),
    "big decimal": (
        "CAST('123456789012345678901234567890.12345678' AS DECIMAL(38,8))",
        "decimal(38,8)",
        "DECIMAL(38,8)",
        Decimal("123456789012345678901234567890.12345678"),
    ),
    "string": ("'it''s ü'", "string", "VARCHAR", None),
    "binary": ("X'00FF'", "binary", "BLOB", b"\x00\xff"),
    "boolean": ("true", "boolean", "BOOLEAN", True),
    "date": ("DATE'1582-10-15'", "date", "DATE", dt.date(1582, 10, 15)),
    "timestamp": (
        "TIMESTAMP'2026-01-02 03:04:05.123456'",
        "timestamp",
        "TIMESTAMP WITH TIME ZONE",
        dt.datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC),
    ),
    "timestamp without zone": (
        "TIMESTAMP_NTZ'2026-01-02 03:04:05.123456'",
        "timestamp_ntz",
        "TIMESTAMP",
        dt.datetime(2026, 1, 2, 3, 4, 5, 123456),  # noqa: DTZ001 - it has no zone
    ),
    "array": ("array(1, null, 3)", "array<int>", "INTEGER[]", [1, None, 3]),
    "map": (
        "map('a', 1, 'b', null)",
        "map<string,int>",
        "MAP(VARCHAR, INTEGER)",
        {"a": 1, "b": None},
    ),
    "struct": (
        "struct(1 AS x, array(struct('y' AS z)) AS list)",
        "struct<x:int,list:array<struct<z:string>>>",
        "STRUCT(x INTEGER, list STRUCT(z VARCHAR)[])",
        {"x": 1, "list": [{"z": "y"}]},
    ),
    "nested timestamps": (
        "map(1, struct(TIMESTAMP_NTZ'2026-01-02 00:00:00' AS t))",
        "map<int,struct<t:timestamp_ntz>>",
        "MAP(INTEGER, STRUCT(t TIMESTAMP))",
        {1: {"t": dt.datetime(2026, 1, 2)}},  # noqa: DTZ001 - it has no zone
    ),
    "null of a type": ("CAST(null AS DECIMAL(5,1))", "decimal(5,1)", "DECIMAL(5,1)", None),
}


@pytest.mark.parametrize(
    ("expression", "spark_type", "duckdb_type", "value"), TYPES.values(), ids=TYPES
)
def test_types_survive(engine, tmp_path, expression, spark_type, duckdb_type, value):
    base = tables(engine, tmp_path, t=[{"k": 1}])
    query = sql(
        f"SELECT k, {expression} AS c FROM STREAM t UNION ALL SELECT k + 1, null FROM STREAM t"
    )
    batch = engine.stage(plan(engine, query, base), base, folder=tmp_path / "rows")
    assert batch.schema["c"].dataType.simpleString() == spark_type
    found = rows(batch, "k, c, typeof(c)")
    expected = "it's ü" if spark_type == "string" else value
    if spark_type == "string":
        # Spark joins neighbouring literals; Sail reads a doubled quote as one.
        expected = found[0][1]
        assert "ü" in expected
    assert found == [(1, expected, duckdb_type), (2, None, duckdb_type)]


def test_nan_is_kept_and_told_from_null(engine, tmp_path):
    base = tables(engine, tmp_path, t=[{"k": 1}])
    query = sql("SELECT double('NaN') AS c, -0.0D AS z FROM STREAM t")
    batch = engine.stage(plan(engine, query, base), base, folder=tmp_path / "rows")
    ((found, zero),) = rows(batch, "c::VARCHAR, z::VARCHAR")
    assert (found, zero) == ("nan", "-0.0")


def test_a_column_of_no_type_can_be_staged(engine, tmp_path):
    base = tables(engine, tmp_path, t=[{"k": 1}])
    batch = engine.stage(
        plan(engine, sql("SELECT k, null AS c FROM STREAM t"), base), base, folder=tmp_path / "rows"
    )
    assert batch.schema["c"].dataType.simpleString() == "void"
    assert rows(batch) == [(1, None)]


def test_expectations_and_sequence_are_columns_of_the_files(engine, tmp_path):
    base = tables(engine, tmp_path, t=[{"k": 1, "s": "a"}, {"k": None, "s": "b"}])
    expectations = (Expectation("positive", "k > 0"), Expectation("first", "s == 'a'"))
    batch = engine.stage(
        plan(engine, sql("SELECT k, s FROM STREAM t"), base),
        base,
        folder=tmp_path / "rows",
        expectations=expectations,
        sequence_by="struct(coalesce(k, 0), s)",
    )
    assert batch.expectations == expectations
    assert batch.schema.names == ["k", "s"]
    assert batch.sequence_type.simpleString() == "struct<col1:bigint,s:string>"
    columns = [EXPECTATION_COLUMN.format(index=index) for index in (0, 1)]
    found = rows(batch, f"k, {', '.join(columns)}, {SEQUENCE_COLUMN}")
    assert found == [
        (1, True, True, {"col1": 1, "s": "a"}),
        (None, False, False, {"col1": 0, "s": "b"}),
    ]


@pytest.mark.parametrize(
    ("sequence_by", "expected"),
    [
        ("my seq", [5, 6]),
        ("`my seq`", [5, 6]),
        ("MY SEQ", [5, 6]),
        ("k * 2", [2, 4]),
        (sf.col("k") + 1, [2, 3]),
        (sf.struct("k"), [{"k": 1}, {"k": 2}]),
    ],
)
def test_a_sequence_is_a_name_a_text_or_a_column(engine, tmp_path, sequence_by, expected):
    base = tables(engine, tmp_path, t=[{"k": 1, "my seq": 5}, {"k": 2, "my seq": 6}])
    batch = engine.stage(
        plan(engine, sql("SELECT * FROM STREAM t"), base),
        base,
        folder=tmp_path / "rows",
        sequence_by=sequence_by,
    )
    assert [row[0] for row in rows(batch, SEQUENCE_COLUMN)] == expected


@pytest.mark.parametrize("name", ["a b", "50%", "[x]*?", "ü'\"#"])
def test_files_are_written_below_any_folder(engine, tmp_path, name):
    base = tables(engine, tmp_path, t=[{"k": 1}])
    folder = tmp_path / name / "rows"
    batch = engine.stage(plan(engine, sql("SELECT k FROM STREAM t"), base), base, folder=folder)
    assert all(file.is_relative_to(folder) and file.is_file() for file in batch.files)
    assert rows(batch) == [(1,)]


def test_repeated_names_are_refused(engine, tmp_path):
    base = empty(engine)
    found = plan(engine, sql("SELECT k, v AS K, s, s FROM STREAM t"))
    with pytest.raises(DuplicateColumnError, match="K, s"):
        engine.schema(found, base)
    with pytest.raises(DuplicateColumnError):
        engine.stage(found, base, folder=tmp_path / "rows")


@pytest.mark.parametrize("name", ["__MILLPOND_sequence", EXPECTATION_COLUMN.format(index=1)])
def test_names_of_helper_columns_are_refused(engine, tmp_path, name):
    found = plan(engine, sql(f"SELECT k AS {name} FROM STREAM t"))
    with pytest.raises(ReservedColumnNameError, match=name):
        engine.schema(found, empty(engine))
    with pytest.raises(ReservedColumnNameError, match=name):
        engine.stage(found, empty(engine), folder=tmp_path / "rows")


def test_a_failure_in_the_data_tells_the_engines_own_words(engine, tmp_path):
    base = tables(engine, tmp_path, t=[{"s": "x"}])
    query = sql("SELECT CAST(s AS INT) AS n FROM STREAM t", before="-- one\n")
    with pytest.raises(QueryRunError, match="'x'") as caught:
        engine.stage(plan(engine, query, base), base, folder=tmp_path / "rows")
    assert caught.value.where.line == 2


def test_a_failure_in_a_python_function_tells_its_exception(engine, tmp_path, spark):
    base = tables(engine, tmp_path, t=[{"k": 1}])

    @sf.udf("INT")
    def broken(_k):
        message = "my own words"
        raise ValueError(message)

    query = python(lambda: spark.readStream.table("t").select(broken("k").alias("b")))
    with pytest.raises(QueryRunError, match="my own words"):
        engine.stage(plan(engine, query, base), base, folder=tmp_path / "rows")


def test_unknown_names_are_found_without_data(engine):
    base = empty(engine)
    with pytest.raises(UnresolvedColumnError, match="vv") as caught:
        engine.schema(plan(engine, sql("SELECT k,\n  t.vv FROM STREAM t", before="-- x\n")), base)
    assert (caught.value.where.line, caught.value.where.column) == (3, 3)
    assert caught.value.hint == "did you mean v?"
    with pytest.raises(UnresolvedRoutineError, match="no_such") as caught:
        engine.schema(plan(engine, sql("SELECT no_such(k) FROM STREAM t")), base)
    assert caught.value.where.column == 8
    with pytest.raises(QueryAnalysisError, match="can't read it from 'QUALIFY'"):
        engine.schema(plan(engine, sql("SELECT k FROM t QUALIFY k > 1")), base)


def test_settings_of_a_flow_are_its_own(engine, tmp_path):
    base = tables(engine, tmp_path, t=pa.table({"k": [0]}))
    found = plan(
        engine,
        sql("SELECT typeof(TIMESTAMP'1970-01-02 00:00:00') AS s FROM STREAM t"),
        base,
    )

    def shown(number, spark_conf):
        batch = engine.stage(found, base, folder=tmp_path / str(number), spark_conf=spark_conf)
        return rows(batch)[0][0]

    zoneless = {"spark.sql.timestampType": "TIMESTAMP_NTZ"}
    assert shown(0, zoneless) == "timestamp_ntz"
    assert shown(1, None) == "timestamp"
    assert engine.session.conf.get("spark.sql.timestampType", None) is None
    with ThreadPoolExecutor(4) as pool:
        settings = [zoneless if number % 2 else None for number in range(2, 18)]
        found_there = list(pool.map(shown, range(2, 18), settings))
    assert found_there == ["timestamp", "timestamp_ntz"] * 8


def test_batches_run_side_by_side(engine, tmp_path):
    base = tables(engine, tmp_path, t=[{"k": number} for number in range(100)])

    def total(number):
        query = sql(f"SELECT k * {number} AS n FROM STREAM t WHERE k >= {number}")
        batch = engine.stage(
            engine.plan(query),
            base,
            folder=tmp_path / f"out{number}",
            expectations=[Expectation("even", "n % 2 = 0")],
        )
        return sum(row[0] for row in rows(batch, "n"))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(total, range(24)))
    assert found == [sum(k * n for k in range(n, 100)) for n in range(24)]


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "+09:00", "No/Where"])
def test_a_time_zone_that_the_engine_would_half_ignore_is_an_error(engine, tmp_path, zone):
    base = tables(engine, tmp_path, t=[{"k": 1}])
    found = plan(engine, sql("SELECT k FROM STREAM t"), base)
    settings = {"spark.sql.session.timeZone": zone}
    with pytest.raises(EngineConfigurationError, match=re.escape(zone)) as refused:
        engine.stage(found, base, folder=tmp_path / "x", spark_conf=settings)
    assert "from_utc_timestamp" in refused.value.hint
    with pytest.raises(EngineConfigurationError):
        EmbeddedEngine(configuration=settings)


def test_the_rows_of_empty_inputs_are_none(engine, tmp_path):
    schema = engine.parse_schema("k INT")
    batch = engine.stage(
        engine.plan(sql("SELECT k FROM STREAM t")),
        lambda _: EmptyInput(schema),
        folder=tmp_path / "rows",
        expectations=[Expectation("e", "k > 0")],
        sequence_by="k + 1",
    )
    assert batch.files == ()
    assert batch.sequence_type.simpleString() == "int"
