"""Files are skipped by their statistics only where they surely hold no wanted row."""

from __future__ import annotations

import json
import math
import tempfile
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from millpond.delta import (
    AddFile,
    ColumnRange,
    FileStats,
    Metadata,
    Protocol,
    Snapshot,
    Table,
    files_overlapping,
)
from millpond.delta.stats import cut_text, stats_of_copy
from tests.delta.tables import TABLE_ID, append, columns, create, delete_where


def stats_text(table) -> dict:
    (file,) = table.snapshot().files.values()
    return json.loads(file.stats_text)


def test_statistics_are_written_as_the_protocol_has_them(tmp_path):
    schema = columns(
        n=LongType(),
        d=DecimalType(15, 2),
        s=StringType(),
        day=DateType(),
        z=TimestampType(),
        l=TimestampNTZType(),
        b=BooleanType(),
        inner=columns(x=LongType(), y=StringType()),
    )
    table = create(tmp_path / "t", schema)
    append(
        table,
        """SELECT range AS n, 1234567890120.25::DECIMAL(15,2) + range AS d,
        repeat('z', 40) || range AS s, DATE '2024-02-28' + range::INT AS day,
        TIMESTAMPTZ '2024-01-01 00:00:00.000001+00' AS z,
        TIMESTAMP '1969-12-31 23:59:59.999999' AS l, true AS b,
        {'x': if(range = 1, NULL, range), 'y': 'a'} AS inner FROM range(3)""",
    )
    found = stats_text(table)
    assert found == {
        "numRecords": 3,
        "tightBounds": True,
        "minValues": {
            "n": 0,
            "d": 1234567890120.25,
            "s": "z" * 32,
            "day": "2024-02-28",
            "z": "2024-01-01T00:00:00.000Z",
            "l": "1969-12-31T23:59:59.999",
            "inner": {"x": 0, "y": "a"},
        },
        "maxValues": {
            "n": 2,
            "d": 1234567890122.25,
            "s": "z" * 31 + "{",
            "day": "2024-03-01",
            "z": "2024-01-01T00:00:00.001Z",
            "l": "1970-01-01T00:00:00.000",
            "inner": {"x": 2, "y": "a"},
        },
        "nullCount": {
            "n": 0,
            "d": 0,
            "s": 0,
            "day": 0,
            "z": 0,
            "l": 0,
            "b": 0,
            "inner": {"x": 1, "y": 0},
        },
    }
    (file,) = table.snapshot().files.values()
    assert '"d":1234567890120.25' in file.stats_text  # in full, not as a double


def test_a_decimal_with_more_digits_than_a_double_holds_has_no_bounds(tmp_path):
    """Sail reads a bound as a double, and takes a column's value from two equal ones."""
    table = create(tmp_path / "t", columns(n=LongType(), d=DecimalType(38, 18)))
    append(table, "SELECT 1 AS n, 1.000000000000000001::DECIMAL(38,18) AS d")
    assert stats_text(table)["minValues"] == {"n": 1}
    assert stats_text(table)["nullCount"] == {"n": 0, "d": 0}


@pytest.mark.parametrize("values", ["'1.5', '2.5'", "'1.5', 'nan'", "'-inf', '1.0'"])
def test_floats_have_no_bounds_since_they_would_leave_nan_out(tmp_path, values):
    table = create(tmp_path / "t", columns(x=DoubleType()))
    append(table, f"SELECT unnest([{values}]::DOUBLE[]) AS x")
    found = stats_text(table)
    assert "x" not in found["minValues"]
    assert "x" not in found["maxValues"]
    assert not table.snapshot().has_misleading_bounds


def test_bounds_of_floats_by_another_writer_are_misleading(tmp_path):
    write_deltalake(tmp_path / "t", pa.table({"x": [1.5, float("nan")]}))
    assert Table(tmp_path / "t").snapshot().has_misleading_bounds


def test_times_that_readers_can_not_parse_have_no_bounds(tmp_path):
    table = create(tmp_path / "t", columns(day=DateType(), z=TimestampType()))
    append(
        table,
        "SELECT DATE '20000-01-01' AS day, TIMESTAMPTZ '9999-12-31 23:59:59.999999+00' AS z "
        "UNION ALL SELECT DATE '0044-03-15 (BC)', TIMESTAMPTZ '2024-01-01 00:00:00+00'",
    )
    found = stats_text(table)
    assert (found["minValues"], found["maxValues"]) == ({"z": "2024-01-01T00:00:00.000Z"}, {})


def test_only_the_first_columns_have_statistics(tmp_path):
    schema = columns(**{f"c{number}": LongType() for number in range(40)})
    table = create(tmp_path / "t", schema)
    append(table, "SELECT 1 AS c0, 1 AS c31, 1 AS c32")
    assert list(stats_text(table)["minValues"]) == ["c0", "c31"]
    few = create(tmp_path / "few", schema, dataSkippingNumIndexedCols="2")
    append(few, "SELECT 1 AS c0, 1 AS c1, 1 AS c2")
    assert list(stats_text(few)["maxValues"]) == ["c0", "c1"]


@given(st.text(min_size=1, max_size=80))
@example("\ud7ff" * 40)
@example("\U0010ffff" * 40)
@example("a" * 31 + "\U0010ffff" * 9)
def test_cut_texts_bound_the_whole_text(text):
    low, high = cut_text(text, upper=False), cut_text(text, upper=True)
    assert low is not None
    assert low.encode() <= text.encode()
    assert len(low) <= 32
    if high is None:
        assert text.startswith("\U0010ffff" * 32)
    else:
        assert high.encode() >= text.encode()
        assert len(high) <= 32


def holding(data_type, *, low=None, high=None, nulls=0, rows=10, tight=True) -> Snapshot:
    stats = FileStats(
        rows,
        {} if low is None else {"x": low},
        {} if high is None else {"x": high},
        {} if nulls is None else {"x": nulls},
        tight,
    )
    file = AddFile("f.parquet", 1, 1, {}, stats.to_text())
    return snapshot_of(file, Metadata(TABLE_ID, columns(x=data_type)))


def snapshot_of(file: AddFile, metadata: Metadata) -> Snapshot:
    return Snapshot(None, 1, 1, Protocol(1, 2), metadata, {file.path: file})


def keeps(snapshot: Snapshot, low, high, *, nulls=False) -> bool:
    return bool(files_overlapping(snapshot, {"x": ColumnRange(low, high, nulls=nulls)}))


MOMENT = datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("data_type", "low", "high", "inside", "outside"),
    [
        (LongType(), 5, 9, (9, 12), (10, 12)),
        (StringType(), "b", "d", ("a", "b"), ("a", "ab")),
        (DoubleType(), 5.5, 9.5, (9.5, 12.0), (9.6, 12.0)),
        (
            DecimalType(10, 2),
            5.5,
            9.5,
            (Decimal("9.50"), Decimal(12)),
            (Decimal("9.51"), Decimal(12)),
        ),
        (
            DateType(),
            "2024-01-05",
            "2024-01-09",
            (date(2024, 1, 1), date(2024, 1, 5)),
            (date(2024, 1, 1), date(2024, 1, 4)),
        ),
        (
            TimestampType(),
            "2024-01-01T12:00:00.000Z",
            "2024-01-01T13:00:00.000+01:00",
            (MOMENT, MOMENT),
            (MOMENT + timedelta(milliseconds=2), MOMENT + timedelta(days=1)),
        ),
        (
            TimestampNTZType(),
            "2024-01-01T12:00:00",
            "2024-01-01T12:00:00",
            (MOMENT.replace(tzinfo=None), MOMENT),
            (MOMENT - timedelta(seconds=2), MOMENT - timedelta(seconds=1)),
        ),
    ],
)
def test_ranges_are_compared_by_type(data_type, low, high, inside, outside):
    snapshot = holding(data_type, low=low, high=high)
    assert keeps(snapshot, *inside)
    assert not keeps(snapshot, *outside)


@pytest.mark.parametrize(
    ("data_type", "low", "high", "wanted"),
    [
        (LongType(), None, None, 5),
        (LongType(), 6, None, 7),
        (LongType(), "odd", "odd", 5),
        (DoubleType(), 1.0, 2.0, math.nan),  # statistics of others leave NaN out
        (FloatType(), 0.1, 0.1, 0.10000000149011612),  # a 32-bit float's shortest text
        (
            DecimalType(38, 18),
            0.1234567890123457,
            0.1234567890123457,
            Decimal("0.123456789012345678"),
        ),  # written as a double
        (
            TimestampType(),
            "2024-01-01T12:00:00.000Z",
            "2024-01-01T12:00:00.000Z",
            MOMENT + timedelta(microseconds=999),
        ),  # cut off
        (TimestampType(), "2020-01-01T00:00:00", "2020-01-01T00:00:00", MOMENT),  # of no known zone
        (BooleanType(), False, False, True),
        (DateType(), "+12000-01-01", "+12000-01-01", date(2024, 1, 1)),
    ],
)
def test_doubtful_statistics_keep_a_file(data_type, low, high, wanted):
    assert keeps(holding(data_type, low=low, high=high), wanted, wanted)


@pytest.mark.parametrize(
    ("nulls", "tight", "wanted", "kept"),
    [
        (0, True, ColumnRange(nulls=True), False),
        (0, True, ColumnRange(50, 60, nulls=True), False),
        (3, True, ColumnRange(nulls=True), True),
        (None, True, ColumnRange(nulls=True), True),
        (10, True, ColumnRange(1, 9), False),
        (10, False, ColumnRange(1, 9), False),
        (3, False, ColumnRange(nulls=True), True),
        (3, True, ColumnRange(5, 5), True),
    ],
)
def test_nulls_are_looked_for_only_where_some_may_be(nulls, tight, wanted, kept):
    snapshot = holding(LongType(), low=5, high=9, nulls=nulls, tight=tight)
    assert bool(files_overlapping(snapshot, {"x": wanted})) is kept


def test_statistics_that_can_not_be_read_keep_a_file():
    snapshot = holding(LongType(), low=5, high=9)
    (file,) = snapshot.files.values()
    for text in (None, "", "{", "[]", '{"minValues": 5}'):
        broken = snapshot_of(replace(file, stats_text=text), snapshot.metadata)
        assert keeps(broken, 100, 100)


def test_a_column_that_the_statistics_lack_keeps_a_file():
    snapshot = holding(LongType(), low=5, high=9)
    wider = columns(x=LongType(), y=LongType())
    snapshot = replace(snapshot, metadata=replace(snapshot.metadata, schema=wider))
    assert files_overlapping(snapshot, {"y": ColumnRange(1, 1)})
    assert files_overlapping(snapshot, {"unknown": ColumnRange(1, 1)})
    assert not files_overlapping(snapshot, {"y": ColumnRange(1, 1), "x": ColumnRange(1, 1)})


@pytest.mark.parametrize(
    ("data_type", "sql", "value", "other"),
    [
        (StringType(), "'a/ é%'", "a/ é%", "b"),
        (LongType(), "7", 7, 8),
        (DateType(), "DATE '2024-01-01'", date(2024, 1, 1), date(2024, 1, 2)),
        (DoubleType(), "'nan'", math.nan, None),
        (FloatType(), "1e-45", 1.401298464324817e-45, 2.802596928649634e-45),
        (
            TimestampType(),
            "'2024-01-01 12:00:00.000001+00'",
            MOMENT + timedelta(microseconds=1),
            MOMENT,
        ),
        (DecimalType(10, 2), "1.5", Decimal("1.5"), Decimal("1.51")),
    ],
)
def test_partition_values_are_compared_exactly(tmp_path, data_type, sql, value, other):
    table = create(tmp_path / "t", columns(k=LongType(), x=data_type), partitioned_by=["x"])
    append(table, f"SELECT 1 AS k, {sql} AS x")
    assert keeps(table.snapshot(), value, value)
    if other is not None:
        assert not keeps(table.snapshot(), other, other) or isinstance(data_type, TimestampType)
    assert not keeps(table.snapshot(), None, None, nulls=True)
    append(table, "SELECT 2 AS k, NULL AS x")
    assert len(files_overlapping(table.snapshot(), {"x": ColumnRange(nulls=True)})) == 1


def test_deleted_rows_do_not_make_a_file_be_skipped_wrongly(tmp_path):
    table = create(tmp_path / "t", columns(x=LongType()))
    append(table, "SELECT unnest([1, 5, 9, NULL]) AS x")
    snapshot = delete_where(table, "x = 1 OR x IS NULL")
    assert keeps(snapshot, 5, 5)
    assert keeps(snapshot, None, None, nulls=True)
    assert not keeps(snapshot, 10, 10)


CONNECTION = duckdb.connect()
VALUES = {
    "long": (LongType(), "BIGINT", st.integers(-(2**63), 2**63 - 1)),
    "double": (DoubleType(), "DOUBLE", st.floats()),
    "float": (FloatType(), "FLOAT", st.floats(width=32)),
    "string": (
        StringType(),
        "VARCHAR",
        st.text(st.characters(exclude_categories=["Cs"]), max_size=50),
    ),
    "decimal": (DecimalType(38, 9), "DECIMAL(38,9)", st.decimals(-(10**28), 10**28, places=9)),
    "timestamp": (TimestampNTZType(), "TIMESTAMP", st.datetimes()),
}


@pytest.mark.parametrize("name", VALUES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_file_is_skipped_that_holds_a_wanted_value(name, data):
    """Statistics as DuckDB reports them, through their JSON, against every value of the file."""
    data_type, sql_type, strategy = VALUES[name]
    values = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=5))
    kinds = {
        "long": pa.int64(),
        "double": pa.float64(),
        "float": pa.float32(),
        "string": pa.string(),
        "decimal": pa.decimal128(38, 9),
        "timestamp": pa.timestamp("us"),
    }
    with tempfile.TemporaryDirectory() as folder, CONNECTION.cursor() as cursor:
        cursor.register("given", pa.table({"x": pa.array(values, kinds[name])}))
        (row,) = cursor.execute(
            f"COPY (SELECT x::{sql_type} AS x FROM given) TO '{Path(folder) / 'f.parquet'}' "
            "(FORMAT parquet, RETURN_STATS true)"
        ).fetchall()
    schema = columns(x=data_type)
    stats = stats_of_copy(
        rows=row[1], column_statistics=row[4], schema=schema, partition_columns=()
    )
    file = AddFile("f.parquet", 1, 1, {}, stats.to_text())
    snapshot = snapshot_of(file, Metadata(TABLE_ID, schema))
    for value in values:
        if value is None:
            assert keeps(snapshot, None, None, nulls=True)
        else:
            assert keeps(snapshot, value, value)
