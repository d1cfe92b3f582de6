"""Sessions of the engine's own that the server gives up, as it does when nobody uses them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql.connect.client import SparkConnectClient

from millpond.engine.spark import SparkEngine
from millpond.errors.engine_start import EngineConfigurationError
from millpond.runner.spark.tables import SparkTable
from tests.spark.server import SparkServer


def test_a_session_that_the_server_gave_up_is_opened_anew_with_its_settings(
    spark_server: SparkServer, tmp_path: Path
) -> None:
    zone = {"spark.sql.session.timeZone": "Europe/Berlin"}
    engine = SparkEngine(
        spark_server.url, configuration=zone, catalog="spark_catalog", schema="default"
    )
    with closing(engine):
        SparkConnectClient.release_session(engine.client())
        assert engine.rows("SELECT current_timezone() AS zone") == [{"zone": "Europe/Berlin"}]
        table = SparkTable(f"delta.`{tmp_path / 'table'}`", engine)
        engine.rows(f"CREATE TABLE {table.sql} (a INT) USING DELTA")
        SparkConnectClient.release_session(engine.client())
        table.append_nothing("writer", 1)
        SparkConnectClient.release_session(engine.client())
        assert table.exists()


@pytest.mark.parametrize(
    ("key", "value"), [("spark.sql.warehouse.dir", "/x"), ("spark.sql.shuffle.partitions", "many")]
)
def test_a_setting_that_the_server_refuses_is_told_without_a_stack(
    spark_server: SparkServer, key: str, value: str
) -> None:
    engine = SparkEngine(
        spark_server.url, configuration=None, catalog="spark_catalog", schema="default"
    )
    with closing(engine), pytest.raises(EngineConfigurationError, match=key) as caught:
        engine.client({key: value})
    assert len(str(caught.value).splitlines()) == 2
