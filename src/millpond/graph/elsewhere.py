"""Streams of what is neither a table nor files: topics of Kafka, and made-up rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.engine.protocol import Input, TableRead
from millpond.errors.sources import SourceNeedsStreamingError
from millpond.graph.external import Follower
from millpond.streaming import StreamSource
from millpond.streaming.kafka_cluster import KafkaCluster
from millpond.streaming.kafka_options import KafkaOptions
from millpond.streaming.kafka_source import KafkaSource, kafka_rows
from millpond.streaming.rate_source import rate_schema, rate_source

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class KafkaRead:
    """A read of topics."""

    options: KafkaOptions

    @classmethod
    def of(cls, read: TableRead) -> KafkaRead:
        """Understand a read; contacts no broker.

        Raises:
            MillpondError: An option is unknown, or its value does not fit.
        """
        options = KafkaOptions.parse(
            read.written_options, streaming=read.streaming, where=read.location
        )
        with KafkaCluster(options):
            # The client knows which of its settings there are.
            return cls(options)

    @property
    def name(self) -> str:
        return f"kafka {self.options.subscription}"

    @property
    def schema(self) -> StructType:
        return self.options.schema

    def stream(self, follower: Follower) -> StreamSource:
        """The topics as the source of a stream, which keeps nothing but its offsets."""
        del follower
        return KafkaSource(self.options)

    def rows(self, *, folder: Path, has_metadata: bool) -> Input:
        """All messages that there are now."""
        del has_metadata
        return kafka_rows(self.options, folder=folder)


@dataclass(frozen=True)
class RateRead:
    """A read of rows that are made up."""

    read: TableRead

    @classmethod
    def of(cls, read: TableRead) -> RateRead:
        """Understand a read.

        Raises:
            MillpondError: An option is unknown, or its value does not fit, or it is no stream.
        """
        rate_source(read)
        return cls(read)

    @property
    def name(self) -> str:
        return str(self.read.format)

    @property
    def schema(self) -> StructType:
        return rate_schema()

    def stream(self, follower: Follower) -> StreamSource:
        """The rows as the source of a stream, which keeps nothing but its offsets."""
        del follower
        return rate_source(self.read)

    def rows(self, *, folder: Path, has_metadata: bool) -> Input:
        """All rows are more than there can be.

        Raises:
            SourceNeedsStreamingError: Always.
        """
        del folder, has_metadata
        raise SourceNeedsStreamingError.from_format(self.name, where=self.read.location)
