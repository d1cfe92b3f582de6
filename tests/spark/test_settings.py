"""Settings that this engine does not let Spark have."""

from __future__ import annotations

from contextlib import closing

import pytest

from millpond.engine.spark import SparkEngine
from millpond.engine.spark.engine import CASE_SENSITIVE, ESCAPED_LITERALS
from millpond.errors.engine_start import EngineConfigurationError
from tests.pipeline_folder import PipelineFolder
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


BY_TEXT = """
from pyspark import pipelines as dp

@dp.table(replace_using=["k"], sequence_by="s", spark_conf={{"{0}": "true"}})
def newest():
    return spark.readStream.table("src")
"""


def test_texts_in_statements_mean_the_same_whatever_is_set(
    folder: PipelineFolder, spark_server: SparkServer
) -> None:
    with closing(engine_at(spark_server.url)) as engine:
        assert engine.session_of().conf.get(ESCAPED_LITERALS) == "false"
    folder.feed("src", [{"k": "a", "s": 1}])
    folder.write("a.py", BY_TEXT.format(ESCAPED_LITERALS))
    folder.configure({"millpond.engine": spark_server.url, "millpond.spark.tables": "storage"})
    (problem,) = folder.run().problems
    assert isinstance(problem, EngineConfigurationError)
    assert ESCAPED_LITERALS in str(problem)
