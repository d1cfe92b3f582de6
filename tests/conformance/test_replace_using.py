"""REPLACE USING flows through the whole program: source files in, tables read by others out."""

from __future__ import annotations

import json
import random

import pytest
from deltalake import DeltaTable

from millpond.errors.replace_using import (
    ReplaceUsingKeyDriftError,
    ReplaceUsingNullSequenceError,
    ReplaceUsingSequenceTypeDriftError,
)
from millpond.events import FlowStatus
from tests import oracle
from tests.conformance.stories import FullRefresh, story
from tests.readers import READERS

pytestmark = pytest.mark.timeout(1800)
NAN = float("nan")

FORMS = {
    "inline.sql": """
        CREATE OR REFRESH STREAMING TABLE in_table
        FLOW REPLACE USING (region) SEQUENCE BY version BY NAME
        SELECT region, store, amount, version FROM STREAM(landing);
        """,
    "flow.sql": """
        CREATE STREAMING TABLE in_flow;
        CREATE FLOW load_regions AS INSERT INTO in_flow BY NAME
        REPLACE USING (region) SEQUENCE BY version
        SELECT region, store, amount, version FROM STREAM landing;
        """,
    "table.py": """
        from pyspark import pipelines as dp

        @dp.table(replace_using=["region"], sequence_by="version")
        def in_decorator():
            return spark.readStream.table("landing").select("region", "store", "amount", "version")
        """,
    "flow.py": """
        from pyspark import pipelines as dp
        from pyspark.sql.functions import col

        dp.create_streaming_table("in_replace_flow")

        @dp.replace_flow(target="in_replace_flow", replace_using=["region"], sequence_by=col("version"))
        def load_regions_too():
            return spark.readStream.table("landing").select("region", "store", "amount", "version")
        """,
}
TABLES = ("in_table", "in_flow", "in_decorator", "in_replace_flow")
REPLACE = """
CREATE STREAMING TABLE {table} FLOW REPLACE USING (k) SEQUENCE BY s BY NAME
SELECT k, v, s FROM STREAM({table}_in);
"""


def landing(*rows: tuple[str | None, str, int, int]) -> list[dict[str, object]]:
    names = ("region", "store", "amount", "version")
    return [dict(zip(names, row, strict=True)) for row in rows]


def versions(*rows: tuple[object, str, object]) -> list[dict[str, object]]:
    return [dict(zip("kvs", row, strict=True)) for row in rows]


def in_order(*rows: tuple[object, ...]) -> list[tuple[object, ...]]:
    return sorted(rows, key=repr)


@story
def test_two_regions_sent_as_partial_snapshots(folder):
    """The worked example: a region sent again replaces all its rows, the other keeps its own."""
    folder.write("p.sql", FORMS["inline.sql"].replace("in_table", "regions"))
    north = [("north", "oslo", 10, 1), ("north", "bergen", 20, 1)]
    folder.feed("landing", landing(*north, ("south", "rome", 30, 1)))
    ended = yield
    assert ended.batches("regions") == [
        {"batch": 0, "read": 3, "upserted": 3, "deleted": 0, "late": 0, "dropped": 0}
    ]
    folder.feed("landing", landing(("north", "tromso", 5, 2)))
    # A late copy of version 1, a second row of version 2, and a region not seen before.
    folder.feed(
        "landing", landing(("north", "oslo", 10, 1), ("north", "alta", 6, 2), (None, "web", 1, 1))
    )
    ended = yield
    assert ended.batches("regions") == [
        {"batch": 1, "read": 1, "upserted": 1, "deleted": 2, "late": 0, "dropped": 0},
        {"batch": 2, "read": 3, "upserted": 2, "deleted": 0, "late": 1, "dropped": 0},
    ]
    expected = in_order(
        ("north", "tromso", 5, 2),
        ("north", "alta", 6, 2),
        ("south", "rome", 30, 1),
        (None, "web", 1, 1),
    )
    for reader in READERS:
        assert folder.rows("regions", reader=reader) == expected, reader
    assert folder.columns("regions") == ["region", "store", "amount", "version"]


@story
def test_of_a_batch_only_the_highest_sequence_of_a_key_lands_in_whichever_form(folder):
    for name, text in FORMS.items():
        folder.write(name, text.replace("landing", "forms_in"))
    folder.feed(
        "forms_in", landing(("a", "x", 1, 1), ("a", "y", 2, 2), ("b", "z", 3, 1), ("a", "w", 4, 2))
    )
    ended = yield
    for table in TABLES:
        assert folder.rows(table) == [("a", "w", 4, 2), ("a", "y", 2, 2), ("b", "z", 3, 1)], table
        assert folder.columns(table) == ["region", "store", "amount", "version"]
    assert [batch["late"] for batch in ended.batches("in_table")] == [1]


@story
def test_nulls_are_one_key_and_so_are_all_nans_and_both_zeros(folder):
    folder.write("p.sql", REPLACE.format(table="odd_keys"))
    folder.feed(
        "odd_keys_in",
        versions((NAN, "old", 1), (None, "old", 1), (0.0, "old", 1), (1.5, "kept", 2)),
    )
    folder.feed(
        "odd_keys_in",
        versions(
            (NAN, "new", 2), (None, "new", 2), (-0.0, "new", 2), (0.0, "tie", 2), (1.5, "late", 1)
        ),
    )
    yield
    found = [(repr(k).removeprefix("-"), v, s) for k, v, s in folder.rows("odd_keys")]
    assert sorted(found) == [
        ("0.0", "new", 2),
        ("0.0", "tie", 2),
        ("1.5", "kept", 2),
        ("None", "new", 2),
        ("nan", "new", 2),
    ]


@story
def test_nan_is_the_highest_sequence(folder):
    folder.write("p.sql", REPLACE.format(table="odd_sequences"))
    inf = float("inf")
    folder.feed("odd_sequences_in", versions(("a", "x", inf), ("b", "y", NAN), ("c", "z", NAN)))
    folder.feed(
        "odd_sequences_in", versions(("a", "new", NAN), ("b", "late", inf), ("c", "tie", NAN))
    )
    yield
    found = [row[:2] for row in folder.rows("odd_sequences")]
    assert found == [("a", "new"), ("b", "y"), ("c", "tie"), ("c", "z")]


@story
def test_whatever_comes_in_whatever_order_the_highest_of_each_key_stay(folder):
    folder.write("p.sql", REPLACE.format(table="drawn"))
    draw = random.Random(7)
    keys = [None, "", "a", "A", "ä", "a b"]
    batches = [
        versions(*((draw.choice(keys), draw.choice("xy"), draw.randrange(-3, 4)) for _ in range(9)))
        for _ in range(3)
    ]
    for rows in batches:
        folder.feed("drawn_in", rows)
    yield
    read = [row for rows in batches for row in rows]
    kept = oracle.expected(read, keys=("k",), sequence=lambda row: row["s"])
    assert folder.rows("drawn") == in_order(*(tuple(row.values()) for row in kept))


@story
def test_a_row_dropped_by_an_expectation_was_never_there(folder):
    folder.write(
        "pipeline.sql",
        """
        CREATE STREAMING TABLE checked (
          CONSTRAINT positive EXPECT (amount > 0) ON VIOLATION DROP ROW,
          CONSTRAINT named EXPECT (store <> 'nameless')
        )
        FLOW REPLACE USING (region) SEQUENCE BY version BY NAME
        SELECT region, store, amount, version FROM STREAM(checked_in);
        """,
    )
    bad = [("a", "bad", -1, 9), ("b", "bad", -1, 9)]
    folder.feed("checked_in", landing(("a", "x", 1, 1), ("b", "y", 2, 1), *bad, ("b", "ok", 7, 3)))
    # No floor is left by the dropped rows at sequence 9.
    folder.feed("checked_in", landing(("a", "late but valid", 8, 2), ("c", "nameless", 1, 1), *bad))
    ended = yield
    assert folder.rows("checked") == [
        ("a", "late but valid", 8, 2),
        ("b", "ok", 7, 3),
        ("c", "nameless", 1, 1),
    ]
    assert ended.batches("checked") == [
        {
            "batch": 0, "read": 5, "upserted": 2, "deleted": 0, "late": 1, "dropped": 2,
            "expectations": {"positive": (3, 2), "named": (5, 0)},
        },
        {
            "batch": 1, "read": 4, "upserted": 2, "deleted": 1, "late": 0, "dropped": 2,
            "expectations": {"positive": (2, 2), "named": (3, 1)},
        },
    ]  # fmt: skip # a batch a block


@story
def test_a_sequence_expression_is_kept_out_of_sight(folder):
    folder.write(
        "p.sql",
        """
        CREATE STREAMING TABLE by_two
        FLOW REPLACE USING (region) SEQUENCE BY struct(version, amount) BY NAME
        SELECT * FROM STREAM(by_two_in);
        """,
    )
    folder.write(
        "p.py",
        """
        from pyspark import pipelines as dp

        @dp.table(replace_using=["region"], sequence_by="coalesce(amount, version) * -1")
        def by_sum():
            return spark.readStream.table("by_two_in")
        """,
    )
    folder.feed("by_two_in", landing(("a", "x", 1, 1), ("b", "x", 1, 2)))
    folder.feed("by_two_in", landing(("a", "y", 2, 1), ("a", "z", 1, 1), ("b", "late", 9, 1)))
    yield
    assert folder.rows("by_two") == [("a", "y", 2, 1), ("b", "x", 1, 2)]
    assert folder.rows("by_sum") == [("a", "x", 1, 1), ("a", "z", 1, 1), ("b", "x", 1, 2)]
    for table in ("by_two", "by_sum"):
        assert folder.columns(table) == ["region", "store", "amount", "version"]


@story
def test_a_full_refresh_reads_the_source_again(folder):
    folder.write("p.sql", REPLACE.format(table="again"))
    folder.feed("again_in", versions(("a", "y", 2), ("b", "z", 1)))
    yield
    ended = yield FullRefresh("again")
    assert folder.rows("again") == [("a", "y", 2), ("b", "z", 1)]
    assert [batch["batch"] for batch in ended.batches("again")] == [0]


@story
def test_an_update_without_news_changes_nothing(folder):
    folder.write("p.sql", REPLACE.format(table="quiet"))
    folder.feed("quiet_in", versions(("a", "x", 1)))
    yield
    before = DeltaTable(folder.table("quiet")).version()
    ended = yield
    assert ended.status("quiet") is FlowStatus.COMPLETED
    assert ended.batches("quiet") == []
    assert DeltaTable(folder.table("quiet")).version() == before


@story
def test_a_null_sequence_fails_the_flow_and_applies_nothing(folder):
    folder.write("p.sql", REPLACE.format(table="unsequenced"))
    folder.feed("unsequenced_in", versions(("a", "x", 1)))
    folder.feed("unsequenced_in", versions(("b", "y", 5), ("a", "z", None)))
    ended = yield
    assert ended.status("unsequenced") is FlowStatus.FAILED
    error = ended.error("unsequenced")
    assert isinstance(error, ReplaceUsingNullSequenceError)
    assert "null sequence (s)" in str(error)
    assert json.loads(error.row_json) == {"k": "a", "v": "z", "s": None}
    assert "batch 1" in str(error)
    assert "p.sql:2" in str(error)
    assert folder.rows("unsequenced") == [("a", "x", 1)]


@story
def test_other_keys_than_before_are_refused_until_a_full_refresh(folder):
    text = REPLACE.format(table="rekeyed")
    folder.write("p.sql", text)
    folder.feed("rekeyed_in", versions(("a", "x", 1), ("a", "y", 1), ("a", "x", 2)))
    yield
    assert folder.rows("rekeyed") == [("a", "x", 2)]
    folder.write("p.sql", text.replace("USING (k)", "USING (k, v)"))
    ended = yield
    assert isinstance(ended.error("rekeyed"), ReplaceUsingKeyDriftError)
    yield FullRefresh("rekeyed")
    assert folder.rows("rekeyed") == [("a", "x", 2), ("a", "y", 1)]


@story
def test_another_sequence_type_is_refused_until_a_full_refresh(folder):
    text = REPLACE.format(table="retyped")
    folder.write("p.sql", text)
    folder.feed("retyped_in", versions(("a", "x", 1)))
    yield
    folder.write("p.sql", text.replace("BY s", "BY v"))
    ended = yield
    assert isinstance(ended.error("retyped"), ReplaceUsingSequenceTypeDriftError)
    assert folder.rows("retyped") == [("a", "x", 1)]
