"""What a user is told of a server that is not there, not right, or gone."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import grpc
import pytest
from pysail.spark import SparkConnectServer

from millpond.engine.spark import SparkEngine
from millpond.engine.spark import server as server_module
from millpond.engine.spark.connection import connected
from millpond.errors.options import InvalidOptionError
from millpond.errors.runner import TableNotFromPipelineError
from millpond.errors.spark import (
    CatalogNotOnServerError,
    DeltaNotOnServerError,
    NotOnSparkError,
    SparkConnectionLostError,
    SparkServerRestartedError,
    SparkServerUnreachableError,
    SparkVersionNotSupportedError,
    StorageNotSharedError,
    TableNotDeltaError,
)
from millpond.runner import dry_run, list_tables
from tests.pipeline_folder import PipelineFolder
from tests.spark.server import SparkServer, free_port


def engine_at(url: str) -> SparkEngine:
    return SparkEngine(url, configuration=None, catalog="spark_catalog", schema="default")


def problems(folder: PipelineFolder, server: SparkServer) -> list[BaseException]:
    """What an update in the server's own catalog ends with."""
    folder.configure({"millpond.engine": server.url})
    result = folder.run()
    return [*result.problems, *(flow.error for flow in result.flows if flow.error is not None)]


def test_nobody_at_the_address_is_said_at_once() -> None:
    with pytest.raises(SparkServerUnreachableError, match="refused"):
        engine_at(f"sc://127.0.0.1:{free_port()}")


def test_a_server_without_delta_is_said_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RUST_LOG", "off")
    sail = SparkConnectServer("127.0.0.1", 0)
    sail.start()
    host, port = sail.listening_address
    try:
        with pytest.raises(DeltaNotOnServerError):
            engine_at(f"sc://{host}:{port}")
    finally:
        sail.stop()


def test_a_server_that_is_too_old_is_said_before_anything_runs(
    spark_server: SparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "OLDEST_VERSION", (99, 1))
    with pytest.raises(SparkVersionNotSupportedError, match=r"4\.2"):
        engine_at(spark_server.url)


def test_an_engine_that_is_no_address_is_a_wrong_setting(folder: PipelineFolder) -> None:
    with pytest.raises(InvalidOptionError, match=r"millpond\.engine"):
        folder.project(**{"millpond.engine": "spark"})


def test_a_server_elsewhere_needs_a_storage_of_its_own(folder: PipelineFolder) -> None:
    with pytest.raises(StorageNotSharedError, match=r"millpond\.spark\.storage"):
        folder.project(**{"millpond.engine": "sc://spark.example.com"}).start_runtime()


def test_a_catalog_that_the_server_does_not_have_is_named_with_those_that_it_has(
    folder: PipelineFolder, spark_server: SparkServer
) -> None:
    view = "CREATE MATERIALIZED VIEW spark_catalog.default.v AS SELECT * FROM nowhere.s.t;"
    folder.write("a.sql", view)
    (problem,) = problems(folder, spark_server)
    assert isinstance(problem, CatalogNotOnServerError)
    assert "catalog nowhere" in str(problem)
    assert "the server has spark_catalog" in str(problem)


OF_THE_SPEC = {
    "streaming tables": """
        CREATE STREAMING TABLE a AS SELECT 1 AS k FROM STREAM(src);
        CREATE STREAMING TABLE b AS SELECT k FROM STREAM(a);
        CREATE MATERIALIZED VIEW c AS SELECT * FROM other_src;
    """,
    "a view": "CREATE MATERIALIZED VIEW a AS SELECT 1 AS k",
    "what reads a folder": "CREATE MATERIALIZED VIEW a AS SELECT k FROM delta.`{folder}`",
}


@pytest.mark.parametrize("kind", OF_THE_SPEC)
def test_a_catalog_of_the_spec_that_the_server_does_not_have_is_told_once_by_every_command(
    kind: str, folder: PipelineFolder, spark_server: SparkServer
) -> None:
    folder.feed("fed", [{"k": 1}])
    folder.write("a.sql", OF_THE_SPEC[kind].format(folder=folder.table("fed")))
    folder.configure({"millpond.engine": spark_server.url})
    found, of_tables = list_tables(folder.project())
    assert all(table.version is None for table in found)
    for told in (dry_run(folder.project()), folder.run().problems, of_tables):
        (problem,) = told
        assert isinstance(problem, CatalogNotOnServerError)
        assert "catalog main" in str(problem)
        assert "`catalog: spark_catalog`" in str(problem)
        assert "`millpond.spark.tables: storage`" in str(problem)
    folder.configure(
        {"millpond.engine": spark_server.url, "millpond.spark.tables": "storage"},
    )
    assert not any(isinstance(told, CatalogNotOnServerError) for told in dry_run(folder.project()))


def test_other_problems_are_told_beside_a_catalog_that_the_server_does_not_have(
    folder: PipelineFolder, spark_server: SparkServer
) -> None:
    folder.write("a.sql", "CREATE MATERIALIZED VIEW v AS SELECT nope FROM (SELECT 1 AS a)")
    catalog, column = problems(folder, spark_server)
    assert isinstance(catalog, CatalogNotOnServerError)
    assert "nope" in str(column)


def test_what_only_the_embedded_engine_reads_is_refused_with_its_place(
    folder: PipelineFolder, spark_server: SparkServer, tmp_path: Path
) -> None:
    text = f"CREATE STREAMING TABLE spark_catalog.default.t AS SELECT * FROM STREAM read_files('{tmp_path}');"
    folder.write("a.sql", text)
    (problem,) = problems(folder, spark_server)
    assert isinstance(problem, NotOnSparkError)
    assert problem.where is not None
    assert problem.where.line == 1


def test_a_table_of_the_name_that_is_no_delta_table_stays_as_it_is(
    folder: PipelineFolder, spark_server: SparkServer
) -> None:
    name = "spark_catalog.not_delta.t"
    with closing(engine_at(spark_server.url)) as engine:
        engine.rows("CREATE SCHEMA IF NOT EXISTS not_delta")
        engine.rows(f"CREATE TABLE IF NOT EXISTS {name} (a INT) USING PARQUET")
        folder.write("a.sql", f"CREATE MATERIALIZED VIEW {name} AS SELECT 1 AS a;")
        (problem,) = problems(folder, spark_server)
        assert isinstance(problem, TableNotDeltaError)
        assert engine.rows(f"SELECT * FROM {name}") == []


def test_a_table_of_the_name_that_another_pipeline_made_stays_as_it_is(
    folder: PipelineFolder, spark_server: SparkServer, tmp_path: Path
) -> None:
    name = "spark_catalog.shared.days"
    folder.write("a.sql", f"CREATE MATERIALIZED VIEW {name} AS SELECT 1 AS a;")
    assert problems(folder, spark_server) == []
    other = PipelineFolder.made(tmp_path / "other")
    other.write("a.sql", f"CREATE MATERIALIZED VIEW {name} AS SELECT 2 AS a;")
    other.configure({"millpond.engine": spark_server.url})
    spec = other.root / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("name: test", "name: other"))
    for selection in ({}, {"full_refresh_all": True}):
        (flow,) = other.run(**selection).flows
        assert isinstance(flow.error, TableNotFromPipelineError)
        assert "belongs to the pipeline test" in str(flow.error)
    with closing(engine_at(spark_server.url)) as engine:
        assert engine.rows(f"SELECT * FROM {name}") == [{"a": 1}]
        engine.rows("DROP SCHEMA shared CASCADE")
    folder.write("a.sql", "CREATE MATERIALIZED VIEW spark_catalog.shared.days AS SELECT 3 AS a;")
    assert problems(folder, spark_server) == []


def test_a_lost_connection_and_a_server_started_anew_are_told_apart(
    lone_spark_server: SparkServer,
) -> None:
    with closing(engine_at(lone_spark_server.url)) as engine:
        lone_spark_server.kill()
        session = engine.session_of()
        session.client.set_retry_policies([])
        with pytest.raises(SparkConnectionLostError, match="run the update again"):
            engine.rows("SELECT 1")
        lone_spark_server.start()
        # Until it tries again, the channel answers with its last failure.
        grpc.channel_ready_future(session.client._channel).result(timeout=60)
        with (
            pytest.raises(SparkServerRestartedError, match="run the update again"),
            connected(lone_spark_server.url),
        ):
            session.sql("SELECT 1").collect()
