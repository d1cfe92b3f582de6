"""Settings that this engine does not let Spark have."""

from __future__ import annotations

from contextlib import closing

import pytest

from millpond.engine.spark import SparkEngine
from millpond.engine.spark.engine import CASE_SENSITIVE
from millpond.errors.engine import EngineConfigurationError
from tests.spark.server import SparkServer
from tests.spark.test_server_errors import engine_at


def test_names_are_the_same_in_upper_and_lower_case_whatever_is_set(
    spark_server: SparkServer,
) -> None:
    different = {CASE_SENSITIVE: "true"}
    with pytest.raises(EngineConfigurationError, match="upper and lower case"):
        SparkEngine(
            spark_server.url, configuration=different, catalog="spark_catalog", schema="default"
        )
    with closing(engine_at(spark_server.url)) as engine:
        with pytest.raises(EngineConfigurationError, match="upper and lower case"):
            engine.session_of("flow", different)
        # As the server's own default is for others.
        assert engine.session_of().conf.get(CASE_SENSITIVE) == "false"
