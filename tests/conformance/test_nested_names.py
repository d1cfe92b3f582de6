"""Fields inside columns: matched by name without regard to case, as columns are."""

from __future__ import annotations

import pytest

from millpond.events import FlowStatus
from millpond.runner import run_query
from tests.conformance.stories import FullRefresh, story

pytestmark = pytest.mark.timeout(1800)

# A declared type, a query's value of `v` for it, and what readers find for 5.
NESTED = (
    ("STRUCT<x: BIGINT, y: BIGINT>", "named_struct('X', v, 'y', v + 1)", {"x": 5, "y": 6}),
    ("STRUCT<x: BIGINT, y: BIGINT>", "named_struct('Y', v + 1, 'x', v)", {"x": 5, "y": 6}),
    ("STRUCT<x: BIGINT>", "named_struct('X', CAST(v AS INT))", {"x": 5}),
    ("STRUCT<`größe`: BIGINT>", "named_struct('GRÖßE', v)", {"größe": 5}),
    ("STRUCT<x: BIGINT>", "if(v < 0, named_struct('X', v), null)", None),
    ("ARRAY<STRUCT<x: BIGINT>>", "array(named_struct('X', v), null)", [{"x": 5}, None]),
    ("MAP<STRING, STRUCT<x: BIGINT>>", "map('a', named_struct('X', v))", [("a", {"x": 5})]),
    (
        "STRUCT<p: ARRAY<STRUCT<x: BIGINT>>>",
        "named_struct('P', array(named_struct('X', v)))",
        {"p": [{"x": 5}]},
    ),
)
DECLARED = ", ".join(f"c{i} {declared}" for i, (declared, _, _) in enumerate(NESTED))
SELECTED = ", ".join(f"{value} AS c{i}" for i, (_, value, _) in enumerate(NESTED))
FOUND = ("a", *(found for _, _, found in NESTED))


@story
def test_an_append_flow_finds_the_fields_of_the_declared_columns(folder):
    folder.write(
        "p.sql",
        f"""
        CREATE STREAMING TABLE appended (k STRING, {DECLARED})
        AS SELECT k, {SELECTED} FROM STREAM(appended_in)
        """,
    )
    folder.feed("appended_in", [{"k": "a", "v": 5}])
    yield
    assert folder.rows("appended") == [FOUND]


@story
def test_a_replace_using_flow_finds_the_fields_of_the_declared_columns(folder):
    folder.write(
        "p.sql",
        f"""
        CREATE STREAMING TABLE replaced (k STRING, {DECLARED}, s BIGINT)
        FLOW REPLACE USING (k) SEQUENCE BY s BY NAME
        SELECT k, {SELECTED}, s FROM STREAM(replaced_in)
        """,
    )
    folder.feed("replaced_in", [{"k": "a", "v": 1, "s": 1}, {"k": "b", "v": 5, "s": 1}])
    yield
    folder.feed("replaced_in", [{"k": "a", "v": 5, "s": 2}])
    yield
    assert folder.rows("replaced") == [(*FOUND, 2), ("b", *FOUND[1:], 1)]


@story
def test_a_materialized_view_finds_the_fields_of_the_declared_columns(folder):
    folder.write(
        "p.sql",
        f"""
        CREATE MATERIALIZED VIEW viewed (k STRING, {DECLARED})
        AS SELECT k, {SELECTED} FROM viewed_in
        """,
    )
    folder.feed("viewed_in", [{"k": "a", "v": 5}])
    yield
    assert folder.rows("viewed") == [FOUND]


@story
def test_fields_that_a_later_query_names_in_another_case_or_leaves_out(folder):
    text = "CREATE STREAMING TABLE later AS SELECT k, {} AS p FROM STREAM(later_in)"
    folder.write("p.sql", text.format("named_struct('x', v, 'y', v)"))
    folder.feed("later_in", [{"k": "a", "v": 1}])
    yield
    folder.write("p.sql", text.format("named_struct('X', v + 1, 'Y', v)"))
    folder.feed("later_in", [{"k": "b", "v": 2}])
    yield
    folder.write("p.sql", text.format("named_struct('X', v)"))
    folder.feed("later_in", [{"k": "c", "v": 4}])
    ended = yield
    assert ended.status("later") is FlowStatus.COMPLETED, str(ended.error("later"))
    kept = [("a", {"x": 1, "y": 1}), ("b", {"x": 3, "y": 2}), ("c", {"x": 4, "y": None})]
    assert folder.rows("later") == kept
    yield FullRefresh("later")
    # Cleared, the table keeps its columns, and so the names inside them.
    assert folder.rows("later") == [
        (k, {"x": v, "y": None}) for k, v in (("a", 1), ("b", 2), ("c", 4))
    ]


@story
def test_new_fields_and_wider_ones_come_to_fields_of_another_case(folder):
    text = """
        CREATE STREAMING TABLE grown AS
        SELECT k, {p} AS p, array({p}) AS l, map('a', {p}) AS m FROM STREAM(grown_in)
        """
    folder.write("p.sql", text.format(p="named_struct('x', CAST(v AS INT))"))
    folder.feed("grown_in", [{"k": "a", "v": 1}])
    yield
    folder.write("p.sql", text.format(p="named_struct('X', v + 8000000000, 'New', v)"))
    folder.feed("grown_in", [{"k": "b", "v": 2}])
    ended = yield
    assert ended.status("grown") is FlowStatus.COMPLETED, str(ended.error("grown"))
    # Not every program can read a table whose types Spark has widened.
    found = run_query(folder.project(), "SELECT k, p, l, m['a'] AS m FROM grown ORDER BY k")
    old, new = {"x": 1, "New": None}, {"x": 8_000_000_002, "New": 2}
    assert found.to_pylist() == [
        {"k": "a", "p": old, "l": [old], "m": old},
        {"k": "b", "p": new, "l": [new], "m": new},
    ]
