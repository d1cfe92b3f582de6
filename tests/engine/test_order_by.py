"""Grouped rows are sorted by what is selected of them, whatever expression that is."""

from __future__ import annotations

import pytest

from millpond.engine.sqltext.order_by import sorted_by_position
from millpond.errors.engine import QueryRunError
from tests.engine.queries import tables

ROWS = [
    {"k": 1, "v": 5, "s": {"x": 2, "y": 1}},
    {"k": 2, "v": 6, "s": {"x": 1, "y": 1}},
    {"k": 3, "v": 7, "s": {"x": 1, "y": 0}},
]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (
            "SELECT s.x n, count(*) c FROM t GROUP BY s.x HAVING max(s.y) > 0 ORDER BY s.x",
            [(1, 2), (2, 1)],
        ),
        (
            "SELECT t.s.x n, max(v) FROM t GROUP BY t.s.x HAVING max(v) > 0 ORDER BY t.s.x DESC",
            [(2, 5), (1, 7)],
        ),
        (
            "SELECT s.x, max(v) m FROM t GROUP BY s.x ORDER BY MAX( v ) ASC NULLS LAST, 1 LIMIT 9",
            [(2, 5), (1, 7)],
        ),
        (
            """
            SELECT * FROM (
                SELECT k + 1 n, count(*) FROM t GROUP BY k + 1 HAVING count(*) > 0
                ORDER BY count(*), k + 1 DESC
            ) LIMIT 2
            """,
            [(4, 1), (3, 1)],
        ),
        # A name of what is selected is that, not what it is called in the table.
        ("SELECT -k AS v, v AS k FROM t GROUP BY k, v ORDER BY v", [(-3, 7), (-2, 6), (-1, 5)]),
        ("SELECT 9, k FROM t GROUP BY k ORDER BY 2 DESC", [(9, 3), (9, 2), (9, 1)]),
    ],
)
def test_grouped_rows_are_sorted_by_what_is_selected(engine, tmp_path, text, rows):
    found = engine.query(text, tables(engine, tmp_path, t=ROWS))
    assert list(zip(*(column.to_pylist() for column in found.columns), strict=True)) == rows


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'A' || k n FROM t GROUP BY k ORDER BY 'a' || k",
        "SELECT * FROM t GROUP BY k, v ORDER BY max(v)",
        "SELECT b AS a, a + 1 AS c FROM t GROUP BY b, a + 1 ORDER BY a + 1",
        "SELECT 2, k FROM t GROUP BY k ORDER BY 2",
        "SELECT max(v) FROM t ORDER BY max(v)",
        "SELECT max(v) OVER (ORDER BY max(v)) FROM t GROUP BY v",
        "SELECT k FROM t GROUP BY k UNION SELECT 1 ORDER BY k",
    ],
)
def test_what_means_something_else_is_left_as_it_is(text):
    assert sorted_by_position(text) == text


def test_a_query_that_can_not_be_planned_says_so_and_not_that_data_is_wrong(engine, tmp_path):
    binder = tables(engine, tmp_path, t=ROWS)
    with pytest.raises(QueryRunError, match="can't plan") as caught:
        engine.query("SELECT k, count(*) FROM t GROUP BY k ORDER BY max(v)", binder)
    assert "in a subquery in FROM" in caught.value.hint
