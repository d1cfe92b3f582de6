"""A server that `make spark` starts keeps tables, ends when told to, and says why it can't start."""

from __future__ import annotations

import os
import socket

import pytest

from tests.spark.server import SparkServer, free_port, session_of


def rows_of(server: SparkServer, table: str) -> list[tuple]:
    with session_of(server) as spark:
        return [tuple(row) for row in spark.table(table).collect()]


def test_a_delta_table_outlives_its_server(lone_spark_server):
    server = lone_spark_server
    with session_of(server) as spark:
        spark.sql("CREATE SCHEMA outlives")
        spark.sql(
            "CREATE TABLE outlives.prices USING delta AS SELECT 'salt' AS article, 2 AS price"
        )
    assert (server.folder / "warehouse" / "outlives.db" / "prices" / "_delta_log").is_dir()
    server.kill()
    assert server.process_ids() == []
    server.start()
    assert rows_of(server, "outlives.prices") == [("salt", 2)]
    server.restart()
    assert rows_of(server, "outlives.prices") == [("salt", 2)]


def test_a_server_that_runs_is_not_started_again(spark_server):
    before = spark_server.process_ids()
    again = spark_server.run("start", "--port", str(spark_server.port), "--short-lived")
    assert again.returncode == 0
    assert f"already running at {spark_server.url}" in again.stdout
    assert spark_server.process_ids() == before


def test_a_server_that_runs_is_not_taken_for_another_one(spark_server):
    other = spark_server.run("start", "--port", str(free_port()))
    assert other.returncode == 1
    assert "Stop it first" in other.stderr


def test_a_server_listens_to_this_machine_only(spark_server):
    with socket.socket() as client:
        client.settimeout(5)
        # Of the same machine, yet not what the server is bound to: a wildcard would answer.
        assert client.connect_ex(("127.0.0.2", spark_server.port)) != 0


def test_workers_run_functions_of_clients_and_end_with_their_server(tmp_path):
    server = SparkServer(tmp_path / "a cluster", free_port(), workers=1)
    server.start()
    try:
        groups = server.process_ids()
        with session_of(server) as spark:
            from pyspark.sql.functions import udf

            spark.sql("CREATE TABLE words USING delta AS SELECT 'mill' AS word")
            shouted = spark.table("words").select(udf(str.upper, "string")("word")).collect()
        assert [tuple(row) for row in shouted] == [("MILL",)]
        assert len(groups) == 3
    finally:
        server.stop()
    for group in groups:
        with pytest.raises(ProcessLookupError):
            os.killpg(group, 0)


def test_a_port_that_is_taken_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = SparkServer(tmp_path, port).run("start", "--port", str(port))
    assert refused.returncode == 1
    assert f"Port {port} is taken" in refused.stderr


def test_a_server_that_does_not_come_up_shows_its_log(tmp_path):
    java = tmp_path / "jre" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho too old for this >&2\nexit 3\n")
    java.chmod(0o755)
    server = SparkServer(tmp_path / "server", free_port())
    failed = server.run("start", "--port", str(server.port), JAVA_HOME=str(tmp_path / "jre"))
    assert failed.returncode == 1
    assert "too old for this" in failed.stderr
    assert str(server.folder / "logs" / "server.log") in failed.stderr
    assert server.process_ids() == []


def test_a_machine_without_java_is_told_so(tmp_path):
    server = SparkServer(tmp_path / "server", free_port())
    failed = server.run("start", JAVA_HOME=str(tmp_path / "nowhere"))
    assert failed.returncode == 1
    assert "Java 17" in failed.stderr
