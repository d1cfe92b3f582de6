"""Materialized views on Spark whose table is made anew: their rows stay until the new ones come."""

from __future__ import annotations

import os
import time
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from millpond.errors import MillpondError
from millpond.runner.spark import flow_run
from millpond.runner.spark.tables import SparkTable
from tests.pipeline_folder import PipelineFolder
from tests.spark.server import SparkServer
from tests.spark.test_takeover import on_spark

VIEW = "CREATE MATERIALIZED VIEW v (k STRING NOT NULL{}) AS SELECT * FROM {};"
DAYS_S = 8 * 86_400


@pytest.fixture
def view(folder: PipelineFolder, spark_server: SparkServer) -> PipelineFolder:
    """A pipeline with a view of a week ago that has a row."""
    folder.configure(on_spark(spark_server))
    folder.feed("whole", [{"k": "a"}])
    folder.feed("wider", [{"k": "b", "w": 1}])
    folder.feed("broken", [{"k": None, "w": 1}], k=pa.string())
    folder.write("a.sql", VIEW.format("", "whole"))
    assert failure(folder) is None
    for entry in (folder.table("v") / "_delta_log").iterdir():
        before = time.time() - DAYS_S
        os.utime(entry, (before, before))
    return folder


def failure(folder: PipelineFolder) -> BaseException | None:
    result = folder.run()
    assert not result.problems
    return result.flows[0].error


def refused(folder: PipelineFolder) -> MillpondError:
    error = failure(folder)
    assert isinstance(error, MillpondError), error
    return error


@pytest.mark.parametrize("column", ["w", "`a w`"], ids=["plain", "mapped"])
def test_old_rows_come_back_where_the_new_ones_can_not_be_written(
    view: PipelineFolder, column: str
) -> None:
    name = column.strip("`")
    view.feed("odd", pa.table({"k": pa.array([None], pa.string()), name: [1]}))
    view.write("a.sql", VIEW.format(f", {column} BIGINT", "odd"))
    assert refused(view).error_class == "DELTA_NOT_NULL_VIOLATED"
    assert (view.columns("v"), view.rows("v")) == (["k"], [("a",)])
    view.write("a.sql", VIEW.format(", w BIGINT", "wider"))
    assert failure(view) is None
    assert (view.columns("v"), view.rows("v")) == (["k", "w"], [("b", 1)])


def test_what_others_did_meanwhile_stays_where_nothing_was_replaced(
    view: PipelineFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = flow_run.FlowRun._run_batch

    def beside_another(self: Any, *args: Any, **options: Any) -> None:
        self._ready.table.set_properties({"theirs": "kept"})
        whole(self, *args, **options)

    monkeypatch.setattr(flow_run.FlowRun, "_run_batch", beside_another)
    view.write(
        "a.sql",
        VIEW.format(", w BIGINT", "(SELECT 'a' AS k, CAST(raise_error('no') AS BIGINT) AS w)"),
    )
    assert refused(view).error_class == "QUERY_FAILED"
    assert DeltaTable(view.table("v")).metadata().configuration["theirs"] == "kept"
    assert view.rows("v") == [("a",)]


def test_a_view_that_stays_empty_is_told_to_be(
    view: PipelineFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: SparkTable, version: int) -> None:
        self.engine.rows(f"RESTORE TABLE {self.sql} TO VERSION AS OF {version + 1000}")

    with monkeypatch.context() as patched:
        patched.setattr(SparkTable, "restore", refuse)
        view.write("a.sql", VIEW.format(", w BIGINT", "broken"))
        error = refused(view)
    assert error.error_class == "SPARK_TABLE_LEFT_EMPTY"
    assert view.rows("v") == []
    view.write("a.sql", VIEW.format(", w BIGINT", "wider"))
    assert failure(view) is None
    assert view.rows("v") == [("b", 1)]
