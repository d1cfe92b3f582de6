"""REPLACE USING flows through the whole program: source files in, tables read by others out."""

from __future__ import annotations

import pytest

from millpond.events import FlowStatus, UpdateState
from tests.readers import READERS

SQL_INLINE = """
CREATE OR REFRESH STREAMING TABLE regions
FLOW REPLACE USING (region) SEQUENCE BY version BY NAME
SELECT region, store, amount, version FROM STREAM(landing);
"""

SQL_FLOW = """
CREATE STREAMING TABLE regions;
CREATE FLOW load_regions AS INSERT INTO regions BY NAME
REPLACE USING (region) SEQUENCE BY version
SELECT region, store, amount, version FROM STREAM landing;
"""

PYTHON_TABLE = """
from pyspark import pipelines as dp

@dp.table(replace_using=["region"], sequence_by="version")
def regions():
    return spark.readStream.table("landing").select("region", "store", "amount", "version")
"""

PYTHON_FLOW = """
from pyspark import pipelines as dp
from pyspark.sql.functions import col

dp.create_streaming_table("regions")

@dp.replace_flow(target="regions", replace_using=["region"], sequence_by=col("version"))
def load_regions():
    return spark.readStream.table("landing").select("region", "store", "amount", "version")
"""

FORMS = {
    "inline.sql": SQL_INLINE,
    "flow.sql": SQL_FLOW,
    "table.py": PYTHON_TABLE,
    "flow.py": PYTHON_FLOW,
}


def landing(*rows: tuple[str | None, str, int, int]) -> list[dict[str, object]]:
    return [
        {"region": region, "store": store, "amount": amount, "version": version}
        for region, store, amount, version in rows
    ]


@pytest.mark.parametrize("file", FORMS)
def test_two_regions_sent_as_partial_snapshots(folder, file):
    """The worked example: a region sent again replaces all its rows, the other keeps its own."""
    folder.write(file, FORMS[file])
    folder.feed(
        "landing",
        landing(
            ("north", "oslo", 10, 1),
            ("north", "bergen", 20, 1),
            ("south", "rome", 30, 1),
        ),
    )
    assert folder.run().state is UpdateState.COMPLETED
    folder.feed("landing", landing(("north", "tromso", 5, 2)))
    assert folder.run().state is UpdateState.COMPLETED
    # A late copy of version 1, a second row of version 2, and a region not seen before.
    folder.feed(
        "landing",
        landing(("north", "oslo", 10, 1), ("north", "alta", 6, 2), (None, "web", 1, 1)),
    )
    assert folder.run().state is UpdateState.COMPLETED
    expected = sorted(
        [
            ("north", "tromso", 5, 2),
            ("north", "alta", 6, 2),
            ("south", "rome", 30, 1),
            (None, "web", 1, 1),
        ],
        key=repr,
    )
    for reader in READERS:
        assert folder.rows("regions", reader=reader) == expected, reader
    assert folder.columns("regions") == ["region", "store", "amount", "version"]


def test_only_the_highest_sequence_of_a_key_lands(folder):
    folder.write("pipeline.sql", SQL_INLINE)
    folder.feed("landing", landing(("a", "x", 1, 1), ("a", "y", 2, 2), ("b", "z", 3, 1)))
    folder.run()
    assert folder.rows("regions") == [("a", "y", 2, 2), ("b", "z", 3, 1)]


def test_a_row_dropped_by_an_expectation_was_never_there(folder):
    folder.write(
        "pipeline.sql",
        """
        CREATE STREAMING TABLE regions (
          CONSTRAINT positive EXPECT (amount > 0) ON VIOLATION DROP ROW,
          CONSTRAINT named EXPECT (store IS NOT NULL)
        )
        FLOW REPLACE USING (region) SEQUENCE BY version BY NAME
        SELECT region, store, amount, version FROM STREAM(landing);
        """,
    )
    folder.feed("landing", landing(("a", "x", 1, 1), ("b", "y", 2, 1)))
    folder.run()
    folder.feed("landing", landing(("a", "bad", -1, 9), ("b", "bad", -1, 9), ("b", "ok", 7, 3)))
    folder.run()
    # No floor is left by the dropped rows at sequence 9.
    folder.feed("landing", landing(("a", "late but valid", 8, 2)))
    folder.run()
    assert folder.rows("regions") == [("a", "late but valid", 8, 2), ("b", "ok", 7, 3)]


def test_a_sequence_expression_is_kept_out_of_sight(folder):
    folder.write(
        "pipeline.py",
        """
        from pyspark import pipelines as dp
        from pyspark.sql.functions import col, struct

        @dp.table(replace_using=["region"], sequence_by=struct(col("version"), col("amount")))
        def regions():
            return spark.readStream.table("landing")
        """,
    )
    folder.feed("landing", landing(("a", "x", 1, 1)))
    folder.run()
    folder.feed("landing", landing(("a", "y", 2, 1), ("a", "z", 1, 1)))
    folder.run()
    folder.feed("landing", landing(("a", "late", 1, 1)))
    folder.run()
    assert folder.rows("regions") == [("a", "y", 2, 1)]
    assert folder.columns("regions") == ["region", "store", "amount", "version"]


def test_a_full_refresh_reads_the_source_again(folder):
    folder.write("pipeline.sql", SQL_INLINE)
    folder.feed("landing", landing(("a", "x", 1, 1)))
    folder.run()
    folder.feed("landing", landing(("a", "y", 1, 2), ("b", "z", 1, 1)))
    folder.run()
    folder.run(full_refresh=["regions"])
    assert folder.rows("regions") == [("a", "y", 1, 2), ("b", "z", 1, 1)]
    # The old checkpoint is gone, the new one is the only one.
    (flow,) = (folder.root / "storage" / "checkpoints").iterdir()
    assert len(list(flow.iterdir())) == 1


def test_an_update_without_news_changes_nothing(folder):
    folder.write("pipeline.sql", SQL_INLINE)
    folder.feed("landing", landing(("a", "x", 1, 1)))
    folder.run()
    log = folder.table("regions") / "_delta_log"
    before = sorted(log.iterdir())
    result = folder.run()
    assert [flow.status for flow in result.flows] == [FlowStatus.COMPLETED]
    assert sorted(log.iterdir()) == before


def test_a_null_sequence_fails_the_flow_and_applies_nothing(folder):
    folder.write("pipeline.sql", SQL_INLINE)
    folder.feed("landing", landing(("a", "x", 1, 1)))
    folder.run()
    folder.feed(
        "landing",
        [
            {"region": "b", "store": "y", "amount": 1, "version": 5},
            {"region": "a", "store": "z", "amount": 1, "version": None},
        ],
    )
    result = folder.run()
    assert result.state is UpdateState.FAILED
    (flow,) = result.flows
    assert flow.status is FlowStatus.FAILED
    assert "REPLACE_USING_NULL_SEQUENCE" in str(flow.error)
    assert "batch 1" in str(flow.error)
    assert folder.rows("regions") == [("a", "x", 1, 1)]


def test_other_keys_than_before_are_refused_until_a_full_refresh(folder):
    folder.write("pipeline.sql", SQL_INLINE)
    folder.feed("landing", landing(("a", "x", 1, 1), ("a", "y", 1, 2)))
    folder.run()
    folder.write("pipeline.sql", SQL_INLINE.replace("USING (region)", "USING (region, store)"))
    result = folder.run()
    assert "REPLACE_USING_KEY_DRIFT" in str(result.flows[0].error)
    assert folder.run(full_refresh=["regions"]).state is UpdateState.COMPLETED
    assert folder.rows("regions") == [("a", "x", 1, 1), ("a", "y", 1, 2)]


def test_another_sequence_type_is_refused_until_a_full_refresh(folder):
    folder.write("pipeline.sql", SQL_INLINE)
    folder.feed("landing", landing(("a", "x", 1, 1)))
    folder.run()
    folder.write("pipeline.sql", SQL_INLINE.replace("BY version", "BY store"))
    result = folder.run()
    assert "REPLACE_USING_SEQUENCE_TYPE_DRIFT" in str(result.flows[0].error)
