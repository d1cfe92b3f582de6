"""Columns of any name, of changed case, new and missing ones, and partitioned targets."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from tests.flows.target import Target, columns
from tests.oracle import multiset

HOSTILE = [
    'a "quoted" name',
    "it's",
    "select",
    "dotted.name",
    "spaced name",
    "größe",
    "日本",
    "a;drop table heads;--",
    "{0}%s\\n",
    "file",
    "row",
    "head",
    "rank",
    "newest",
    "filename",
    "k0",
    "stored",
]


@pytest.fixture
def make_target(tmp_path, vectors):
    def make(schema, **more):
        settings = {"keys": ("k",), "sequence": "seq", "vectors": vectors, **more}
        return Target(folder=tmp_path, schema=schema, **settings)

    return make


def same(target, rows):
    assert multiset(target.rows(), columns=target.schema.names) == multiset(
        rows, columns=target.schema.names
    )
    return True


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_can_be_key_sequence_or_plain_column(make_target, name):
    schema = columns(**{name: StringType(), name + "2": LongType(), name + "3": LongType()})
    target = make_target(schema, keys=(name,), sequence=name + "2")

    def row(key, sequence, value):
        return {name: key, name + "2": sequence, name + "3": value}

    target.apply([row("a", 1, 1), row("b", 1, 2), row(None, 1, 3)])
    target.apply([row("a", 2, 4), row("b", 0, 5), row(None, 2, 6)])
    assert same(target, [row("a", 2, 4), row("b", 1, 2), row(None, 2, 6)])


def test_all_of_them_in_one_table(make_target):
    schema = columns(**dict.fromkeys(HOSTILE, LongType()))
    target = make_target(schema, keys=tuple(HOSTILE[:3]), sequence=HOSTILE[3])
    first = dict.fromkeys(HOSTILE, 1)
    target.apply([first, {**first, HOSTILE[0]: 2}])
    target.apply([dict.fromkeys(HOSTILE, 1) | {HOSTILE[3]: 2}])
    assert same(target, [{**first, HOSTILE[0]: 2}, {**first, HOSTILE[3]: 2}])


def test_names_differ_in_case_between_definition_batch_and_table(make_target):
    target = make_target(columns(k=LongType(), seq=LongType(), Größe=LongType()))
    batch = columns(SEQ=LongType(), GRÖSSE=LongType(), K=LongType())
    batch.fields[1].name = "GRÖßE"
    batch.names[1] = "GRÖßE"
    target.keys, target.sequence = ("K",), "Seq"
    target.apply([{"SEQ": 1, "GRÖßE": 5, "K": 7}], schema=batch)
    target.apply([{"SEQ": 2, "GRÖßE": 6, "K": 7}], schema=batch)
    assert same(target, [{"k": 7, "seq": 2, "Größe": 6}])


def test_a_column_that_a_later_batch_lacks_is_null(make_target):
    schema = columns(k=LongType(), seq=LongType(), x=StringType())
    target = make_target(schema)
    target.apply([{"k": 1, "seq": 1, "x": "a"}, {"k": 2, "seq": 1, "x": "b"}])
    target.apply([{"k": 1, "seq": 2}], schema=columns(k=LongType(), seq=LongType()))
    assert same(target, [{"k": 1, "seq": 2, "x": None}, {"k": 2, "seq": 1, "x": "b"}])


def test_a_table_that_got_new_columns_and_wider_types_compares_old_rows_with_new(make_target):
    target = make_target(columns(k=IntegerType(), seq=IntegerType(), x=IntegerType()))
    target.apply(
        [{"k": 1, "seq": 1, "x": 1}, {"k": 2, "seq": 5, "x": 2}, {"k": 3, "seq": 1, "x": 3}]
    )
    more = columns(k=IntegerType(), seq=IntegerType(), x=IntegerType(), s=StringType())
    target.set_schema(more)
    target.apply([{"k": 1, "seq": 2, "x": 9, "s": "new"}, {"k": 2, "seq": 4, "x": 9, "s": "late"}])
    assert same(
        target,
        [
            {"k": 1, "seq": 2, "x": 9, "s": "new"},
            {"k": 2, "seq": 5, "x": 2, "s": None},
            {"k": 3, "seq": 1, "x": 3, "s": None},
        ],
    )


@pytest.mark.parametrize("by", [("k",), ("p",), ("p", "k"), ("seq",)])
def test_a_partitioned_target_replaces_across_partitions(make_target, by):
    schema = columns(p=StringType(), k=LongType(), seq=LongType(), x=DoubleType())
    target = make_target(schema, partition_columns=by)

    def row(p, k, seq, x):
        return {"p": p, "k": k, "seq": seq, "x": x}

    target.apply([row("a/b=c", 1, 1, 1.0), row(None, 1, 1, 2.0), row("d", 2, 1, 3.0)])
    target.apply([row("d", 1, 2, 4.0), row("ü %", None, 1, 5.0)])
    target.apply([row("d", None, 2, 6.0), row("d", 2, 0, 7.0)])
    assert same(target, [row("d", 1, 2, 4.0), row("d", None, 2, 6.0), row("d", 2, 1, 3.0)])


def test_columns_that_can_not_be_ordered_are_carried_along(make_target):
    inner = StructType([StructField("Nested", MapType(StringType(), LongType()))])
    target = make_target(columns(k=LongType(), seq=LongType(), m=inner))
    values = [{"Nested": {"a": 1}}, None, {"Nested": None}]
    target.apply([{"k": k, "seq": 1, "m": m} for k, m in enumerate(values)])
    target.apply([{"k": 0, "seq": 2, "m": {"Nested": {"b": 2}}}])
    found = sorted((row["k"], repr(row["m"])) for row in target.rows())
    assert found == [(0, "{'Nested': [('b', 2)]}"), (1, "None"), (2, "{'Nested': None}")]


def test_a_folder_whose_name_looks_like_a_pattern(tmp_path, vectors):
    target = Target(
        folder=tmp_path / "a[b]*?'{c}",
        schema=columns(k=LongType(), seq=LongType()),
        keys=("k",),
        sequence="seq",
        vectors=vectors,
    )
    target.apply([{"k": 1, "seq": 1}, {"k": 2, "seq": 1}])
    target.apply([{"k": 1, "seq": 2}])
    assert same(target, [{"k": 1, "seq": 2}, {"k": 2, "seq": 1}])


def test_an_empty_text_is_null_where_the_table_is_partitioned_by_it(make_target):
    """Delta keeps an empty partition value as null, so the two are one key."""
    schema = columns(k=StringType(), n=LongType(), seq=LongType())
    target = make_target(schema, partition_columns=("k",))
    target.apply([{"k": "", "n": 1, "seq": 2}])
    target.apply([{"k": "", "n": 2, "seq": 1}, {"k": None, "n": 3, "seq": 1}])
    assert same(target, [{"k": None, "n": 1, "seq": 2}])
    target.apply([{"k": None, "n": 4, "seq": 3}, {"k": "", "n": 5, "seq": 3}])
    assert same(target, [{"k": None, "n": 4, "seq": 3}, {"k": None, "n": 5, "seq": 3}])
