"""`read` and `read_stream`: the older ways to read a dataset in a query function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.pipelines.arguments import Arguments
from millpond.pipelines.registry import active_session, caller_location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read(name: str) -> DataFrame:
    """Read a dataset as a whole; the same as `spark.read.table(name)`.

    Example:
        ```python
        @dp.materialized_view
        def booking_count():
            return dp.read("samples.wanderbricks.bookings").groupBy("status").count()
        ```

    Args:
        name: Name of the dataset: one to three parts.

    Raises:
        DefinitionOutsideRunError: No pipeline is being loaded.
        ArgumentTypeError: The name is not a string.
    """
    session = active_session("dp.read")
    return session.read.table(Arguments("dp.read", caller_location()).text("name", name))


def read_stream(name: str) -> DataFrame:
    """Read the new rows of a dataset; the same as `spark.readStream.table(name)`.

    Example:
        ```python
        @dp.table
        def payments():
            return dp.read_stream("samples.wanderbricks.payments")
        ```

    Args:
        name: Name of the dataset: one to three parts.

    Raises:
        DefinitionOutsideRunError: No pipeline is being loaded.
        ArgumentTypeError: The name is not a string.
    """
    session = active_session("dp.read_stream")
    return session.readStream.table(
        Arguments("dp.read_stream", caller_location()).text("name", name)
    )
