"""Full refreshes on Spark that end halfway, or meet other writers of the table."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from millpond.delta import Table
from millpond.runner import run_update
from millpond.runner.spark import table_setup
from millpond.storage import LocalStore
from tests.pipeline_folder import PipelineFolder
from tests.spark.server import SparkServer
from tests.spark.test_server_errors import engine_at
from tests.spark.test_takeover import COPIES, PRICES, on_spark, send, update


class CutShortError(Exception):
    """Stands for a client that dies."""


def begin_full_refresh(
    folder: PipelineFolder, conf: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refresh all tables fully, each up to the statement that clears it."""

    def cut_short(*_: Any) -> None:
        raise CutShortError

    with monkeypatch.context() as patched:
        patched.setattr(table_setup._Setup, "_create", cut_short)
        result = run_update(folder.project(**conf), full_refresh_all=True)
    assert all(isinstance(flow.error, CutShortError) for flow in result.flows), result


@pytest.mark.parametrize("goes_on", ["spark", "embedded"])
def test_a_full_refresh_that_was_cut_short_is_finished_and_no_later_row_is_lost(
    folder: PipelineFolder,
    spark_server: SparkServer,
    monkeypatch: pytest.MonkeyPatch,
    goes_on: str,
) -> None:
    folder.write("a.sql", COPIES + PRICES)
    conf = on_spark(spark_server)
    send(folder, "acme", "pen", 1)
    update(folder, **conf)
    begin_full_refresh(folder, conf, monkeypatch)
    for count, supplier in enumerate(("tulip", "maple"), start=2):
        send(folder, supplier, "ink", 2)
        update(folder, **(conf if goes_on == "spark" else {}))
        assert len(folder.rows("copies")) == count
        assert len(folder.rows("prices")) == count


def test_a_full_refresh_on_the_embedded_engine_keeps_out_a_query_that_still_runs_on_spark(
    folder: PipelineFolder, spark_server: SparkServer
) -> None:
    folder.write("a.sql", COPIES)
    send(folder, "acme", "pen", 1)
    update(folder, **on_spark(spark_server))
    table = Table(folder.table("copies"), LocalStore())
    (writer,) = table.snapshot().app_versions
    result = run_update(folder.project(), full_refresh_all=True)
    assert [flow.error for flow in result.flows] == [None]
    with closing(engine_at(spark_server.url)) as engine:
        late = engine.session_of().sql("SELECT 'acme' AS supplier, 'late' AS article, 1L AS sent")
        # As Spark's sink does with the next batch of the query.
        options = {"txnAppId": writer, "txnVersion": "1"}
        late.write.format("delta").mode("append").options(**options).save(str(table.path))
    assert folder.rows("copies") == [("acme", "pen", 1)]


def test_a_table_of_the_catalog_that_was_refreshed_is_not_refreshed_again(
    folder: PipelineFolder, spark_server: SparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = "spark_catalog.cut_short.source", "spark_catalog.cut_short.target"
    conf = {"millpond.engine": spark_server.url}
    folder.write("a.sql", f"CREATE STREAMING TABLE {target} AS SELECT * FROM STREAM {source};")
    with closing(engine_at(spark_server.url)) as engine:
        engine.rows("DROP SCHEMA IF EXISTS cut_short CASCADE")
        engine.rows("CREATE SCHEMA cut_short")
        engine.rows(f"CREATE TABLE {source} (a INT) USING DELTA")
        engine.rows(f"INSERT INTO {source} VALUES (1)")
        update(folder, **conf)
        begin_full_refresh(folder, conf, monkeypatch)
        engine.rows(f"INSERT INTO {source} VALUES (2)")
        update(folder, **conf)
        update(folder, **conf)
        rows = engine.rows(f"SELECT * FROM {target} ORDER BY a")
        history = engine.rows(f"DESCRIBE HISTORY {target}")
        engine.rows("DROP SCHEMA cut_short CASCADE")
    assert rows == [{"a": 1}, {"a": 2}]
    assert [row["operation"] for row in history].count("REPLACE TABLE") == 1
