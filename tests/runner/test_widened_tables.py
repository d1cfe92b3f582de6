"""A column's type may widen between updates, whatever reads its table."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from deltalake import DeltaTable

from millpond.events import UpdateState
from millpond.runner import read_events


def completed(result) -> bool:
    problems = [str(flow.error) for flow in result.flows if flow.error]
    assert not problems, problems
    return result.state is UpdateState.COMPLETED


@pytest.mark.parametrize(
    ("narrow", "wide", "value", "read"),
    [
        ("INT", "BIGINT", "v", [1, 2]),
        ("TINYINT", "BIGINT", "v", [1, 2]),
        ("DECIMAL(12,2)", "DECIMAL(14,2)", "v", [Decimal("1.00"), Decimal("2.00")]),
        ("FLOAT", "DOUBLE", "v", [1.0, 2.0]),
        ("INT", "DOUBLE", "v", [1.0, 2.0]),
        ("ARRAY<INT>", "ARRAY<BIGINT>", "array(v)", [[1], [2]]),
        ("STRUCT<x: INT>", "STRUCT<x: BIGINT>", "named_struct('x', v)", [{"x": 1}, {"x": 2}]),
        (
            "ARRAY<STRUCT<x: FLOAT>>",
            "ARRAY<STRUCT<x: DOUBLE>>",
            "array(named_struct('x', v))",
            [[{"x": 1.0}], [{"x": 2.0}]],
        ),
        ("MAP<STRING, INT>", "MAP<STRING, BIGINT>", "map('x', v)", [[("x", 1)], [("x", 2)]]),
    ],
)
def test_readers_follow_a_column_that_widens(folder, narrow, wide, value, read):
    def define(column_type: str) -> None:
        folder.write(
            "p.sql",
            f"""
            CREATE STREAMING TABLE t AS
            SELECT k, CAST({value} AS {column_type}) AS w FROM STREAM(landing);
            CREATE MATERIALIZED VIEW whole AS SELECT k, w FROM t;
            CREATE TEMPORARY VIEW seen AS SELECT * FROM STREAM(t);
            CREATE STREAMING TABLE streamed AS SELECT k, w FROM STREAM(seen);
            CREATE MATERIALIZED VIEW joined AS
            SELECT a.k, b.w FROM t AS a JOIN streamed AS b ON a.k = b.k;
            """,
        )

    tables = ("t", "whole", "streamed", "joined")
    define(narrow)
    folder.feed("landing", [{"k": 1, "v": 1}])
    assert completed(folder.run())
    define(wide)
    folder.feed("landing", [{"k": 2, "v": 2}])
    assert completed(folder.run())
    for name in tables:
        assert (name, [w for _, w in folder.rows(name)]) == (name, read)
    assert completed(folder.run())
    assert completed(folder.run(full_refresh_all=True))
    for name in tables:
        assert (name, [w for _, w in folder.rows(name)]) == (name, read)


@pytest.mark.parametrize("first", [1, 2], ids=["refreshed", "empty"])
def test_readers_follow_a_column_that_widens_where_no_row_stays(folder, first):
    def define(column_type: str) -> None:
        folder.write(
            "p.sql",
            f"""
            CREATE STREAMING TABLE t AS
            SELECT k, CAST(v AS {column_type}) AS w FROM STREAM(landing) WHERE k >= {first};
            CREATE MATERIALIZED VIEW total AS SELECT sum(w) AS w FROM t;
            """,
        )

    define("INT")
    folder.feed("landing", [{"k": 1, "v": 1}])
    assert completed(folder.run())
    define("DOUBLE")
    folder.feed("landing", [{"k": 2, "v": 2}])
    assert completed(folder.run(full_refresh_all=first == 1))
    assert folder.rows("total") == [(3.0 if first == 1 else 2.0,)]


def test_what_another_program_notes_about_columns_stays_with_its_table(folder):
    folder.feed("landing", [{"k": 1, "v": 1}])
    log = folder.table("landing") / "_delta_log" / "00000000000000000000.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            features = {"readerFeatures": ["typeWidening"], "writerFeatures": ["typeWidening"]}
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][1]["metadata"] = {
                "delta.typeChanges": [{"fromType": "integer", "toType": "long"}],
                "comment": "counted",
                "pages": 3,
                "owner": {"name": "x"},
            }
            action["metaData"]["schemaString"] = json.dumps(schema)
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    folder.write(
        "p.sql",
        """
        CREATE STREAMING TABLE t AS SELECT * FROM STREAM(landing);
        CREATE MATERIALIZED VIEW m AS SELECT * FROM landing;
        """,
    )
    assert completed(folder.run())
    for name in ("t", "m"):
        assert folder.rows(name) == [(1, 1)]
        fields = json.loads(DeltaTable(folder.table(name)).schema().to_json())["fields"]
        assert fields[1]["metadata"] == {"comment": "counted"}


def test_what_reads_a_table_that_can_not_be_changed_is_skipped_for_its_sake(folder):
    text = "CREATE STREAMING TABLE u AS SELECT k, {} AS v FROM STREAM(landing);"
    view = "CREATE MATERIALIZED VIEW m AS SELECT k FROM u;"
    folder.write("p.sql", text.format("v") + view)
    folder.feed("landing", [{"k": 1, "v": 1}])
    assert completed(folder.run())
    folder.write("p.sql", text.format("CAST(v AS STRING)") + view)
    assert folder.run().state is UpdateState.FAILED
    messages = [event.message for event in read_events(folder.project())]
    skipped = [message for message in messages if "skipped" in message]
    assert skipped == ["Flow main.sales.m was skipped: main.sales.u, which it reads, failed."]
