"""What a spec may say, and the line that is named where it says something else."""

import textwrap

import pytest

from millpond.errors.names import InvalidNameError
from millpond.errors.options import InvalidOptionError, UnknownOptionError
from millpond.errors.project import (
    SpecFieldError,
    SpecNotFoundError,
    SpecUnreadableError,
    StorageNotSupportedError,
)
from millpond.project import load_spec

LEAST = "name: shop\nstorage: store\n"


@pytest.fixture
def load(tmp_path):
    def write_and_load(text):
        path = tmp_path / "spark-pipeline.yml"
        if isinstance(text, str):
            text = textwrap.dedent(text).encode()
        path.write_bytes(text)
        return load_spec(path)

    return write_and_load


def test_all_fields_are_read(load, tmp_path):
    spec = load(
        """
        name: shop
        storage: store
        catalog: main
        database: sales
        configuration:
          region: north
          millpond.samples.scale: "0.5"
        libraries:
          - glob:
              include: transformations/**
          - file: {path: one.sql}
        """
    )
    assert spec.name == "shop"
    assert spec.path == (tmp_path / "spark-pipeline.yml").resolve()
    assert spec.root == tmp_path.resolve()
    assert spec.storage == tmp_path.resolve() / "store"
    assert (spec.catalog, spec.schema) == ("main", "sales")
    assert spec.configuration == {"region": "north", "millpond.samples.scale": "0.5"}
    assert [library.pattern for library in spec.libraries] == ["transformations/**", "one.sql"]
    assert spec.libraries[1].location.line == 12


@pytest.mark.parametrize("empty", ["", "catalog:\nschema:\nconfiguration:\nlibraries:\n"])
def test_what_is_left_out_or_empty_has_a_default(load, empty):
    spec = load(LEAST + empty)
    assert (spec.catalog, spec.schema) == ("spark_catalog", "default")
    assert (spec.configuration, spec.libraries) == ({}, ())


def test_schema_is_the_same_as_database(load):
    assert load(LEAST + "schema: sales").schema == "sales"
    with pytest.raises(SpecFieldError, match="database and schema"):
        load(LEAST + "schema: sales\ndatabase: sales")


@pytest.mark.parametrize(
    ("storage", "path"),
    [
        ("store/of/it", "{root}/store/of/it"),
        ("../beside", "{parent}/beside"),
        ("/lake/shop", "/lake/shop"),
        ("file:///lake/shop", "/lake/shop"),
        ("file:/lake/shop", "/lake/shop"),
        ("file://localhost/lake/shop", "/lake/shop"),
        ("FILE:///lake/a%20b", "/lake/a%20b"),
    ],
)
def test_a_storage_is_a_local_folder(load, tmp_path, storage, path):
    spec = load(f"name: shop\nstorage: {storage}")
    root = tmp_path.resolve()
    assert str(spec.storage) == path.format(root=root, parent=root.parent)


@pytest.mark.parametrize("storage", ["s3://bucket/a", "abfss://c@a.net/x", "dbfs:/x", "hdfs:///x"])
def test_a_storage_elsewhere_is_not_supported(load, storage):
    with pytest.raises(StorageNotSupportedError) as caught:
        load(f"name: shop\nstorage: {storage}")
    assert caught.value.where.line == 2


def test_a_nul_character_in_a_name_is_told_as_one(load):
    with pytest.raises(SpecFieldError, match="must not hold a NUL character"):
        load('name: "a\\0b"\nstorage: store\n')


@pytest.mark.parametrize("storage", ["file:store", "file://host/store", "file://", '""', '"\\0"'])
def test_a_storage_without_a_path_is_refused(load, storage):
    with pytest.raises(SpecFieldError, match="storage"):
        load(f"name: shop\nstorage: {storage}")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "lacks the field 'name'"),
        ("storage: a", 1, "lacks the field 'name'"),
        ("name: shop", 1, "lacks the field 'storage'"),
        ("name:\nstorage: a", 1, "lacks the field 'name'"),
        (
            LEAST + "storage: b",
            3,
            "'storage' stands twice in one block of the spec, first in line 2",
        ),
        (LEAST + "libary: []", 3, "has no field 'libary'"),
        (LEAST + "1: []", 3, "A key of The spec"),
        ("name: 2026\nstorage: a", 1, "name in the spec must be a string, not 2026 (a number)"),
        ("name: [a]\nstorage: a", 1, "name in the spec must be a string, not a list"),
        ("- name", 1, "The spec in the spec must be a block of keys"),
        (LEAST + "configuration: [a]", 3, "configuration in the spec must be a block"),
        (LEAST + "configuration:\n  a: b\n  c: 4", 5, "configuration value c"),
        (LEAST + "configuration:\n  a: true", 4, "not true (true or false)"),
        (LEAST + "configuration:\n  a:", 4, "configuration value a in the spec must be a string"),
        (LEAST + "configuration:\n  a: {b: c}", 4, "configuration value a"),
        (LEAST + "configuration:\n  a: 2026-01-01", 4, "not 2026-01-01 (a date)"),
        (LEAST + "configuration:\n  a: 2026-99-99", 4, "not 2026-99-99 (a date)"),
        (LEAST + "configuration:\n  a: b\n  a: c", 5, "'a' stands twice"),
        (LEAST + "libraries: transformations/**", 3, "libraries in the spec must be a list"),
        (LEAST + "libraries:\n  - a.sql", 4, "An entry of libraries in the spec must be a block"),
        (LEAST + "libraries:\n  - notebook: {path: a}", 4, "has no field 'notebook'"),
        (LEAST + "libraries:\n  - glob: {exclude: a}", 4, "has no field 'exclude'"),
        (LEAST + "libraries:\n  - glob: {}", 4, "lacks the field 'include'"),
        (LEAST + "libraries:\n  - {}", 4, "must have one key"),
        (LEAST + "libraries:\n  - {glob: {include: a}, file: {path: a}}", 4, "must have one key"),
        ("name: !!python/name:os.system ''\nstorage: a", 1, "must be a string, not of the type"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(load, text, line, words):
    with pytest.raises(SpecFieldError) as caught:
        load(text)
    assert words in caught.value.what
    assert caught.value.where.file == "spark-pipeline.yml"
    assert caught.value.where.line == line


def test_a_value_that_yaml_takes_for_a_number_needs_quotes(load):
    with pytest.raises(SpecFieldError) as caught:
        load(LEAST + "configuration:\n  spark.sql.shuffle.partitions: 4")
    assert caught.value.hint == 'put it in quotes: "4"'


def test_a_misspelt_field_is_recognised(load):
    with pytest.raises(SpecFieldError) as caught:
        load(LEAST + "libary: []")
    assert caught.value.hint == "did you mean libraries?"


@pytest.mark.parametrize(
    ("field", "name"), [("catalog", "a.b"), ("schema", "a..b"), ("schema", "'``'")]
)
def test_catalog_and_schema_are_names_of_one_part(load, field, name):
    with pytest.raises(InvalidNameError) as caught:
        load(LEAST + f"{field}: {name}")
    assert caught.value.where.line == 3


def test_a_quoted_name_may_hold_a_dot(load):
    assert load(LEAST + "schema: '`a.b`'").schema == "a.b"


def test_an_unknown_option_of_millpond_is_refused(load):
    with pytest.raises(UnknownOptionError) as caught:
        load(LEAST + "configuration:\n  a: b\n  millpond.sample.scale: '1'")
    assert caught.value.hint == "did you mean millpond.samples.scale?"
    assert caught.value.where.line == 5


def test_a_wrong_option_of_millpond_is_refused(load):
    with pytest.raises(InvalidOptionError, match=r"millpond.samples.scale must be a number"):
        load(LEAST + "configuration:\n  millpond.samples.scale: big")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("name: shop\nstorage: [a", 2),
        ("name: shop\n\tstorage: a", 2),
        ("name: 'shop\nstorage: a", None),
        ("name: *shop\nstorage: a", 1),
        ("name: shop\n---\nname: shop", 2),
        (b"name: sh\xffop", None),
        ("name: sh\x07op", None),
        ("[" * 5000, None),
    ],
)
def test_what_is_not_yaml_is_refused_with_the_place(load, text, line):
    with pytest.raises(SpecUnreadableError) as caught:
        load(text)
    if line is not None:
        assert caught.value.where.line == line
        assert "^" in caught.value.detail


def test_a_byte_order_mark_is_no_part_of_the_first_field(load):
    assert load(b"\xef\xbb\xbf" + LEAST.encode()).name == "shop"


def test_anchors_and_merged_keys_are_read_as_yaml_means_them(load):
    spec = load(
        """
        name: &name shop
        storage: *name
        configuration:
          <<: {a: "1", b: "1"}
          b: "2"
        """
    )
    assert spec.storage.name == "shop"
    assert spec.configuration == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    "bomb",
    [
        "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(
            f"{after}: &{after} [{', '.join([f'*{before}'] * 10)}]\n"
            for before, after in zip("abcdef", "bcdefg", strict=True)
        ),
        "configuration: &a\n  b: *a\n",
        "configuration: &a\n  <<: *a\n",
        "# " + "x" * 1_000_001,
    ],
    ids=["aliases", "recursion", "merge", "size"],
)
def test_text_that_grows_without_end_is_refused(load, bomb):
    with pytest.raises(SpecUnreadableError, match="too large"):
        load(LEAST + bomb)


def test_a_spec_that_is_not_there_is_reported(tmp_path):
    with pytest.raises(SpecNotFoundError):
        load_spec(tmp_path / "spark-pipeline.yml")
    with pytest.raises(SpecNotFoundError):
        load_spec(tmp_path)
