"""Every supported shape gives the same rows in SQL and in Python, however its input is cut.

All cases of a cut run in one pipeline folder, each in source files of its own, over tables that
delta-rs writes and with results that delta-rs reads. What must come out is in `spark_answers.json`;
`record_spark_answers.py` says how it gets there.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests import oracle
from tests.pipeline_folder import SPEC, PipelineFolder
from tests.shapes.answers import read_answers
from tests.shapes.case import CUTS, Case, arrow
from tests.shapes.cases import CASES
from tests.shapes.inputs import STATICS, STREAMS
from tests.shapes.rows import in_order, plain_rows

ANSWERS = read_answers()

PYTHON = """\
from pyspark import pipelines as dp
from pyspark.sql import functions as sf

{setup}
@dp.table(name="{table}"{replace})
def query():
    return {python}
"""
SQL = "CREATE OR REFRESH STREAMING TABLE {table} {flow}\n{sql};\n"


@dataclass(frozen=True)
class Run:
    """One case as one table: in SQL or in Python, appending or replacing."""

    case: Case
    form: str
    replaces: bool

    @property
    def table(self) -> str:
        name = re.sub(r"\W+", "_", self.case.name.lower())
        return f"{name}__{self.form}{'__replace' * self.replaces}"

    @property
    def file(self) -> str:
        return f"{self.table}.{'py' if self.form == 'python' else 'sql'}"

    @property
    def source(self) -> str:
        case = self.case
        if self.form == "sql":
            keys = ", ".join(case.keys)
            replace = f"FLOW REPLACE USING ({keys}) SEQUENCE BY {case.sequence} BY NAME"
            return SQL.format(
                table=self.table, flow=replace if self.replaces else "AS", sql=case.sql
            )
        replace = f", replace_using={list(case.keys)!r}, sequence_by={case.sequence!r}"
        return PYTHON.format(
            setup=dedent(case.setup),
            table=self.table,
            replace=replace * self.replaces,
            python=indent(case.python, ""),
        )


def runs(case: Case) -> list[Run]:
    return [
        Run(case, form, replaces) for form in case.forms for replaces in {False, bool(case.keys)}
    ]


Outcome = dict[str, Any]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What each table holds in the end, by cut: run on first use, once for all workers."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    known: dict[str, Outcome] = {}

    def outcome(cut: str) -> Outcome:
        if cut not in known:
            place = shared / f"shapes {cut}"
            with place.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                kept = place.with_suffix(".pickle")
                if not kept.exists():
                    place.mkdir()
                    kept.write_bytes(pickle.dumps(run_cut(place, cut)))
            known[cut] = pickle.loads(kept.read_bytes())  # noqa: S301 - written a moment ago
        return known[cut]

    return outcome


def run_cut(root: Path, cut: str) -> Outcome:
    """The rows of each table after all updates of a cut, or why there are none."""
    folder = PipelineFolder(root)
    (root / "spark-pipeline.yml").write_text(SPEC, encoding="utf-8")
    folder.configure({"millpond.maxFilesPerTrigger": "1"})
    pending = {run.file: run for case in CASES for run in runs(case)}
    for run in pending.values():
        folder.write(run.file, run.source)
    for name, static in STATICS.items():
        folder.feed(name, arrow(static.schema, static.rows))
    failed: Outcome = {}
    for update in CUTS[cut]:
        for beats in update:
            for name, stream in STREAMS.items():
                rows = stream.rows(beats)
                if rows.num_rows or not folder.table(name).exists():
                    folder.feed(name, rows)
        for file, error in update_once(folder):
            failed.setdefault(pending[file].table, error)
    return {
        run.table: failed.get(run.table) or read(folder.table(run.table))
        for run in pending.values()
    }


def update_once(folder: PipelineFolder) -> Iterator[tuple[str, str]]:
    """Run an update, without the source files that are refused; say what failed and why."""
    while (result := folder.run()).problems:
        for problem in result.problems:
            assert problem.where is not None, problem
            path = folder.root / problem.where.file
            path.unlink(missing_ok=True)
            yield path.name, str(problem)
    for flow in result.flows:
        if flow.error is not None:
            table = flow.name.rpartition(".")[2]
            (file,) = (folder.root / "transformations").glob(f"{table}.*")
            yield file.name, str(flow.error)


def read(path: Path) -> dict[str, Any]:
    table = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t")
    found = pa.table(table)
    return {"columns": found.column_names, "rows": plain_rows(found)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("cut", CUTS)
def test_rows(outcomes, cut, case):
    answers = ANSWERS[case.name]
    answer = answers["whole" if case.judged == "batch" else cut]
    found = outcomes(cut)
    for run in runs(case):
        result = found[run.table]
        assert isinstance(result, dict), f"{run.table}: {result}"
        assert result["columns"] == answer["columns"], run.table
        expected = replaced(answer, case) if run.replaces else answer["rows"]
        assert result["rows"] == expected, run.table


def replaced(answer: dict[str, Any], case: Case) -> list[list[Any]]:
    """What a REPLACE USING flow makes of the rows of an append flow."""
    rows = [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]]
    kept = oracle.expected(rows, keys=case.keys, sequence=lambda row: row[case.sequence])
    return in_order(list(row.values()) for row in kept)
