"""Tables of the server's catalog: what a flow does to them, with code that Spark generates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from millpond.engine.spark import SparkEngine
from tests.pipeline_folder import PipelineFolder
from tests.spark.server import SparkServer
from tests.spark.test_server_errors import engine_at
from tests.spark.test_takeover import update

SCHEMA = "spark_catalog.catalog_tables"
# Servers of tests have none, as it pays off late.
WITH_GENERATED_CODE = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "CODEGEN_ONLY",
}


@pytest.fixture
def engine(spark_server: SparkServer) -> Iterator[SparkEngine]:
    with closing(engine_at(spark_server.url)) as engine:
        engine.rows(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        engine.rows(f"CREATE SCHEMA {SCHEMA}")
        engine.rows(f"CREATE TABLE {SCHEMA}.source (k STRING, v INT, s INT) USING DELTA")
        yield engine
        engine.rows(f"DROP SCHEMA {SCHEMA} CASCADE")


def test_replace_using_into_a_table_of_the_catalog(
    folder: PipelineFolder, engine: SparkEngine
) -> None:
    folder.write(
        "a.sql",
        f"""
        CREATE STREAMING TABLE {SCHEMA}.prices
        (CONSTRAINT sold EXPECT (v >= 0) ON VIOLATION DROP ROW)
        FLOW REPLACE USING (k) SEQUENCE BY s BY NAME SELECT * FROM STREAM {SCHEMA}.source
        """,
    )
    conf = {"millpond.engine": engine.url, **WITH_GENERATED_CODE}
    engine.rows(f"INSERT INTO {SCHEMA}.source VALUES ('a', 1, 1), ('b', 2, 2), (null, 3, 1)")
    update(folder, **conf)
    engine.rows(
        f"INSERT INTO {SCHEMA}.source VALUES "
        "('a', 4, 2), ('a', 5, 2), ('b', 6, 1), ('b', -1, 3), (null, 7, 1)"
    )
    update(folder, **conf)
    rows = engine.rows(f"SELECT * FROM {SCHEMA}.prices ORDER BY v")
    assert [tuple(row.values()) for row in rows] == [
        ("b", 2, 2),
        (None, 3, 1),
        ("a", 4, 2),
        ("a", 5, 2),
        (None, 7, 1),
    ]


CLUSTERED = """\
CREATE MATERIALIZED VIEW {schema}.kept CLUSTER BY (k) AS SELECT k, v FROM {schema}.source;
CREATE MATERIALIZED VIEW {schema}.other CLUSTER BY ({0}) AS SELECT {0} FROM {schema}.source;
CREATE STREAMING TABLE {schema}.changed CLUSTER BY ({0});
CREATE FLOW fill AS INSERT ONCE INTO {schema}.changed BY NAME SELECT * FROM {schema}.source;
CREATE STREAMING TABLE {schema}.without {1};
CREATE FLOW fill_too AS INSERT ONCE INTO {schema}.without BY NAME SELECT * FROM {schema}.source;
"""


def test_tables_are_clustered_as_they_are_defined_also_after_a_refresh(
    folder: PipelineFolder, engine: SparkEngine
) -> None:
    engine.rows(f"INSERT INTO {SCHEMA}.source VALUES ('a', 1, 1)")

    def clustered(column: str, clause: str) -> dict[str, list[str]]:
        folder.write("a.sql", CLUSTERED.format(column, clause, schema=SCHEMA))
        update(folder, **{"millpond.engine": engine.url})
        return {
            table: engine.rows(f"DESCRIBE DETAIL {SCHEMA}.{table}")[0]["clusteringColumns"]
            for table in ("kept", "other", "changed", "without")
        }

    before = clustered("k", "CLUSTER BY (k)")
    assert before == {"kept": ["k"], "other": ["k"], "changed": ["k"], "without": ["k"]}
    after = clustered("v", "")
    assert after == {"kept": ["k"], "other": ["v"], "changed": ["v"], "without": []}
