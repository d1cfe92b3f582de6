"""Avro files give columns by their schema, with Spark's types for Avro's."""

from __future__ import annotations

import contextlib
import io
import json
import random
import sys
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal

import duckdb
import fastavro
import pytest

from millpond.errors.file_formats import (
    FileReaderMissingError,
    FileUnreadableError,
    UnsupportedFormatOptionError,
)
from tests.files.format_reads import read

INSTANT = datetime(2024, 1, 2, 3, 4, 5, 123000, tzinfo=UTC)
LOCAL = datetime(2024, 1, 2, 3, 4, 5, 123456)  # noqa: DTZ001 - a time without a zone
POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}


def schema_of(**fields):
    return {
        "type": "record",
        "name": "Row",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }


@pytest.fixture
def write(tmp_path):
    def write(schema, rows, name="a.avro", codec="null", **options):
        path = tmp_path / name
        with path.open("wb") as output:
            fastavro.writer(output, schema, rows, codec=codec, **options)
        return path

    return write


@pytest.mark.parametrize(
    ("kind", "value", "spark", "read_value"),
    [
        ("boolean", True, "boolean", True),
        ("int", -5, "int", -5),
        ("long", 2**40, "bigint", 2**40),
        ("float", 0.5, "float", 0.5),
        ("double", 0.1, "double", 0.1),
        ("string", "ä", "string", "ä"),
        ("bytes", b"\x00\xff", "binary", b"\x00\xff"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", "binary", b"ab"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "string", "B"),
        ({"type": "int", "logicalType": "date"}, date(2024, 1, 2), "date", date(2024, 1, 2)),
        ({"type": "long", "logicalType": "timestamp-millis"}, INSTANT, "timestamp", INSTANT),
        ({"type": "long", "logicalType": "timestamp-micros"}, INSTANT, "timestamp", INSTANT),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, LOCAL, "timestamp_ntz", LOCAL),
        ({"type": "int", "logicalType": "time-millis"}, time(0, 0, 1), "int", 1000),
        ({"type": "long", "logicalType": "time-micros"}, time(0, 0, 1), "bigint", 1_000_000),
        ({"type": "string", "logicalType": "uuid"}, uuid.UUID(int=5), "string", str(uuid.UUID(int=5))),
        ({"type": "string", "logicalType": "unheard-of"}, "x", "string", "x"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
         Decimal("-12.34"), "decimal(10,2)", Decimal("-12.34")),
        ({"type": "fixed", "name": "D", "size": 8, "logicalType": "decimal", "precision": 18, "scale": 4},
         Decimal("1.5000"), "decimal(18,4)", Decimal("1.5000")),
        ({"type": "array", "items": ["null", "int"]}, [1, None], "array<int>", [1, None]),
        ({"type": "map", "values": POINT}, {"k": {"x": 1}}, "map<string,struct<x:int>>", {"k": {"x": 1}}),
        (POINT, {"x": 1}, "struct<x:int>", {"x": 1}),
        (["int", "long"], 5, "bigint", 5),
        (["float", "double"], 0.5, "double", 0.5),
        (["int", "string"], "q", "struct<member0:int,member1:string>", {"member0": None, "member1": "q"}),
        (["string", POINT, {"type": "array", "items": "int"}], {"x": 3},
         "struct<member0:string,member1:struct<x:int>,member2:array<int>>",
         {"member0": None, "member1": {"x": 3}, "member2": None}),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip # a row a line
def test_each_type_is_the_one_that_spark_gives_it(write, kind, value, spark, read_value):
    branches = kind if isinstance(kind, list) else [kind]
    path = write(schema_of(v=["null", *branches]), [{"v": value}, {"v": None}])
    answer = read("avro", path)
    assert answer.schema == f"v:{spark}"
    assert answer.rows == [{"v": read_value}, {"v": None}]
    assert answer.rescued == [None, None]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "snappy", "zstandard"])
def test_every_codec_of_spark_is_read(write, codec):
    rows = [{"n": n, "s": f"text {n}"} for n in range(20_000)]
    path = write(schema_of(n="long", s="string"), rows, codec=codec)
    answer = read("avro", path)
    assert sorted(answer.rows, key=lambda row: row["n"]) == rows


def test_columns_are_merged_found_by_name_and_rescued(write):
    paths = [
        write(schema_of(a="int"), [{"a": 1}], "1.avro"),
        write(schema_of(A="long", b="string"), [{"A": 2**40, "b": "x"}], "2.avro"),
    ]
    assert read("avro", paths).schema == "a:bigint,b:string"
    answer = read("avro", paths, "a INTEGER")
    by_file = dict(zip(answer.indexes, zip(answer.rows, answer.rescued, strict=True), strict=True))
    assert by_file == {0: ({"a": 1}, None), 1: ({"a": None}, {"A": 2**40, "b": "x"})}
    assert answer.new_columns == "b:string"


def test_records_are_resolved_to_the_schema_of_the_option(write):
    path = write(schema_of(a="int", b="string"), [{"a": 1, "b": "x"}])
    asked = schema_of(a="long") | {}
    asked["fields"].append({"name": "c", "type": "string", "default": "none"})
    answer = read("avro", path, avroSchema=json.dumps(asked))
    assert (answer.schema, answer.rows) == ("a:bigint,c:string", [{"a": 1, "c": "none"}])


def test_values_that_are_no_records_are_one_column(write):
    answer = read("avro", write("int", [1, 2]))
    assert (answer.schema, answer.rows) == ("value:int", [{"value": 1}, {"value": 2}])


def test_a_type_that_contains_itself_is_refused(write):
    node = schema_of(v="int")
    node["fields"].append({"name": "next", "type": ["null", "Row"]})
    path = write(node, [{"v": 1, "next": None}])
    with pytest.raises(FileUnreadableError, match=r"a\.avro.*Row contains itself"):
        read("avro", path)


@pytest.mark.parametrize("kept", [0, 3, 0.3, 0.9, -1])
def test_a_file_that_is_cut_off_is_an_error_that_names_it(write, kept):
    path = write(schema_of(n="long"), [{"n": n} for n in range(5000)], codec="deflate")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept) if isinstance(kept, float) else kept])
    with pytest.raises(FileUnreadableError, match=r"file:.*a\.avro can't be read"):
        read("avro", path, "n BIGINT")


def test_a_block_whose_length_is_damaged_is_an_error_and_takes_no_memory(write):
    schema = schema_of(n="long")
    path = write(schema, [])
    sync = path.read_bytes()[-16:]
    length = io.BytesIO()
    fastavro.schemaless_writer(length, "long", 1 << 60)
    path.write_bytes(path.read_bytes() + b"\x02" + length.getvalue() + b"\x02" + sync)
    with pytest.raises(FileUnreadableError, match="ends within a block"):
        read("avro", path, "n BIGINT")


def test_any_damage_is_an_error_or_gives_rows(write):
    path = write(schema_of(n="long", s="string"), [{"n": n, "s": str(n)} for n in range(500)])
    content = path.read_bytes()
    source = random.Random(7)
    for _ in range(30):
        damaged = bytearray(content)
        for _ in range(source.choice([1, 8, 64])):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        path.write_bytes(bytes(damaged))
        with contextlib.suppress(FileUnreadableError, duckdb.Error):
            read("avro", path, "n BIGINT, s VARCHAR")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("avroSchemaUrl", "file:///schema.avsc"),
        ("positionalFieldMatching", "true"),
        ("enableStableIdentifiersForUnionType", "true"),
    ],
)
def test_options_that_would_change_the_meaning_are_refused(write, option, value):
    with pytest.raises(UnsupportedFormatOptionError, match=option):
        read("avro", write("int", [1]), **{option: value})


def test_without_the_reader_it_is_said_how_to_get_it(write, monkeypatch):
    path = write(schema_of(n="long"), [])
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(FileReaderMissingError, match=r"millpond\[avro\]"):
        read("avro", path)
