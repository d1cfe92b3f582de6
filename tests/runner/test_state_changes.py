"""A changed query goes on with what it kept, or is refused before it writes anything.

All cases run side by side in one pipeline folder: an update with each query as it was, new rows in
the sources, an update with each query as it became, and a full refresh of what was refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from millpond.errors.state import StateIncompatibleError
from millpond.events import FlowStatus, UpdateState
from tests.pipeline_folder import SPEC, PipelineFolder

PYTHON = """\
from pyspark import pipelines as dp
from pyspark.sql import functions as sf
x = lambda: spark.readStream.table("x")
y = lambda: spark.readStream.table("y")
"""
FLOW = """\
@dp.table(name="{table}")
def {table}_query():
    return {query}
"""


@dataclass(frozen=True)
class Change:
    """A query before and after.

    Attributes:
        refused: What the message says, or `None` where the flow goes on.
        rows: Of the table in the end, where they are told here; a refused flow is refreshed first.
        at: What stands where the message points to.
        file: `sql` or `py`.
        setup: Statements before the query, in both forms, or before and after.
    """

    name: str
    before: str
    after: str
    refused: str | None = None
    rows: list[tuple[object, ...]] | None = None
    at: str | None = None
    file: str = "sql"
    setup: tuple[str, str] = ("", "")

    def source(self, query: str, setup: str) -> str:
        if self.file == "py":
            return PYTHON + setup + FLOW.format(table=self.name, query=query)
        return setup + f"CREATE STREAMING TABLE {self.name} AS {query};\n"


def minute(number: int) -> datetime:
    return datetime(2024, 1, 1, 0, number, tzinfo=UTC)


def row(k, v, ts, n):
    return {"k": k, "v": v, "ts": minute(ts), "n": n}


X = [[row(1, "a", 1, 5), row(2, "b", 2, 6)], [row(1, "a", 1, 5), row(3, "b", 40, 6)]]
Y = [[row(1, "c", 1, 5)], [row(3, "c", 1, 5)]]

JOIN = "SELECT a.k, b.v FROM STREAM(x) a JOIN STREAM(y) b ON a.k = b.k"
TIMED = "STREAM(x) WATERMARK ts DELAY OF INTERVAL 1 MINUTE"
WINDOW = f"SELECT window.start AS s, count(*) AS n FROM {TIMED} GROUP BY window(ts, '5 minutes')"
SESSION = (
    "SELECT session_window.start AS s, {key} AS key, count(*) AS n "
    f"FROM {TIMED} GROUP BY session_window(ts, '5 minutes'), {{key}}"
)
DISTINCT = "SELECT DISTINCT k, v FROM STREAM({source}){where}"
PAIR = "SELECT DISTINCT k, v FROM STREAM({}){} UNION ALL SELECT DISTINCT k, v FROM STREAM({}){}"
VIEW = "CREATE TEMPORARY VIEW {name} AS SELECT DISTINCT k FROM STREAM(x);\n"
AB = 'x().alias("a").join(y().alias("b"), {condition})'

REFUSED = [
    Change(
        "other_columns",
        "SELECT DISTINCT k FROM STREAM(x)",
        "SELECT DISTINCT k, v FROM STREAM(x)",
        "the columns that DISTINCT compares changed from k bigint to k bigint, v string",
        rows=[(1, "a"), (2, "b"), (3, "b")],
        at="DISTINCT",
    ),
    Change(
        "other_type",
        "SELECT DISTINCT k FROM STREAM(x)",
        "SELECT DISTINCT CAST(k AS DECIMAL(38, 0)) AS k FROM STREAM(x)",
        # Such a column does not fit into the table either, which is found before.
        "",
    ),
    Change(
        "other_source",
        DISTINCT.format(source="x", where="") + " UNION ALL SELECT k, v FROM STREAM(y)",
        "SELECT k, v FROM STREAM(x) UNION ALL " + DISTINCT.format(source="y", where=""),
        r"what DISTINCT reads changed from main\.sales\.x to main\.sales\.y",
    ),
    Change(
        "exchanged_sources",
        PAIR.format("x", "", "y", ""),
        PAIR.format("y", "", "x", ""),
        r"what DISTINCT reads changed from main\.sales\.x to main\.sales\.y",
        rows=[(1, "a"), (1, "c"), (2, "b"), (3, "b"), (3, "c")],
    ),
    Change(
        "exchanged_filters",
        PAIR.format("x", " WHERE k = 1", "x", " WHERE k > 1"),
        PAIR.format("x", " WHERE k > 1", "x", " WHERE k = 1"),
        "what comes to DISTINCT, of which the query has more than one, changed",
    ),
    Change(
        "added",
        "SELECT k FROM STREAM(x)",
        "SELECT DISTINCT k FROM STREAM(x)",
        "DISTINCT came in, which saw none of the rows read so far",
        rows=[(1,), (2,), (3,)],
        at="DISTINCT",
    ),
    Change(
        "removed",
        "SELECT DISTINCT k FROM STREAM(x)",
        "SELECT k FROM STREAM(x)",
        "it no longer has DISTINCT",
        rows=[(1,), (1,), (2,), (3,)],
    ),
    Change(
        "moved_behind",
        "SELECT DISTINCT k FROM (SELECT k FROM STREAM(x) LIMIT 3)",
        "SELECT k FROM (SELECT DISTINCT k FROM STREAM(x)) LIMIT 3",
        "it no longer has LIMIT, DISTINCT",
    ),
    Change(
        "other_limit",
        "SELECT k FROM STREAM(x) LIMIT 3",
        "SELECT k FROM STREAM(x) LIMIT 5",
        "the number of LIMIT changed from 3 to 5",
        rows=[(1,), (1,), (2,), (3,)],
        at="LIMIT",
    ),
    Change(
        "other_condition",
        JOIN,
        JOIN + " AND a.n = b.n",
        r"the condition of JOIN changed from a \. k = b \. k to a \. k = b \. k and",
        rows=[(1, "c"), (1, "c")],
        at="JOIN",
    ),
    Change(
        "other_keys",
        JOIN,
        JOIN.replace("a.k = b.k", "a.n = b.n"),
        r"the condition of JOIN changed",
    ),
    Change(
        "exchanged_sides",
        JOIN,
        "SELECT a.k, b.v FROM STREAM(y) a JOIN STREAM(x) b ON a.k = b.k",
        r"what JOIN reads changed from main\.sales\.x; main\.sales\.y to main\.sales\.y; main",
        rows=[(1, "a"), (1, "a"), (3, "b")],
    ),
    Change(
        "exchanged_halves",
        "SELECT a.k, b.n FROM (SELECT * FROM STREAM(x) WHERE n = 5) a "
        "JOIN (SELECT * FROM STREAM(x) WHERE n = 6) b ON a.k < b.k AND a.v = b.v",
        "SELECT a.k, b.n FROM (SELECT * FROM STREAM(x) WHERE n = 6) a "
        "JOIN (SELECT * FROM STREAM(x) WHERE n = 5) b ON a.k < b.k AND a.v = b.v",
        "what comes to JOIN",
    ),
    Change(
        "other_join_type",
        f"SELECT a.k, b.v FROM {TIMED} AS a JOIN STREAM(y) WATERMARK ts DELAY OF INTERVAL 1 MINUTE "
        "AS b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 MINUTES",
        f"SELECT a.k, b.v FROM {TIMED} AS a LEFT JOIN STREAM(y) WATERMARK ts DELAY OF INTERVAL 1 "
        "MINUTE AS b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 MINUTES",
        "the type of LEFT JOIN changed from inner to left outer",
        at="LEFT JOIN",
    ),
    Change(
        "other_join_input",
        "SELECT a.k, b.v FROM (SELECT k, n, v FROM STREAM(x)) a JOIN STREAM(y) b ON a.k = b.k",
        "SELECT a.k, b.v FROM (SELECT n, k, v FROM STREAM(x)) a JOIN STREAM(y) b ON a.k = b.k",
        "the columns that come to JOIN changed from k bigint, n bigint",
    ),
    Change(
        "other_window",
        WINDOW,
        WINDOW.replace("5 minutes", "10 minutes"),
        "the window of GROUP BY changed from window.* '5 minutes.* to window.* '10 minutes",
        rows=[(minute(0), 3)],
        at="GROUP BY",
    ),
    Change(
        "other_session_key",
        SESSION.format(key="k"),
        SESSION.format(key="n"),
        "what GROUP BY tells sessions apart by changed from k to n",
    ),
    Change(
        "other_computed_key",
        WINDOW.replace("GROUP BY", "GROUP BY upper(v),"),
        WINDOW.replace("GROUP BY", "GROUP BY lower(v),"),
        r"what GROUP BY groups by changed from upper \( v \) to lower \( v \)",
    ),
    Change(
        "without_watermark",
        f"SELECT DISTINCT k FROM {TIMED}",
        "SELECT DISTINCT k FROM STREAM(x)",
        "it no longer has WATERMARK, DISTINCT",
    ),
    Change(
        "python_subset",
        'x().dropDuplicates(["k"]).select("v")',
        'x().dropDuplicates(["v"]).select("v")',
        r"the columns that dropDuplicates\(\) compares changed from k bigint to v string",
        rows=[("a",), ("b",)],
        at="return x().dropDuplicates",
        file="py",
    ),
    Change(
        "python_sides",
        AB.format(condition='(sf.col("a.k") == sf.col("b.k")) & (sf.col("a.n") > sf.col("b.n"))')
        + '.select("a.k")',
        AB.format(condition='(sf.col("a.k") == sf.col("b.k")) & (sf.col("b.n") > sf.col("a.n"))')
        + '.select("a.k")',
        r"the condition of join\(\) changed",
        file="py",
    ),
    Change(
        "python_frames",
        'joined(lambda a, b: (a["k"] == b["k"]) & (a["n"] > b["n"]))',
        'joined(lambda a, b: (a["k"] == b["k"]) & (b["n"] > a["n"]))',
        r"the condition of join\(\) changed",
        file="py",
        setup=(
            "def joined(on):\n    a, b = x(), y()\n    return a.join(b, on(a, b)).select(a['k'])\n",
        )
        * 2,
    ),
    Change(
        "python_window_before",
        'x().withWatermark("ts", "1 minute").withColumn("w", sf.window("ts", "5 minutes"))'
        '.groupBy("w").count().select("count")',
        'x().withWatermark("ts", "1 minute").withColumn("w", sf.window("ts", "10 minutes"))'
        '.groupBy("w").count().select("count")',
        r"the window of .* changed",
        file="py",
    ),
]

UDF = """\
@sf.udf("boolean")
def wanted(k):
    return k {condition}
"""

GOES_ON = [
    Change(
        "a_filter_below",
        DISTINCT.format(source="x", where=""),
        DISTINCT.format(source="x", where=" WHERE k <> 3 /* no more */"),
        rows=[(1, "a"), (2, "b")],
    ),
    Change(
        "columns_in_another_order",
        "SELECT DISTINCT k, v FROM STREAM(x)",
        "SELECT DISTINCT v, k FROM STREAM(x)",
        rows=[(1, "a"), (2, "b"), (3, "b")],
    ),
    Change(
        "a_column_beside_the_keys",
        'x().select("k", "v").dropDuplicates(["k"]).select("k")',
        'x().select("n", "v", "k").dropDuplicates(["k"]).filter("n > 0").select("k")',
        rows=[(1,), (2,), (3,)],
        file="py",
    ),
    Change(
        "twins_with_a_comment",
        PAIR.format("x", " WHERE k = 1", "x", " WHERE k > 1"),
        PAIR.format("x", " WHERE  k=1 -- one\n", "main.sales.x", " WHERE K > 1"),
        rows=[(1, "a"), (2, "b"), (3, "b")],
    ),
    Change(
        "one_more_stream",
        "SELECT DISTINCT k, v FROM STREAM(x)",
        "SELECT DISTINCT k, v FROM (SELECT * FROM STREAM(x) UNION ALL SELECT * FROM STREAM(y))",
        rows=[(1, "a"), (1, "c"), (2, "b"), (3, "b"), (3, "c")],
    ),
    Change(
        "a_projection_above",
        JOIN,
        JOIN.replace("b.v", "upper(b.v) AS v").replace("a.k = b.k", "A.K  =/* is */ b.k")
        + " WHERE a.k > 0",
        rows=[(1, "C"), (1, "c"), (3, "C")],
    ),
    Change(
        "another_aggregate",
        WINDOW,
        WINDOW.replace("count(*)", "sum(n)").replace("'5 minutes')", "'5 minutes') , k"),
        rows=[(minute(0), 6), (minute(0), 10)],
    ),
    Change(
        "another_delay",
        WINDOW,
        WINDOW.replace("1 MINUTE", "30 SECONDS"),
        rows=[(minute(0), 3)],
    ),
    Change(
        "lines_moved",
        SESSION.format(key="k"),
        SESSION.format(key="k").replace("GROUP BY", "\n\n  GROUP BY"),
        rows=[(minute(1), 1, 2), (minute(2), 2, 1)],
        setup=("", "-- A comment.\n\n"),
    ),
    Change(
        "a_udf_with_another_body",
        'x().filter(wanted("k")).select("k").distinct()',
        'x().filter(wanted("k")).select("k").distinct()',
        rows=[(1,), (2,), (3,)],
        file="py",
        setup=(UDF.format(condition="< 3"), "\n\n" + UDF.format(condition="> 0")),
    ),
    Change(
        "a_renamed_view",
        "SELECT k FROM STREAM(seen_1) WHERE k > 0",
        "SELECT k FROM STREAM(seen_2) WHERE k > 0",
        rows=[(1,), (2,), (3,)],
        setup=(VIEW.format(name="seen_1"), VIEW.format(name="seen_2")),
    ),
    Change(
        "a_view_put_between",
        "SELECT k FROM STREAM(seen_3)",
        "SELECT k FROM STREAM(above_3)",
        rows=[(1,), (2,), (3,)],
        setup=(
            VIEW.format(name="seen_3"),
            VIEW.format(name="seen_3")
            + "CREATE TEMPORARY VIEW above_3 AS SELECT k FROM STREAM(seen_3);\n",
        ),
    ),
]


@dataclass(frozen=True)
class Outcome:
    folder: PipelineFolder
    errors: dict[str, BaseException | None]
    untouched: dict[str, bool]


def checkpoints(folder: PipelineFolder, name: str) -> Path:
    return folder.layout.checkpoint(f"main.sales.{name}", "id").parent


def trace(folder: PipelineFolder, name: str) -> tuple[object, ...]:
    """All that an update could have written for a table."""
    files = sorted(
        (str(path), path.stat().st_mtime_ns)
        for path in checkpoints(folder, name).rglob("*")
        if path.is_file()
    )
    assert files
    return DeltaTable(folder.table(name)).version(), files


@pytest.fixture(scope="module")
def outcome(tmp_path_factory) -> Outcome:
    root = tmp_path_factory.mktemp("changes")
    (root / "spark-pipeline.yml").write_text(SPEC, encoding="utf-8")
    folder = PipelineFolder(root)
    changes = [*REFUSED, *GOES_ON]
    for change in changes:
        folder.write(f"{change.name}.{change.file}", change.source(change.before, change.setup[0]))
    folder.feed("x", X[0])
    folder.feed("y", Y[0])
    first = folder.run()
    assert first.state is UpdateState.COMPLETED, (first.problems, first.flows)
    folder.feed("x", X[1])
    folder.feed("y", Y[1])
    for change in changes:
        folder.write(f"{change.name}.{change.file}", change.source(change.after, change.setup[1]))
    before = {change.name: trace(folder, change.name) for change in changes}
    second = folder.run()
    assert not second.problems
    errors = {flow.name.rpartition(".")[2]: flow.error for flow in second.flows}
    untouched = {
        change.name: trace(folder, change.name) == before[change.name] for change in changes
    }
    refused = [change.name for change in REFUSED]
    refreshed = folder.run(full_refresh=refused)
    assert all(flow.status is not FlowStatus.FAILED for flow in refreshed.flows), refreshed
    return Outcome(folder, errors, untouched)


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.name)
def test_a_change_that_makes_state_useless_is_refused_before_anything_is_written(outcome, change):
    error = outcome.errors[change.name]
    assert error is not None
    if change.refused:
        assert isinstance(error, StateIncompatibleError)
        assert f"flow main.sales.{change.name} changed" in str(error)
        assert re.search(change.refused, str(error)), str(error)
        assert "--full-refresh" in error.hint
        assert error.where.file == f"transformations/{change.name}.{change.file}"
    if change.at is not None:
        lines = change.source(change.after, change.setup[1]).splitlines()
        found = lines[error.where.line - 1][(error.where.column or 1) - 1 :]
        assert found.lstrip().startswith((change.at, change.at.split()[-1]))
    assert outcome.untouched[change.name]


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.name)
def test_a_full_refresh_reads_everything_again_and_removes_the_old_state(outcome, change):
    if change.rows is not None:
        assert outcome.folder.rows(change.name) == sorted(change.rows, key=repr)
    assert len([*checkpoints(outcome.folder, change.name).iterdir()]) == 1


@pytest.mark.parametrize("change", GOES_ON, ids=lambda change: change.name)
def test_a_change_that_leaves_state_good_goes_on_with_it(outcome, change):
    assert outcome.errors[change.name] is None
    assert outcome.folder.rows(change.name) == sorted(change.rows, key=repr)
    assert not outcome.untouched[change.name]
