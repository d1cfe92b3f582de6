"""Supported shapes of query give the same rows on the Spark engine as on the embedded one.

A flow takes seconds there, so this runs some cases, each in one form: those that millpond rewrites
for a server, and one of each kind that it does not. `make spark-conformance` runs all of them, in
both forms and into REPLACE USING flows, too.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.once import once, shared_folder
from tests.shapes.answers import read_answers, replaced
from tests.shapes.case import CUTS
from tests.shapes.case_run import Run, run_cases, runs
from tests.shapes.cases import CASES

pytestmark = pytest.mark.timeout(7200)

ANSWERS = read_answers()
EVERYTHING = "MILLPOND_SPARK_CONFORMANCE" in os.environ
CHOSEN = {
    "CASE and coalesce": "sql",
    "struct functions": "python",
    "two LATERAL VIEWs": "sql",
    "a left join with a lateral table function": "python",
    "unpivot": "python",
    "common table expressions in a chain": "sql",
    "UNION ALL of three streams": "sql",
    "a pandas UDF": "python",
    "mapInArrow": "python",
    "DISTINCT with nulls, NaN and both zeros": "sql",
    "UNION ALL of two DISTINCTs": "sql",
    "dropDuplicates under a filter": "python",
    "LIMIT over DISTINCT": "sql",
    "a left join with a table": "sql",
    "an inner join on several keys with NaN and zeros": "python",
    "a join of joins of subqueries": "sql",
    "a window as a column": "sql",
}
# Their rows depend on the cut.
IN_TIME = {
    "aggregates by window and key": "sql",
    "sessions by key": "python",
    "left outer join, BETWEEN": "sql",
    "two watermarks and DISTINCT": "sql",
    "dropDuplicatesWithinWatermark": "python",
}
# What Spark's own streams get wrong, and millpond says to it in other words.
MENDED = {("a left join with a lateral table function", "python")}
# What Spark refuses and the embedded engine does not: see `tests/conformance/differences.py`.
REFUSED = {("left outer join on the same time window", "python")}
TWO_BATCHES = (((0, 1, 2), (3, 4, 5)),)
CUT_IN_TIME = "few and large"


def chosen(names: Any) -> list[Run]:
    found = [run for case in CASES for run in runs(case) if case.name in names]
    return [run for run in found if not run.replaces and names[run.case.name] == run.form]


if EVERYTHING:
    ALL = [run for case in CASES for run in runs(case)]
    BY_BATCH = [run for run in ALL if run.case.judged == "batch"]
    BY_CUT = [
        run
        for run in ALL
        if run.case.judged == "stream" and (run.case.name, run.form) not in REFUSED
    ]
else:
    BY_BATCH, BY_CUT = chosen(CHOSEN), chosen(IN_TIME)
BY_BATCH = [
    run for run in BY_BATCH if not run.case.spark_errs or (run.case.name, run.form) in MENDED
]


@pytest.fixture
def outcome(request, spark_server, tmp_path_factory):
    """What a table holds after all updates; all cases of a cut run on first use."""
    settings = {"millpond.engine": spark_server.url, "millpond.spark.tables": "storage"}

    def find(run: Run) -> Any:
        by_batch = run in BY_BATCH
        together, cut = (BY_BATCH, TWO_BATCHES) if by_batch else (BY_CUT, CUTS[CUT_IN_TIME])
        place = shared_folder(tmp_path_factory) / f"cases-on-spark-{'batch' if by_batch else 'cut'}"
        found = once(place, lambda root: run_cases(root, together, cut, settings))
        assert isinstance(found, dict), found
        return found[run.table]

    return find


@pytest.mark.parametrize("run", [*BY_BATCH, *BY_CUT], ids=lambda run: run.table)
def test_rows(outcome, run):
    result = outcome(run)
    answer = ANSWERS[run.case.name]["whole" if run.case.judged == "batch" else CUT_IN_TIME]
    assert isinstance(result, dict), result
    assert result["columns"] == answer["columns"]
    assert result["rows"] == (replaced(answer, run.case) if run.replaces else answer["rows"])


def test_every_case_that_is_chosen_is_there():
    names = {case.name for case in CASES}
    assert {*CHOSEN, *IN_TIME, *(name for name, _ in MENDED | REFUSED)} <= names
    assert {run.case.judged for run in BY_BATCH} == {"batch"}
    assert {run.case.judged for run in BY_CUT} == {"stream"}
