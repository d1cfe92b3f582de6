"""Topics of Kafka as the source of a stream, and of a batch read.

Offsets are millpond's own: by topic and partition, the offset that is read next. A partition that
they lack is read from its beginning. Nothing is committed to Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millpond.engine.protocol import EmptyInput, Input, ParquetInput
from millpond.errors.sources import (
    InvalidSourceOptionError,
    KafkaDataLossError,
    KafkaStartNotFoundError,
)
from millpond.streaming.kafka_cluster import KafkaCluster, Partition
from millpond.streaming.kafka_options import (
    EARLIEST,
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    ByPartition,
    KafkaOptions,
    Place,
)
from millpond.streaming.kafka_rows import Span, write_messages
from millpond.streaming.source import DataSize, Offset

Offsets = dict[Partition, int]


def kafka_rows(options: KafkaOptions, *, folder: Path) -> Input:
    """All rows of a batch read, from its start to its end as they are now.

    Raises:
        KafkaStartNotFoundError: A partition has not got the offset or time to start at.
        MillpondError: The brokers do not answer, or with an error.
    """
    with KafkaCluster(options) as cluster:
        partitions = cluster.partitions()
        latest = cluster.latest(partitions)
        starts = _starts(cluster, latest)
        ends = _ends(cluster, latest)
        spans = {
            part: Span(starts[part], ends[part]) for part in partitions if starts[part] < ends[part]
        }
        return _rows(cluster, spans, folder=folder)


class KafkaSource:
    """A `StreamSource` of the messages of topics."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options

    @property
    def identity(self) -> str:
        """The topics; which brokers are asked for them may change."""
        return f"kafka {self._options.subscription}"

    @property
    def starts_midway(self) -> bool:
        return not self._options.start.is_earliest

    def columns(self) -> Mapping[str, Any]:
        columns: dict[str, Any] = self._options.schema.jsonValue()
        return columns

    def check_columns(self, earlier: Mapping[str, Any]) -> None:
        """Headers come and go with the option; messages are read with the columns of now."""

    def latest_offset(self) -> Offset:
        with KafkaCluster(self._options) as cluster:
            return _to_json(cluster.latest(cluster.partitions()))

    def first_offset(self, end: Offset) -> Offset:
        """Where a new stream begins.

        Raises:
            KafkaStartNotFoundError: A partition has not got the offset or time to start at.
        """
        with KafkaCluster(self._options) as cluster:
            return _to_json(_starts(cluster, _from_json(end)))

    def next_offset(self, start: Offset, end: Offset) -> Offset | None:
        """The end of the next batch, of `maxOffsetsPerTrigger` offsets at most.

        Raises:
            KafkaDataLossError: Messages are gone that were not read, unless the options allow it.
        """
        begins, ends = _from_json(start), _from_json(end)
        gone = sorted(set(begins) - set(ends))
        if gone and self._options.fail_on_data_loss:
            raise KafkaDataLossError.from_removed([str(part) for part in gone])
        with KafkaCluster(self._options) as cluster:
            earliest = cluster.earliest(ends)
        spans: dict[Partition, Span] = {}
        for part, latest in ends.items():
            begin = begins.get(part, 0)
            if begin > latest:
                self._check(KafkaDataLossError.from_shorter(str(part), wanted=begin, latest=latest))
                begin = 0
            if begin < earliest[part]:
                self._check(
                    KafkaDataLossError.from_expired(
                        str(part), wanted=begin, earliest=earliest[part]
                    )
                )
                begin = earliest[part]
            spans[part] = Span(begin, max(begin, latest))
        taken = _shares(spans, self._options.max_offsets)
        if not any(taken.values()):
            return None
        return _to_json(begins | {part: spans[part].start + taken[part] for part in spans})

    def size(self, start: Offset, end: Offset) -> DataSize:
        """Nothing: Kafka counts messages, and says neither files nor bytes."""
        del start, end
        return DataSize()

    def input(self, start: Offset, end: Offset, *, folder: Path) -> Input:
        """The messages of a range.

        Raises:
            KafkaDataLossError: Messages are gone, unless the options allow it.
            MillpondError: The brokers do not answer, or with an error.
        """
        begins, ends = _from_json(start), _from_json(end)
        spans: dict[Partition, Span] = {}
        for part, until in ends.items():
            begin = begins.get(part, 0)
            # A topic that was made anew begins anew: the plan of the batch allowed for it.
            begin = 0 if begin > until else begin
            if begin < until:
                spans[part] = Span(begin, until)
        if not spans:
            return EmptyInput(self._options.schema)
        with KafkaCluster(self._options) as cluster:
            return _rows(cluster, self._present(cluster, spans), folder=folder)

    def finish(self) -> None:
        """Nothing is left to be done."""

    def _present(
        self, cluster: KafkaCluster, spans: Mapping[Partition, Span]
    ) -> dict[Partition, Span]:
        """What there is still of some spans."""
        existing = cluster.existing(spans)
        gone = sorted(set(spans) - set(existing))
        if gone:
            self._check(KafkaDataLossError.from_removed([str(part) for part in gone]))
        earliest = cluster.earliest(existing)
        present: dict[Partition, Span] = {}
        for part in existing:
            span, first = spans[part], earliest[part]
            if span.start < first:
                self._check(
                    KafkaDataLossError.from_expired(str(part), wanted=span.start, earliest=first)
                )
            if first < span.end:
                present[part] = Span(max(span.start, first), span.end)
        return present

    def _check(self, loss: KafkaDataLossError) -> None:
        if self._options.fail_on_data_loss:
            raise loss


def _rows(cluster: KafkaCluster, spans: Mapping[Partition, Span], *, folder: Path) -> Input:
    schema = cluster.options.schema
    files = write_messages(cluster, spans, folder=folder) if spans else []
    return ParquetInput(tuple(map(str, files)), schema) if files else EmptyInput(schema)


def _shares(spans: Mapping[Partition, Span], limit: int) -> Offsets:
    """How many offsets of each span go into a batch: in proportion to what is there, as in Spark.

    What division leaves over goes to the partitions that it cut most.
    """
    sizes = {part: span.end - span.start for part, span in spans.items()}
    total = sum(sizes.values())
    if total <= limit:
        return sizes
    shares = {part: size * limit // total for part, size in sizes.items()}
    by_rest = sorted(sizes, key=lambda part: (-(sizes[part] * limit % total), part))
    for part in by_rest[: limit - sum(shares.values())]:
        shares[part] += 1
    return shares


def _starts(cluster: KafkaCluster, latest: Offsets) -> Offsets:
    place, where = cluster.options.start, cluster.options.where
    if place.offsets is None and place.times_ms is None and place.time_ms is None:
        return cluster.earliest(latest) if place.side == EARLIEST else latest
    if place.offsets is None:
        starts: Offsets = {}
        times_ms = _times_ms(cluster, place, latest)
        for part, offset in cluster.at_times(times_ms).items():
            if offset is None and not cluster.options.starts_late_at_end:
                raise KafkaStartNotFoundError.from_time(str(part), times_ms[part], where=where)
            # Messages that came in after `latest` was asked for are read by the next update.
            starts[part] = latest[part] if offset is None else min(offset, latest[part])
        return starts
    earliest = cluster.earliest(latest)
    starts = _resolved(cluster, place, earliest=earliest, latest=latest)
    for part, offset in starts.items():
        if not earliest[part] <= offset <= latest[part]:
            raise KafkaStartNotFoundError.from_offset(
                str(part), offset, earliest=earliest[part], latest=latest[part], where=where
            )
    return starts


def _ends(cluster: KafkaCluster, latest: Offsets) -> Offsets:
    """Where a batch read ends, but never after what there is."""
    place = cluster.options.end
    if place.offsets is not None:
        ends = _resolved(cluster, place, earliest={}, latest=latest)
        return {part: min(offset, latest[part]) for part, offset in ends.items()}
    if place.times_ms is None and place.time_ms is None:
        return latest
    found = cluster.at_times(_times_ms(cluster, place, latest))
    return {part: latest[part] if end is None else end for part, end in found.items()}


def _times_ms(cluster: KafkaCluster, place: Place, latest: Offsets) -> Offsets:
    if place.times_ms is None:
        return dict.fromkeys(latest, place.time_ms or 0)
    return _of_all(cluster, place.option, place.times_ms, latest)


def _resolved(
    cluster: KafkaCluster, place: Place, *, earliest: Offsets, latest: Offsets
) -> Offsets:
    offsets = _of_all(cluster, place.option, place.offsets or {}, latest)
    for part, offset in offsets.items():
        if offset == EARLIEST_OFFSET:
            offsets[part] = earliest[part]
        elif offset == LATEST_OFFSET:
            offsets[part] = latest[part]
    return offsets


def _of_all(cluster: KafkaCluster, option: str, numbers: ByPartition, latest: Offsets) -> Offsets:
    """Numbers from an option, which must name exactly the partitions that are read, as in Spark."""
    given = {
        Partition(topic, number): value
        for topic, partitions in numbers.items()
        for number, value in partitions.items()
    }
    if set(given) != set(latest):
        raise InvalidSourceOptionError.from_partitions(
            option,
            missing=[str(part) for part in sorted(set(latest) - set(given))],
            unknown=[str(part) for part in sorted(set(given) - set(latest))],
            where=cluster.options.where,
        )
    return given


def _to_json(offsets: Offsets) -> Offset:
    found: dict[str, dict[str, int]] = {}
    for part in sorted(offsets):
        found.setdefault(part.topic, {})[str(part.number)] = offsets[part]
    return found


def _from_json(offset: Offset) -> Offsets:
    return {
        Partition(topic, int(number)): value
        for topic, partitions in offset.items()
        for number, value in partitions.items()
    }
