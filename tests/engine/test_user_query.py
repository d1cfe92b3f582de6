"""Users may ask one query of any shape, and get its rows."""

import pytest

from millpond.errors.engine import (
    NotAQueryError,
    QueryRunError,
    QuerySyntaxError,
    UnresolvedColumnError,
)
from tests.engine.queries import tables


@pytest.fixture
def ask(engine, tmp_path):
    binder = tables(
        engine,
        tmp_path,
        t=[{"k": 1, "v": 10}, {"k": 1, "v": 20}, {"k": 2, "v": 30}],
        u=[{"k": 1, "n": "one"}],
    )

    def ask(text):
        return engine.query(text, binder, catalog="main", schema="sales").to_pylist()

    return ask


def test_queries_of_any_shape(ask):
    assert ask("SELECT k, sum(v) AS s FROM sales.t GROUP BY k ORDER BY k DESC LIMIT 5") == [
        {"k": 2, "s": 30},
        {"k": 1, "s": 30},
    ]
    text = (
        "WITH a AS (SELECT k, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS r, v FROM t) "
        "SELECT a.k, n, v FROM a LEFT JOIN u USING (k) WHERE r = 1 ORDER BY 1"
    )
    assert ask(text) == [{"k": 1, "n": "one", "v": 20}, {"k": 2, "n": None, "v": 30}]
    assert ask("SELECT DISTINCT k FROM t WHERE k IN (SELECT k FROM u)") == [{"k": 1}]
    assert ask("SELECT k FROM t EXCEPT SELECT k FROM u;") == [{"k": 2}]
    assert ask("SELECT 1 AS one") == [{"one": 1}]


@pytest.mark.parametrize(
    "text", ["DROP TABLE t", "SELECT 1; SELECT 2", "INSERT INTO t VALUES (1)", "TABLE t"]
)
def test_other_statements_are_refused(ask, text):
    with pytest.raises(NotAQueryError):
        ask(text)


def test_errors_have_their_place_in_the_text(ask):
    with pytest.raises(QuerySyntaxError, match="never closed"):
        ask("SELECT (k FROM t")
    with pytest.raises(UnresolvedColumnError) as caught:
        ask("SELECT\n  nope FROM t")
    assert (caught.value.where.line, caught.value.where.column) == (2, 3)
    with pytest.raises(QueryRunError, match=r"(?i)division by zero"):
        ask("SELECT 1 / (k - k) FROM t")
