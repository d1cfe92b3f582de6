"""Parquet files give columns by name, each as the type that is asked for where it fits."""

from __future__ import annotations

import contextlib
import random
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.errors.file_formats import FileColumnTypeError, FileUnreadableError
from tests.files.format_reads import read

MOMENT = datetime(2024, 1, 2, 3, 4, 5, 123456)  # noqa: DTZ001 - no zone - a time without a zone
INSTANT = MOMENT.replace(tzinfo=UTC)


@pytest.fixture
def write(tmp_path):
    def write(columns, name="a.parquet", **options):
        path = tmp_path / name
        pq.write_table(pa.table(columns), path, **options)
        return path

    return write


class TestTypes:
    @pytest.mark.parametrize(
        ("kind", "value", "spark", "read_value"),
        [
            (pa.bool_(), True, "boolean", True),
            (pa.int8(), -5, "tinyint", -5),
            (pa.uint8(), 200, "smallint", 200),
            (pa.uint16(), 60_000, "int", 60_000),
            (pa.uint32(), 4_000_000_000, "bigint", 4_000_000_000),
            (pa.uint64(), 2**64 - 1, "decimal(20,0)", Decimal(2**64 - 1)),
            (pa.float32(), 0.5, "float", 0.5),
            (pa.float16(), 0.5, "float", 0.5),
            (pa.float64(), 0.1, "double", 0.1),
            (pa.string(), "ä", "string", "ä"),
            (pa.dictionary(pa.int8(), pa.string()), "x", "string", "x"),
            (pa.binary(), b"\x00\xff", "binary", b"\x00\xff"),
            (pa.date32(), date(2024, 1, 2), "date", date(2024, 1, 2)),
            (pa.timestamp("us"), MOMENT, "timestamp_ntz", MOMENT),
            (pa.timestamp("us", "UTC"), INSTANT, "timestamp", INSTANT),
            (pa.time64("us"), time(1, 2, 3), "string", "01:02:03"),
            (pa.decimal128(30, 4), Decimal("1.5000"), "decimal(30,4)", Decimal("1.5000")),
            (pa.uuid(), uuid.UUID(int=5).bytes, "string", str(uuid.UUID(int=5))),
            (pa.list_(pa.int32()), [1, None], "array<int>", [1, None]),
            (pa.map_(pa.string(), pa.int64()), [("k", 1)], "map<string,bigint>", {"k": 1}),
            (pa.struct([("x", pa.int64())]), {"x": 1}, "struct<x:bigint>", {"x": 1}),
            (pa.null(), None, "string", None),
        ],
        ids=lambda value: str(value)[:20],
    )
    def test_each_type_is_the_one_that_holds_its_values(
        self, write, kind, value, spark, read_value
    ):
        answer = read("parquet", write({"v": pa.array([value, None], kind)}))
        assert answer.schema == f"v:{spark}"
        assert [row["v"] for row in answer.rows] == [read_value, None]
        assert answer.rescued == [None, None]

    def test_the_old_timestamps_of_spark_are_instants(self, write):
        path = write({"v": pa.array([MOMENT])}, use_deprecated_int96_timestamps=True)
        answer = read("parquet", path)
        assert (answer.schema, answer.rows) == ("v:timestamp", [{"v": INSTANT}])

    def test_nanoseconds_are_rounded_and_rescued_where_there_are_any(self, write):
        path = write({"v": pa.array([1_000_000_123_400, 1_000_000_123_000], pa.timestamp("ns"))})
        answer = read("parquet", path)
        assert [row["v"].microsecond for row in answer.rows] == [123, 123]
        assert answer.rescued == [{"v": "1970-01-01 00:16:40.0001234"}, None]
        assert read("parquet", path, rescues=False).rows == answer.rows


class TestColumns:
    def test_columns_are_found_by_name_in_any_case_and_are_null_where_missing(self, write):
        path = write({"Id": pa.array([1, 2]), "name": pa.array(["x", None])})
        answer = read("parquet", path, "id BIGINT, other DATE, NAME VARCHAR")
        assert answer.rows == [
            {"id": 1, "other": None, "NAME": "x"},
            {"id": 2, "other": None, "NAME": None},
        ]
        assert (answer.rescued, answer.new_columns) == ([None, None], "")

    def test_unasked_columns_are_told_and_rescued(self, write):
        path = write({"a": pa.array([1]), "b": pa.array([Decimal("1.50")])})
        answer = read("parquet", path, "a BIGINT")
        assert answer.new_columns == "b:decimal(3,2)"
        assert answer.rescued == [{"b": "1.50"}]

    def test_new_fields_of_structs_are_told_with_their_column(self, write):
        path = write({"s": pa.array([{"x": 1, "y": "q"}])})
        answer = read("parquet", path, "s STRUCT(x BIGINT)")
        assert answer.new_columns == "s:struct<x:bigint,y:string>"
        assert answer.rows == [{"s": {"x": 1}}]
        assert answer.rescued == [{"s": {"x": 1, "y": "q"}}]

    @pytest.mark.parametrize(
        ("kind", "values", "wanted", "read_values"),
        [
            (pa.int32(), [1], "BIGINT", [1]),
            (pa.int64(), [1, 2**31], "INTEGER", [1, None]),
            (pa.int64(), [1, 2**53 + 1], "DOUBLE", [1.0, None]),
            (pa.float64(), [1.0, 1.5], "BIGINT", [1, None]),
            (pa.float64(), [0.5, 0.1], "FLOAT", [0.5, None]),
            (pa.float64(), [1.25, 1.255], "DECIMAL(5,2)", [Decimal("1.25"), None]),
            (pa.int64(), [12, 1234], "DECIMAL(4,2)", [Decimal("12.00"), None]),
            (pa.int64(), [12], "VARCHAR", ["12"]),
            (pa.float64(), [1.5], "VARCHAR", [None]),
            (pa.string(), ["12"], "BIGINT", [None]),
            (pa.string(), ["x"], "BLOB", [b"x"]),
            (pa.binary(), [b"x", b"\xff"], "VARCHAR", ["x", None]),
            (pa.date32(), [date(2024, 1, 2)], "TIMESTAMP", [datetime(2024, 1, 2)]),  # noqa: DTZ001 - no zone
            (pa.timestamp("us"), [MOMENT], "TIMESTAMPTZ", [INSTANT]),
            (pa.timestamp("us", "UTC"), [INSTANT], "TIMESTAMP", [None]),
            (pa.list_(pa.int64()), [[1, 2**40]], "INTEGER[]", [[1, None]]),
            (pa.list_(pa.int64()), [[1]], "BIGINT", [None]),
        ],
        ids=lambda value: str(value)[:20],
    )
    def test_a_value_is_kept_exactly_or_rescued(self, write, kind, values, wanted, read_values):
        path = write({"v": pa.array(values, kind)})
        answer = read("parquet", path, f"v {wanted}")
        assert [row["v"] for row in answer.rows] == read_values
        for value, kept in zip(answer.rescued, read_values, strict=True):
            is_whole = kept is not None and (not isinstance(kept, list) or None not in kept)
            assert (value is None) == is_whole

    def test_without_a_rescued_column_a_value_that_does_not_fit_stops_the_read(self, write):
        path = write({"v": pa.array([1, 2**40])})
        with pytest.raises(duckdb.Error, match=r"a\.parquet: \[FILE_COLUMN_TYPE_MISMATCH\].*v"):
            read("parquet", path, "v INTEGER", rescues=False)


class TestSeveralFiles:
    def test_files_of_different_columns_are_merged(self, write):
        paths = [
            write({"a": pa.array([1], pa.int32())}, "1.parquet"),
            write({"b": pa.array(["x"]), "A": pa.array([2**40])}, "2.parquet"),
            write({"a": pa.array([3], pa.int32())}, "3.parquet"),
        ]
        answer = read("parquet", paths)
        assert answer.schema == "a:bigint,b:string"
        rows = sorted(zip(answer.indexes, map(tuple, map(dict.values, answer.rows)), strict=True))
        assert rows == [(0, (1, None)), (1, (2**40, "x")), (2, (3, None))]

    def test_types_with_nothing_in_common_are_refused_or_rescued(self, write):
        paths = [
            write({"a": pa.array([1])}, "1.parquet"),
            write({"a": pa.array(["x"])}, "2.parquet"),
        ]
        answer = read("parquet", paths)
        assert answer.schema == "a:bigint"
        rescued = dict(zip(answer.indexes, answer.rescued, strict=True))
        assert rescued == {0: None, 1: {"a": "x"}}
        with pytest.raises(FileColumnTypeError, match=r"2\.parquet"):
            read("parquet", paths, rescues=False)

    def test_a_name_with_signs_of_globs_means_the_one_file(self, write):
        paths = [
            write({"a": pa.array([1])}, "a[1]*?.parquet"),
            write({"a": pa.array([2])}, "a1x.parquet"),
        ]
        assert read("parquet", paths[0]).rows == [{"a": 1}]


class TestDamagedFiles:
    @pytest.mark.parametrize("kept", [0, 3, 100, 0.5, -1])
    def test_a_file_that_is_cut_off_is_an_error_that_names_it(self, write, kept):
        path = write({"a": pa.array(range(1000))})
        content = path.read_bytes()
        size = int(len(content) * kept) if isinstance(kept, float) else kept
        path.write_bytes(content[:size])
        with pytest.raises(FileUnreadableError, match=r"file:.*a\.parquet can't be read"):
            read("parquet", path)

    def test_any_damage_is_an_error_or_gives_rows(self, write):
        path = write({"a": pa.array(range(2000)), "b": pa.array([str(n) for n in range(2000)])})
        content = path.read_bytes()
        source = random.Random(7)
        for _ in range(30):
            damaged = bytearray(content)
            for _ in range(source.choice([1, 8, 64])):
                damaged[source.randrange(len(damaged))] = source.randrange(256)
            path.write_bytes(bytes(damaged))
            with contextlib.suppress(FileUnreadableError, duckdb.Error, UnicodeDecodeError):
                read("parquet", path, "a BIGINT, b VARCHAR")
