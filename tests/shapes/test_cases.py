"""Every supported shape gives the same rows in SQL and in Python, however its input is cut.

What must come out is in `spark_answers.json`; `record_spark_answers.py` says how it gets there.
"""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.once import once, shared_folder
from tests.shapes.answers import read_answers, replaced
from tests.shapes.case import CUTS
from tests.shapes.case_run import run_cases, runs
from tests.shapes.cases import CASES, KINDS

ANSWERS = read_answers()
# The first case of a kind waits until all of the kind ran, perhaps in another process.
pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the tables of a kind of case hold in the end: run on first use, once for all workers."""
    shared = shared_folder(tmp_path_factory)

    @functools.cache
    def outcome(kind: str, cut: str) -> Any:
        chosen = [run for case in KINDS[kind] for run in runs(case)]
        return once(shared / f"{kind} {cut}", lambda place: run_cases(place, chosen, CUTS[cut]))

    return outcome


# Where nothing is kept from batch to batch, one way to cut the input is as good as another.
CHOSEN_CUTS = {kind: ["restarts"] if kind == "stateless" else [*CUTS] for kind in KINDS}


@pytest.mark.parametrize(
    ("kind", "case", "cut"),
    [
        pytest.param(kind, case, cut, id=f"{cut}-{case.name}")
        for kind, cases in KINDS.items()
        for cut in CHOSEN_CUTS[kind]
        for case in cases
    ],
)
def test_rows(outcomes, cut, kind, case):
    found = outcomes(kind, cut)
    assert isinstance(found, dict), found
    answer = ANSWERS[case.name]["whole" if case.judged == "batch" else cut]
    for run in runs(case):
        result = found[run.table]
        assert isinstance(result, dict), f"{run.table}: {result}"
        assert result["columns"] == answer["columns"], run.table
        expected = replaced(answer, case) if run.replaces else answer["rows"]
        assert result["rows"] == expected, run.table


def test_every_answer_is_of_a_case_and_of_its_cuts():
    assert list(ANSWERS) == [case.name for case in CASES]
    for case in CASES:
        cuts = ["whole"] if case.judged == "batch" else [*CUTS]
        assert list(ANSWERS[case.name]) == cuts, case.name


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_table_beside_a_stream_is_read_as_it_is_at_each_batch(folder, how):
    folder.write(
        "pipeline.sql",
        f"""
        CREATE STREAMING TABLE in_sql
        AS SELECT id, city FROM STREAM orders o {how} JOIN people p ON o.who = p.who;
        """,
    )
    folder.write(
        "pipeline.py",
        f"""
        from pyspark import pipelines as dp

        @dp.table
        def in_python():
            people = spark.read.table("people")
            return spark.readStream.table("orders").join(people, "who", "{how}").select("id", "city")
        """,
    )
    folder.feed("people", [{"who": "ann", "city": "Oslo"}])
    folder.feed("orders", [{"id": 1, "who": "ann"}, {"id": 2, "who": "bob"}])
    folder.run()
    folder.feed("people", [{"who": "bob", "city": "Rome"}, {"who": "ann", "city": "Bern"}])
    folder.feed("orders", [{"id": 3, "who": "ann"}, {"id": 4, "who": "bob"}])
    folder.run()
    expected = [(1, "Oslo"), (3, "Bern"), (3, "Oslo"), (4, "Rome")]
    if how == "left":
        expected.insert(1, (2, None))
    assert folder.rows("in_sql") == expected
    assert folder.rows("in_python") == expected
