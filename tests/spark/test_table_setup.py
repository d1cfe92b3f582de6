"""What is changed in a table on Spark that is there already."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from pyspark.sql.types import LongType, StructField, StructType

from millpond.errors.spark import SparkTableRefusedError
from millpond.runner.spark.table_setup import comment_columns
from millpond.runner.spark.tables import SparkTable
from tests.pipeline_folder import PipelineFolder
from tests.spark.server import SparkServer
from tests.spark.test_server_errors import engine_at
from tests.spark.test_takeover import on_spark

REFUSED = {
    "unknown_property": "TBLPROPERTIES ('delta.noSuch' = 'x') AS SELECT 1 AS a",
    "no_boolean": "TBLPROPERTIES ('delta.appendOnly' = 'maybe') AS SELECT 1 AS a",
    "by_list": "CLUSTER BY (a) AS SELECT array(1) AS a",
}


def test_columns_get_the_comments_of_the_definition_and_lose_those_that_it_no_longer_has(
    spark_server: SparkServer, tmp_path: Path
) -> None:
    with closing(engine_at(spark_server.url)) as engine:
        table = SparkTable(f"delta.`{tmp_path / 'table'}`", engine)
        engine.rows(
            f"CREATE TABLE {table.sql} (lost BIGINT COMMENT 'old', changed BIGINT COMMENT 'old', "
            "kept BIGINT COMMENT 'kept', new BIGINT) USING DELTA"
        )
        wanted = {"lost": "", "changed": "it's ${new}", "kept": "kept", "new": "new"}
        fields = [
            StructField(name, LongType(), metadata={"comment": text} if text else {})
            for name, text in wanted.items()
        ]
        comment_columns(table, table.columns(), StructType(fields))
        found = engine.rows(f"DESCRIBE TABLE {table.sql}")
        assert {row["col_name"]: row["comment"] or "" for row in found} == wanted
        before = engine.rows(f"DESCRIBE HISTORY {table.sql} LIMIT 1")
        comment_columns(table, table.columns(), StructType(fields))
        assert engine.rows(f"DESCRIBE HISTORY {table.sql} LIMIT 1") == before


def test_what_the_server_refuses_of_a_table_is_told_with_its_place_and_without_a_stack(
    folder: PipelineFolder, spark_server: SparkServer
) -> None:
    views = [f"CREATE MATERIALIZED VIEW {name} {rest};\n" for name, rest in REFUSED.items()]
    folder.write("a.sql", "".join(views))
    folder.configure(on_spark(spark_server))
    flows = folder.run().flows
    assert len(flows) == len(REFUSED)
    for flow in flows:
        error = flow.error
        assert isinstance(error, SparkTableRefusedError), error
        assert flow.name in str(error)
        assert "transformations/a.sql:" in str(error)
        assert "stack" not in str(error).lower()
        assert len(str(error).splitlines()) < 8
