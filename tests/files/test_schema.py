"""The columns of files: kept as they were found, with hints over them, folders beside them."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest
from pyspark.sql.types import (
    ArrayType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from millpond.errors.file_formats import FileUnreadableError
from millpond.errors.file_reads import KeptColumnsUnreadableError
from millpond.files import schema as schema_of_files
from millpond.files.listing import list_files
from millpond.files.options import Dialect, FileOptions
from millpond.files.schema import FileSchemas, KeptColumns, file_columns, infer
from millpond.storage import LocalStore

OPTIONS = FileOptions("json", ("/data",), rescued_column="_rescued_data")
KEPT = KeptColumns(
    StructType().add("a", LongType()).add("s", StructType().add("x", StringType())),
    StructType().add("day", DateType()),
)


@pytest.fixture
def schemas(tmp_path):
    return FileSchemas(tmp_path / "schemas", LocalStore())


def test_what_was_found_is_kept_for_reads_of_the_same_files(schemas):
    assert schemas.kept(OPTIONS) is None
    schemas.keep(OPTIONS, KEPT)
    assert schemas.kept(OPTIONS) == KEPT
    assert schemas.kept(FileOptions("csv", ("/data",))) is None
    assert schemas.kept(FileOptions("json", ("/other",))) is None


def test_without_a_store_nothing_is_kept(tmp_path):
    schemas = FileSchemas(tmp_path, None)
    schemas.keep(OPTIONS, KEPT)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "{", "[]", '{"inside": 3}'])
def test_a_torn_file_is_told_of_with_what_to_do(schemas, tmp_path, text):
    schemas.keep(OPTIONS, KEPT)
    (path,) = (tmp_path / "schemas").iterdir()
    path.write_text(text)
    with pytest.raises(KeptColumnsUnreadableError, match=r"(?s)can't be read.*remove the file"):
        schemas.kept(OPTIONS)


def test_columns_of_folders_come_behind_those_inside_and_the_rescued_one_last():
    columns = file_columns(OPTIONS, KEPT)
    assert columns.schema.names == ["a", "s", "day", "_rescued_data"]
    assert columns.inside.names == ["a", "s"]
    assert columns.of_folders == {"day"}
    assert columns.input_schema.names[-1] == "__millpond_metadata"


def test_hints_change_types_and_add_columns():
    hints = StructType().add("A", IntegerType()).add("n", DecimalType(9, 2))
    columns = file_columns(FileOptions("json", ("/data",), schema_hints=hints), KEPT)
    assert columns.schema["a"].dataType == IntegerType()
    assert columns.schema["n"].dataType == DecimalType(9, 2)


@pytest.mark.parametrize(
    ("hint", "type_text"),
    [
        ("l.element.x", "array<struct<x:decimal(9,2),y:string>>"),
        ("L.Element.z", "array<struct<x:int,y:string,z:decimal(9,2)>>"),
        ("m.key", "map<decimal(9,2),array<int>>"),
        ("m.value.element", "map<string,array<decimal(9,2)>>"),
        ("new.inside", "struct<inside:decimal(9,2)>"),
        ("new.element.x", "array<struct<x:decimal(9,2)>>"),
        ("t.element", "array<decimal(9,2)>"),
    ],
)
def test_hints_reach_into_arrays_and_maps(hint, type_text):
    inside = (
        StructType()
        .add("l", ArrayType(StructType().add("x", IntegerType()).add("y", StringType())))
        .add("m", MapType(StringType(), ArrayType(IntegerType())))
        .add("t", StringType())
    )
    hints = StructType().add(hint, DecimalType(9, 2))
    columns = file_columns(
        FileOptions("json", ("/data",), schema_hints=hints), replace(KEPT, inside=inside)
    )
    found = columns.schema[hint.split(".")[0].lower()].dataType
    assert found.simpleString() == type_text


def test_a_schema_of_the_user_is_taken_as_it_is_and_folders_fill_what_it_names():
    schema = StructType().add("day", StringType()).add("a", IntegerType())
    options = FileOptions("json", ("/data",), dialect=Dialect.READ_FILES, schema=schema)
    columns = file_columns(options, KEPT)
    assert columns.schema == schema
    assert columns.inside.names == ["a"]
    assert (columns.of_folders, columns.rescued) == ({"day"}, None)


@pytest.mark.parametrize("named", [True, False])
def test_a_plain_format_has_columns_of_folders_behind_the_given_ones_whether_named_or_not(named):
    schema = StructType().add("a", IntegerType())
    if named:
        schema = StructType().add("day", StringType()).add("a", IntegerType())
    columns = file_columns(FileOptions("json", ("/data",), schema=schema), KEPT)
    assert columns.schema.names == ["a", "day"]
    expected = StringType() if named else KEPT.of_folders["day"].dataType
    assert columns.schema["day"].dataType == expected
    assert (columns.inside.names, columns.of_folders) == (["a"], {"day"})


def test_columns_are_inferred_from_later_files_where_no_earlier_one_can_be_read(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(schema_of_files, "_SAMPLE_FILES", 2)
    for number in range(5):
        (tmp_path / f"{number}.csv.gz").write_text("no gzip")
    options = FileOptions("csv", (str(tmp_path),), format_options={"header": "true"})
    listed = list_files(options, root=tmp_path)
    with pytest.raises(FileUnreadableError, match=r"0\.csv\.gz"):
        infer(listed, options, root=tmp_path)
    (tmp_path / "5.csv.gz").write_bytes(gzip.compress(b"v\n1\n"))
    listed += list_files(options, root=tmp_path)[-1:]
    assert infer(listed, options, root=tmp_path).inside.names == ["v"]
