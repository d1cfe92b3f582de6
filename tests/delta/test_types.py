"""Every type that Delta stores comes back as it went in, from every reader."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from millpond.delta import Metadata, Table, duckdb_type
from millpond.errors.delta import (
    InvalidTableSchemaError,
    NotNullViolatedError,
    UnsupportedDeltaTypeError,
)
from tests.delta.tables import TABLE_ID, append, columns, create, delete_where, rows
from tests.readers import READERS

NESTED = StructType(
    [
        StructField("a", IntegerType()),
        StructField("b", StructType([StructField("c d", ArrayType(StringType()))])),
    ]
)

# Name: Spark type, and values as (DuckDB expression, Python value).
TYPES = {
    "boolean": (BooleanType(), [("true", True), ("false", False)]),
    "byte": (ByteType(), [("-128", -128), ("127", 127)]),
    "short": (ShortType(), [("-32768", -32768), ("32767", 32767)]),
    "integer": (IntegerType(), [("-2147483648", -(2**31)), ("2147483647", 2**31 - 1)]),
    "long": (LongType(), [("-9223372036854775808", -(2**63)), (f"{2**63 - 1}", 2**63 - 1)]),
    "float": (
        FloatType(),
        [("0.1::FLOAT", 0.10000000149011612), ("'nan'", math.nan), ("'-inf'", -math.inf)],
    ),
    "double": (
        DoubleType(),
        [("'-0.0'", -0.0), ("1.7976931348623157e308", 1.7976931348623157e308), ("'nan'", math.nan)],
    ),
    "decimal_small": (DecimalType(5, 2), [("-999.99", Decimal("-999.99")), ("0", Decimal("0.00"))]),
    "decimal_wide": (
        DecimalType(38, 18),
        [
            (
                "12345678901234567890.123456789012345678",
                Decimal("12345678901234567890.123456789012345678"),
            )
        ],
    ),
    "string": (
        StringType(),
        [("''", ""), ("'it''s ß 🦆'", "it's ß 🦆"), ("repeat('é', 500)", "é" * 500)],
    ),
    "binary": (BinaryType(), [("'\\x00\\xFF'::BLOB", b"\x00\xff"), ("''::BLOB", b"")]),
    "date": (DateType(), [("'0001-01-01'", date(1, 1, 1)), ("'9999-12-31'", date(9999, 12, 31))]),
    "timestamp": (
        TimestampType(),
        [
            ("'1969-12-31 23:59:59.999999+00'", datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
            ("'2024-03-31 02:30:00+02'", datetime(2024, 3, 31, 0, 30, tzinfo=UTC)),
        ],
    ),
    "timestamp_ntz": (
        TimestampNTZType(),
        [("'2024-03-31 02:30:00.000001'", datetime.fromisoformat("2024-03-31T02:30:00.000001"))],
    ),
    "array": (
        ArrayType(ArrayType(LongType())),
        [("[[1, NULL], NULL, []]", [[1, None], None, []]), ("[]", [])],
    ),
    "map": (
        MapType(StringType(), DecimalType(10, 2)),
        [("MAP {'a': 1.5, 'b': NULL}", [("a", Decimal("1.50")), ("b", None)]), ("MAP {}", [])],
    ),
    "struct": (
        NESTED,
        [
            ("{'a': 1, 'b': {'c d': ['x', NULL]}}", {"a": 1, "b": {"c d": ["x", None]}}),
            ("{'a': NULL, 'b': NULL}", {"a": None, "b": None}),
        ],
    ),
}

# Polars has no type for maps, and gives only their keys.
UNREADABLE = {("map", "polars")}


def normal(value):
    if isinstance(value, dict):
        return {key: normal(item) for key, item in value.items()}
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value


def as_map(value):
    """Readers give a map as a list of pairs, or of key and value."""
    if value is None:
        return None
    return [tuple(pair.values()) if isinstance(pair, dict) else tuple(pair) for pair in value]


@pytest.mark.parametrize("name", TYPES)
def test_values_of_each_type_come_back_from_every_reader(tmp_path, name):
    data_type, values = TYPES[name]
    table = create(tmp_path / "t", columns(n=LongType(), x=data_type))
    expressions = [expression for expression, _ in values] + ["NULL"]
    append(
        table,
        " UNION ALL ".join(
            f"SELECT {number} AS n, CAST({expression} AS {duckdb_type(data_type)}) AS x"
            for number, expression in enumerate(expressions)
        ),
    )
    expected = [*(normal(value) for _, value in values), None]
    for reader in ["millpond", *READERS]:
        if (name, reader) in UNREADABLE:
            continue
        found = rows(table.snapshot()) if reader == "millpond" else READERS[reader](table.path)
        found = [row["x"] for row in sorted(found, key=lambda row: row["n"])]
        if name == "map":
            found = [as_map(value) for value in found]
        assert (reader, [normal(value) for value in found]) == (reader, expected)


def test_parquet_types_are_those_that_delta_prescribes(tmp_path):
    schema = columns(**{name: data_type for name, (data_type, _) in TYPES.items()})
    table = create(tmp_path / "t", schema)
    values = ", ".join(f"{cases[0][0]} AS {name}" for name, (_, cases) in TYPES.items())
    snapshot = append(table, f"SELECT {values}")
    (file,) = snapshot.files.values()
    found = pq.read_schema(snapshot.file_path(file))
    assert {name: str(found.field(name).type) for name in found.names} == {
        "boolean": "bool",
        "byte": "int8",
        "short": "int16",
        "integer": "int32",
        "long": "int64",
        "float": "float",
        "double": "double",
        "decimal_small": "decimal128(5, 2)",
        "decimal_wide": "decimal128(38, 18)",
        "string": "string",
        "binary": "binary",
        "date": "date32[day]",
        "timestamp": "timestamp[us, tz=UTC]",
        "timestamp_ntz": "timestamp[us]",
        "array": "list<element: list<element: int64>>",
        "map": "map<string, decimal128(10, 2) ('map')>",
        "struct": "struct<a: int32, b: struct<c d: list<element: string>>>",
    }
    assert snapshot.protocol.reader_features == {"deletionVectors", "timestampNtz"}


def test_the_time_zone_of_the_machine_does_not_matter(tmp_path, monkeypatch):
    import time

    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        schema = columns(n=LongType(), z=TimestampType(), l=TimestampNTZType(), p=TimestampType())
        table = create(tmp_path / "t", schema, partitioned_by=["p"])
        moment = "TIMESTAMPTZ '2024-07-01 12:00:00+00'"
        append(table, f"SELECT 1 AS n, {moment} AS z, {moment} AS l, {moment} AS p")
        utc = datetime(2024, 7, 1, 12, tzinfo=UTC)
        (row,) = rows(table.snapshot())
        assert row == {"n": 1, "z": utc, "l": utc.replace(tzinfo=None), "p": utc}
    finally:
        monkeypatch.undo()
        time.tzset()


def test_columns_are_matched_by_name_and_cast(tmp_path):
    table = create(tmp_path / "t", columns(k=LongType(), v=StringType(), d=DecimalType(6, 2)))
    append(table, "SELECT 5 AS V, 7::TINYINT AS K, 'left out' AS other")
    assert rows(table.snapshot()) == [{"k": 7, "v": "5", "d": None}]


@pytest.mark.parametrize("data_type", [NullType(), DayTimeIntervalType(), CharType(3)])
def test_types_that_delta_has_not_are_refused(tmp_path, data_type):
    for schema in (columns(x=data_type), columns(x=ArrayType(data_type))):
        with pytest.raises(UnsupportedDeltaTypeError, match="'x'"):
            create(tmp_path / "t", schema)
    assert not Table(tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("schema", "partitioned_by", "reason"),
    [
        (columns(a=LongType(), A=LongType()), [], "occurs twice"),
        (columns(s=columns(x=LongType(), X=LongType())), [], "'s.X' occurs twice"),
        (columns(**{"a": LongType(), "": LongType()}), [], "A column has an empty name"),
        (columns(s=columns(**{"": LongType()})), [], "inside the column 's' has an empty name"),
        (columns(a=LongType()), ["b"], "'b' is not among"),
        (columns(a=LongType()), ["a"], "at least one column"),
        (StructType([]), [], "at least one column"),
        (columns(a=LongType(), b=ArrayType(LongType())), ["b"], "array<bigint>"),
        (columns(a=LongType(), b=BinaryType()), ["b"], "binary"),
        (columns(__millpond_sequence=LongType()), [], "needs the name itself"),
        (columns(FILE_ROW_NUMBER=LongType()), [], "needs the name itself"),
    ],
)
def test_schemas_that_no_table_may_have_are_refused(tmp_path, schema, partitioned_by, reason):
    with pytest.raises(InvalidTableSchemaError, match=reason):
        create(tmp_path / "t", schema, partitioned_by=partitioned_by)
    table = create(tmp_path / "t")
    with pytest.raises(InvalidTableSchemaError, match=reason):
        table.begin().set_metadata(Metadata(TABLE_ID, schema, tuple(partitioned_by)))


def test_nulls_in_a_column_that_is_not_null_are_refused_and_leave_no_file(tmp_path):
    schema = StructType([StructField("k", LongType(), False), StructField("v", StringType())])
    table = create(tmp_path / "t", schema)
    with pytest.raises(NotNullViolatedError, match="2 rows"):
        append(table, "SELECT unnest([1, NULL, 2, NULL]) AS k, 'a' AS v")
    assert [path.name for path in table.path.iterdir()] == ["_delta_log"]
    append(table, "SELECT 1 AS k, NULL AS v")
    assert READERS["delta-rs"](table.path) == [{"k": 1, "v": None}]


def test_nulls_in_a_partition_column_that_is_not_null_are_refused_and_leave_no_file(tmp_path):
    schema = StructType([StructField("p", StringType(), False), StructField("v", LongType())])
    table = create(tmp_path / "t", schema, partitioned_by=["p"])
    with pytest.raises(NotNullViolatedError, match="2 rows"):
        append(table, "SELECT unnest(['a', NULL, 'b', NULL]) AS p, 1 AS v")
    assert not list(table.path.glob("**/*.parquet"))


@pytest.mark.parametrize("name", ['a"b', "it's", "a b", "a.b", "é", "select", "filename", "`x`"])
def test_columns_of_any_name_can_be_stored_and_deleted_from(tmp_path, name):
    quoted = '"' + name.replace('"', '""') + '"'
    schema = columns(**{name: LongType(), "s": columns(**{name: StringType()})})
    table = create(tmp_path / "t", schema)
    append(
        table,
        f"SELECT range AS {quoted}, struct_pack({quoted} := range::VARCHAR) AS s FROM range(3)",
    )
    delete_where(table, f"{quoted} = 1")
    expected = [{name: 0, "s": {name: "0"}}, {name: 2, "s": {name: "2"}}]
    assert rows(table.snapshot()) == expected
    assert READERS["delta-rs"](table.path) == expected
    (stats,) = [file.stats for file in table.snapshot().files.values()]
    assert stats.max_values == {name: 2, "s": {name: "2"}}


@pytest.mark.parametrize("name", TYPES)
def test_a_value_that_fills_a_whole_file_comes_back_whole(tmp_path, name):
    """Readers may take such a value from the statistics, where both bounds are the same."""
    data_type, values = TYPES[name]
    table = create(tmp_path / "t", columns(n=LongType(), x=data_type))
    for number, (expression, _) in enumerate(values):
        append(table, f"SELECT {number} AS n, {expression} AS x FROM range(3)")
    for reader, read in READERS.items():
        if (name, reader) in UNREADABLE:
            continue
        found = {row["n"]: row["x"] for row in read(table.path)}
        for number, (_, value) in enumerate(values):
            given = as_map(found[number]) if name == "map" else found[number]
            assert (reader, normal(given)) == (reader, normal(value))
