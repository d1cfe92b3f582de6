"""How PySpark's clients get channels to the embedded engine."""

from __future__ import annotations

from typing import Any

from pyspark.sql.connect.client import ChannelBuilder

from millpond.engine.embedded.channel import open_channel


class EmbeddedChannelBuilder(ChannelBuilder):
    """Builds channels that share the connection of a `Server`."""

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__()
        self._address = address

    @property
    def host(self) -> str:
        return self._address[0]

    def toChannel(self) -> Any:  # noqa: N802 - PySpark's name
        return open_channel(self._address)
