"""Expectations: what is counted, what is dropped, what fails, in each kind of flow."""

from __future__ import annotations

import pytest

from millpond.errors.flows import ExpectationViolationError
from millpond.events import FlowStatus
from tests.conformance.stories import story

pytestmark = pytest.mark.timeout(1800)

ROWS = [
    {"k": "a", "v": 1, "s": 1},
    {"k": "b", "v": -1, "s": 1},
    {"k": None, "v": 2, "s": 1},
    {"k": "d", "v": None, "s": 1},
]
CHECKS = """(
  CONSTRAINT positive EXPECT (v > 0) ON VIOLATION DROP ROW,
  CONSTRAINT `has a key` EXPECT (k IS NOT NULL),
  CONSTRAINT small EXPECT (s < 10) ON VIOLATION FAIL UPDATE
)"""
QUERIES = {
    "appended": "STREAMING TABLE appended {} AS SELECT * FROM STREAM(checks_in)",
    "replaced": "STREAMING TABLE replaced {} FLOW REPLACE USING (k) SEQUENCE BY s BY NAME "
    "SELECT * FROM STREAM(checks_in)",
    "computed": "MATERIALIZED VIEW computed {} AS SELECT * FROM checks_in",
}
ONCE = """
CREATE STREAMING TABLE filled_once {};
CREATE FLOW fill AS INSERT ONCE INTO filled_once BY NAME SELECT * FROM checks_in;
"""


@story
def test_rows_are_counted_by_expectation_and_dropped(folder):
    text = ";\n".join(f"CREATE {query.format(CHECKS)}" for query in QUERIES.values())
    folder.write("p.sql", text + ";\n" + ONCE.format(CHECKS))
    folder.feed("checks_in", ROWS)
    ended = yield
    for flow in (*QUERIES, "fill"):
        (batch,) = ended.batches(flow)
        assert (batch["read"], batch["dropped"]) == (4, 2), flow
        assert batch["expectations"] == {
            "positive": (2, 2),
            "has a key": (3, 1),
            "small": (4, 0),
        }, flow
    for table in (*QUERIES, "filled_once"):
        assert folder.rows(table) == [("a", 1, 1), (None, 2, 1)], table


@story
def test_a_row_that_must_not_be_fails_the_flow_and_nothing_is_applied(folder):
    check = """(
      CONSTRAINT keyed EXPECT (k IS NOT NULL) ON VIOLATION DROP ROW,
      CONSTRAINT positive EXPECT (v > 0) ON VIOLATION FAIL UPDATE
    )"""
    tables = {
        f"{name}_or_failed": query.replace(name, f"{name}_or_failed").replace("checks", "bad")
        for name, query in QUERIES.items()
    }
    folder.write("p.sql", "".join(f"CREATE {text.format(check)};\n" for text in tables.values()))
    folder.feed("bad_in", ROWS[:1])
    yield
    # A row that is to be dropped fails the update as well.
    folder.feed("bad_in", [*ROWS[:1], {"k": None, "v": -1, "s": 1}])
    ended = yield
    for table in tables:
        assert ended.status(table) is FlowStatus.FAILED
        error = ended.error(table)
        assert isinstance(error, ExpectationViolationError)
        assert error.expectation == "positive"
        assert '"k":null,"v":-1' in str(error), error
        assert "p.sql:" in str(error)
        assert folder.rows(table) == [("a", 1, 1)]


@story
def test_expectations_of_a_view_hold_for_its_readers(folder):
    folder.write(
        "p.sql",
        """
        CREATE TEMPORARY VIEW dropping (CONSTRAINT real EXPECT (v > 0) ON VIOLATION DROP ROW)
        AS SELECT * FROM STREAM(view_in);
        CREATE STREAMING TABLE dropped AS SELECT k FROM STREAM(dropping);

        CREATE TEMPORARY VIEW warning (CONSTRAINT real EXPECT (v > 0)) AS SELECT * FROM view_in;
        CREATE MATERIALIZED VIEW warned AS SELECT k FROM warning;

        CREATE TEMPORARY VIEW failing (CONSTRAINT real EXPECT (v > 0) ON VIOLATION FAIL UPDATE)
        AS SELECT * FROM view_in;
        CREATE MATERIALIZED VIEW failed AS SELECT k FROM failing;

        CREATE TEMPORARY VIEW failing_stream
        (CONSTRAINT real EXPECT (v > 0) ON VIOLATION FAIL UPDATE)
        AS SELECT * FROM STREAM(view_in);
        CREATE STREAMING TABLE failed_stream AS SELECT k FROM STREAM(failing_stream);
        """,
    )
    folder.feed("view_in", [{"k": "a", "v": 1}, {"k": "b", "v": -1}, {"k": "c", "v": None}])
    ended = yield
    assert folder.rows("dropped") == [("a",)]
    assert folder.rows("warned") == [("a",), ("b",), ("c",)]
    for flow in ("failed", "failed_stream"):
        error = ended.error(flow)
        assert isinstance(error, ExpectationViolationError), error
        assert error.expectation == "real"


SEEN_VIEW = """
CREATE TEMPORARY VIEW {name}_rows (CONSTRAINT real EXPECT (v > 0) ON VIOLATION FAIL UPDATE)
AS {query};
CREATE MATERIALIZED VIEW {name} AS SELECT * FROM {name}_rows {reader};
"""


@story
def test_a_view_that_fails_looks_at_its_own_rows_all_of_them_and_at_no_others(folder):
    left_out = {
        "seen_where": "SELECT * FROM seen_in WHERE upper(k) = 'A'",
        "seen_joined": "SELECT i.* FROM seen_in AS i JOIN seen_keys AS j ON i.k = j.k",
        "seen_union": "SELECT * FROM (SELECT * FROM seen_in UNION ALL SELECT * FROM seen_in) "
        "WHERE k = 'a'",
    }
    views = [SEEN_VIEW.format(name=n, query=q, reader="") for n, q in left_out.items()]
    seen = {
        "seen_filtered": "SELECT * FROM seen_in",
        "seen_grouped": "SELECT k, sum(v) AS v FROM seen_in GROUP BY k",
    }
    views += [SEEN_VIEW.format(name=n, query=q, reader="WHERE k = 'a'") for n, q in seen.items()]
    folder.write("p.sql", "".join(views))
    folder.feed("seen_in", [{"k": "a", "v": 1}, {"k": "b", "v": -1}])
    folder.feed("seen_keys", [{"k": "a"}])
    ended = yield
    for flow in left_out:
        assert ended.error(flow) is None, flow
        assert set(folder.rows(flow)) == {("a", 1)}, flow
    for flow in seen:
        assert isinstance(ended.error(flow), ExpectationViolationError), flow


@story
def test_expectations_in_python(folder):
    folder.write(
        "p.py",
        """
        from pyspark import pipelines as dp

        @dp.table
        @dp.expect("real", "v > 0")
        @dp.expect_or_drop("known", "k IS NOT NULL")
        def decorated():
            return spark.readStream.table("python_in")
        """,
    )
    folder.feed("python_in", ROWS)
    ended = yield
    (batch,) = ended.batches("decorated")
    assert batch["expectations"] == {"real": (2, 2), "known": (3, 1)}
    assert len(folder.rows("decorated")) == 3
