"""The messages of some ranges of offsets, written as Parquet.

A range is read to its end even where the last offsets hold no message: compaction removes some,
transactions mark their ends with others, and aborted ones may be left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millpond.errors.sources import KafkaDataLossError
from millpond.streaming.kafka_cluster import CALL_S, KafkaCluster, Partition

if TYPE_CHECKING:
    import pyarrow as pa

# What is held in memory before it is written, and what goes into one file.
CHUNK_ROWS = 50_000
CHUNK_BYTES = 16 << 20
FILE_BYTES = 256 << 20
MESSAGES_PER_CALL = 100
# How often the time for an answer may pass without a message while brokers answer otherwise.
SILENT_ROUNDS = 10


@dataclass(frozen=True)
class Span:
    """Offsets of one partition: from `start` up to, but not including, `end`."""

    start: int
    end: int


def write_messages(
    cluster: KafkaCluster, spans: Mapping[Partition, Span], *, folder: Path
) -> list[Path]:
    """Write all messages of the spans to files below `folder`, in order within each partition.

    Raises:
        KafkaDataLossError: Messages are gone, unless the options allow it.
        MillpondError: The brokers do not answer, or with an error.
    """
    import pyarrow.parquet as pq

    schema = _arrow_schema(include_headers=cluster.options.include_headers)
    files: list[Path] = []
    writer: pq.ParquetWriter | None = None
    written_bytes = 0
    try:
        for chunk, size_bytes in _chunks(_messages(cluster, spans), schema):
            if writer is None:
                folder.mkdir(parents=True, exist_ok=True)
                files.append(folder / f"messages-{len(files):05}.parquet")
                writer = pq.ParquetWriter(files[-1], schema)
            writer.write_batch(chunk)
            written_bytes += size_bytes
            if written_bytes >= FILE_BYTES:
                writer.close()
                writer, written_bytes = None, 0
    finally:
        if writer is not None:
            writer.close()
    return files


def _messages(cluster: KafkaCluster, spans: Mapping[Partition, Span]) -> Iterator[Any]:
    """The messages of the spans, of all partitions as they come."""
    consumer = cluster.consumer
    consumer.assign([cluster.place(part, span.start) for part, span in spans.items()])
    reading = _Reading(cluster, dict(spans))
    heard_at, rounds = time.monotonic(), 0
    while reading.unfinished:
        # The first call waits; the second takes what is there already.
        first = consumer.poll(CALL_S)
        found = () if first is None else (first, *consumer.consume(MESSAGES_PER_CALL, timeout=0))
        for message in found:
            if reading.takes(message):
                yield message
        if reading.has_advanced:
            reading.has_advanced = False
            heard_at, rounds = time.monotonic(), 0
        cluster.raise_if_hopeless()
        if time.monotonic() - heard_at > cluster.options.timeout_s:
            # Where brokers answer, the client may be passing over what was aborted or compacted.
            cluster.check_answers()
            heard_at, rounds = time.monotonic(), rounds + 1
            if rounds == SILENT_ROUNDS:
                raise cluster.silence(reason="no message comes")
    consumer.unassign()


@dataclass
class _Reading:
    """What is still to come.

    Attributes:
        unfinished: The spans whose ends were not reached.
        has_advanced: Whether a partition went on; whoever watches for that sets it back.
    """

    cluster: KafkaCluster
    unfinished: dict[Partition, Span]
    has_advanced: bool = False

    def takes(self, message: Any) -> bool:
        """Note what the client hands out, and say whether it is a message of a span."""
        error, topic, offset = message.error(), message.topic(), message.offset()
        if topic is None:
            if error is not None:
                self.cluster.note(error)
            return False
        part = Partition(topic, message.partition())
        span = self.unfinished.get(part)
        if span is None:
            return False
        if error is None and offset + 1 < span.end:
            self.has_advanced = True
            return True
        if error is None:
            self._finish(part)
            return bool(offset < span.end)
        if self.cluster.is_end(error):
            self._at_end(part, span, offset)
        elif self.cluster.is_out_of_range(error):
            self._out_of_range(part, span)
        elif not self.cluster.is_passing(error):
            raise self.cluster.failure(f"the messages of {part}", error)
        return False

    def _finish(self, part: Partition) -> None:
        del self.unfinished[part]
        self.has_advanced = True
        # Else the client would go on to fetch what nobody asked for.
        self.cluster.consumer.pause([self.cluster.place(part)])

    def _at_end(self, part: Partition, span: Span, offset: int) -> None:
        """The client has all that there is up to `offset`."""
        if offset >= span.end:
            self._finish(part)
            return
        # A replica that lags behind ends early, for now.
        _, latest = self.cluster.watermarks(part)
        if latest < span.end:
            if self.cluster.options.fail_on_data_loss:
                raise KafkaDataLossError.from_shorter(str(part), wanted=span.end, latest=latest)
            self._finish(part)

    def _out_of_range(self, part: Partition, span: Span) -> None:
        """Messages were removed since the first offset was asked for, or while being read."""
        earliest, latest = self.cluster.watermarks(part)
        [place] = self.cluster.consumer.position([self.cluster.place(part)])
        position = place.offset if place.offset >= 0 else span.start
        if self.cluster.options.fail_on_data_loss:
            if earliest > position:
                raise KafkaDataLossError.from_expired(str(part), wanted=position, earliest=earliest)
            raise KafkaDataLossError.from_shorter(str(part), wanted=position, latest=latest)
        if earliest >= span.end or earliest <= position:
            self._finish(part)
        else:
            # The client has given the partition up, and can't move in it.
            self.cluster.consumer.incremental_unassign([self.cluster.place(part)])
            self.cluster.consumer.incremental_assign([self.cluster.place(part, earliest)])
            self.has_advanced = True


def _chunks(messages: Iterator[Any], schema: pa.Schema) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Rows in bounded pieces, each with its size."""
    rows, with_headers = _Rows(), "headers" in schema.names
    for message in messages:
        rows.add(message, with_headers=with_headers)
        if len(rows.keys) >= CHUNK_ROWS or rows.size_bytes >= CHUNK_BYTES:
            yield rows.batch(schema), rows.size_bytes
            rows = _Rows()
    if rows.keys:
        yield rows.batch(schema), rows.size_bytes


class _Rows:
    """Rows by column: a million objects of one kind cost Python less than as many rows."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self.keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._topics: list[str] = []
        self._partitions: list[int] = []
        self._offsets: list[int] = []
        self._times_us: list[int | None] = []
        self._kinds: list[int] = []
        self._headers: list[list[dict[str, Any]] | None] = []

    def add(self, message: Any, *, with_headers: bool) -> None:
        key, value = message.key(), message.value()
        kind, time_ms = message.timestamp()
        self.keys.append(key)
        self._values.append(value)
        self._topics.append(message.topic())
        self._partitions.append(message.partition())
        self._offsets.append(message.offset())
        # The client counts the kinds of time from 0 for none; Kafka and Spark from -1.
        self._times_us.append(time_ms * 1000 if kind else None)
        self._kinds.append(kind - 1)
        self.size_bytes += (len(key) if key else 0) + (len(value) if value else 0)
        if with_headers:
            headers = message.headers()
            self._headers.append(
                None
                if headers is None
                else [{"key": name, "value": header} for name, header in headers]
            )
            self.size_bytes += sum(len(header or b"") for _, header in headers or ())

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        import pyarrow as pa

        columns = [
            self.keys,
            self._values,
            self._topics,
            self._partitions,
            self._offsets,
            self._times_us,
            self._kinds,
            self._headers,
        ][: len(schema)]
        arrays = [
            pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)
        ]
        return pa.record_batch(arrays, schema=schema)


def _arrow_schema(*, include_headers: bool) -> pa.Schema:
    import pyarrow as pa

    fields = [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
    if include_headers:
        header = pa.struct([("key", pa.string()), ("value", pa.binary())])
        fields.append(("headers", pa.list_(header)))
    return pa.schema(fields)
