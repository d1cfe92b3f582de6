"""A Spark session around a client that there is already, to build and run DataFrames in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import LogicalPlan
from pyspark.sql.connect.session import SparkSession


class ClientSession(SparkSession):
    """PySpark's session would open a connection of its own."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._session_id = client._session_id  # noqa: SLF001 - as SparkSession does
        self.release_session_on_close = False

    @contextmanager
    def active(self) -> Iterator[None]:
        """While open, PySpark finds this session in this thread."""
        slot = SparkSession._active_session  # noqa: SLF001 - a slot for each thread
        before = getattr(slot, "session", None)
        slot.session = self
        try:
            yield
        finally:
            slot.session = before

    def __del__(self) -> None:
        """The client is closed by who made it; PySpark would close it here."""

    def frame(self, relation: Any) -> DataFrame:
        """The DataFrame of a relation."""
        return DataFrame(_Relation(relation), self)


class _Relation(LogicalPlan):
    """A relation as PySpark's plans are."""

    def __init__(self, relation: Any) -> None:
        super().__init__(None)
        self._relation = relation

    def plan(self, session: Any) -> Any:
        del session
        return self._relation
