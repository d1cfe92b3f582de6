"""The engine on a Spark server: `Engine` of the protocol, by Spark Connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from millpond.engine.connect.engine import ConnectEngine
from millpond.engine.protocol import Input
from millpond.engine.spark.server import check_answers, check_fits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkEngine(ConnectEngine):
    """Analyses queries on a Spark server, which streams and runs them itself.

    Args:
        url: `sc://host:port`, with parameters as Spark Connect has them.
        configuration: Settings that every session gets, and `spark.conf.get` tells.
        catalog: Default catalog for names in queries that say none.
        schema: Default schema, likewise.

    Raises:
        SparkServerUnreachableError: Nobody answers.
        SparkVersionNotSupportedError: The server's Spark is too old.
        DeltaNotOnServerError: The server has no Delta Lake.
        EngineConfigurationError: The server refuses a setting.
    """

    def __init__(
        self, url: str, *, configuration: Mapping[str, str] | None, catalog: str, schema: str
    ) -> None:
        check_answers(url)
        self.url = url
        try:
            super().__init__(
                url,
                configuration=configuration,
                catalog=catalog,
                schema=schema,
                computes_state=False,
                retries=None,
            )
            check_fits(self.client(), url)
        except BaseException:
            self.close()
            raise

    def relation(self, source: Input) -> Any:
        """What stands in a plan for an input that is no plan."""
        from millpond.engine.spark.inputs import input_relation

        return input_relation(source)

    def session_of(self, owner: str, spark_conf: Mapping[str, str]) -> SparkSession:
        """A session of somebody's own, in which queries may run."""
        from pyspark.sql.connect.session import SparkSession

        client = self.client(spark_conf, owner=owner)
        session = SparkSession(f"{_with_slash(self.url)};session_id={client._session_id}")  # noqa: SLF001 - the same session, to build DataFrames in
        session.release_session_on_close = False
        return session


def _with_slash(url: str) -> str:
    """An address to which parameters can be added."""
    return url.rstrip(";") if ";" in url else url.rstrip("/") + "/"
