"""Runs cases on millpond: all of a kind in one pipeline folder, each in source files of its own.

Their tables are written and read by delta-rs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tests.pipeline_folder import PipelineFolder
from tests.shapes.answers import Answer
from tests.shapes.case import Case, Cut, StaticTable, StreamTable
from tests.shapes.inputs import tables_of
from tests.shapes.rows import plain_rows

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
            flow = replace if self.replaces else "AS"
            return SQL.format(table=self.table, flow=flow, sql=case.sql)
        replace = f", replace_using={list(case.keys)!r}, sequence_by={case.sequence!r}"
        return PYTHON.format(
            setup=dedent(case.setup),
            table=self.table,
            replace=replace * self.replaces,
            python=case.python,
        )


def runs(case: Case) -> list[Run]:
    kinds = (False, True) if case.keys else (False,)
    return [Run(case, form, replaces) for form in case.forms for replaces in kinds]


def run_cases(
    root: Path, chosen: Sequence[Run], cut: Cut, settings: Mapping[str, str] | None = None
) -> dict[str, Answer | str]:
    """The rows of each table after all updates of a cut, or in words why there are none.

    Args:
        root: A folder that is not there yet.
        settings: Configuration of the pipeline.
    """
    folder = PipelineFolder.made(root, {"millpond.maxFilesPerTrigger": "1", **(settings or {})})
    pending = {run.file: run for run in chosen}
    for run in chosen:
        folder.write(run.file, run.source)
    tables = tables_of(run.case for run in chosen)
    for name, table in tables.items():
        if isinstance(table, StaticTable):
            folder.feed(name, table.rows())
    failed: dict[str, str] = {}
    for update in cut:
        for beats in update:
            for name, table in tables.items():
                if isinstance(table, StreamTable):
                    rows = table.rows(beats)
                    if rows.num_rows or not folder.table(name).exists():
                        folder.feed(name, rows)
        for file, error in _update(folder):
            failed.setdefault(pending[file].table, error)
    return {run.table: failed.get(run.table) or _read(folder.table(run.table)) for run in chosen}


def _update(folder: PipelineFolder) -> Iterator[tuple[str, str]]:
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


def _read(path: Path) -> Answer:
    table = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t")
    found = pa.table(table)
    return {"columns": found.column_names, "rows": plain_rows(found)}
