"""The options of a read of Kafka, from text to values. Names and defaults follow Spark's.

Checked when the pipeline is read, before any broker is asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from millpond.errors import SourceLocation
from millpond.errors.sources import InvalidSourceOptionError
from millpond.streaming.kafka_properties import PREFIX, SERVERS, ClientProperties
from millpond.streaming.source_options import MAX_LONG, SourceOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

KAFKA = "Kafka"
EARLIEST, LATEST = "earliest", "latest"
# What offsets of these values stand for, in Kafka as in Spark's options.
EARLIEST_OFFSET, LATEST_OFFSET = -2, -1
DEFAULT_MAX_OFFSETS = 1_000_000
DEFAULT_TIMEOUT_MS = 30_000

_SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
_STARTS = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
_ENDS = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
# How work is spread and when batches are triggered is not up to the read here.
_WITHOUT_EFFECT = (
    "minPartitions",
    "maxRecordsPerPartition",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
_OPTIONS = (
    "kafka.bootstrap.servers",
    "bootstrapServers",
    *_SUBSCRIPTIONS,
    *_STARTS,
    *_ENDS,
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "maxOffsetsPerTrigger",
    "includeHeaders",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    *_WITHOUT_EFFECT,
)
_NO_END = "leave it out: a stream reads up to what is there when the update begins"
_LOGIN = "use kafka.sasl.* or kafka.ssl.*"
_REFUSED = {"serviceCredential": _LOGIN, "databricks.serviceCredential": _LOGIN}

# By topic and number of the partition.
ByPartition = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True)
class Subscription:
    """Which topics are read: some by name, those whose names match, or some partitions.

    Attributes:
        topics: All partitions of these, if given.
        pattern: All partitions of topics whose whole name matches, if given.
        assigned: These partitions of topics, if given.
    """

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"topics like {self.pattern}"
        if self.assigned:
            return f"partitions {json.dumps(self.assigned)}"
        return f"topics {','.join(self.topics)}"


@dataclass(frozen=True)
class Place:
    """Where a read starts or ends in each partition.

    Attributes:
        side: `EARLIEST` or `LATEST`, unless one of the others is given.
        option: The option that says so, for messages.
        offsets: Offsets.
        times_ms: The first message not before these times, in milliseconds since 1970.
        time_ms: The same for all partitions.
    """

    side: str
    option: str
    offsets: ByPartition | None = None
    times_ms: ByPartition | None = None
    time_ms: int | None = None

    @property
    def is_earliest(self) -> bool:
        return self.side == EARLIEST and (self.offsets, self.times_ms, self.time_ms) == (None,) * 3


@dataclass(frozen=True)
class KafkaOptions:
    """A read of Kafka.

    Attributes:
        servers: Of the cluster, in order, for the first contact.
        start: Where a batch read, or the first update of a stream, begins.
        end: Where a batch read ends.
        starts_late_at_end: Whether a partition without a message at or after the starting time is
            read from its end on. Else that is an error.
        fail_on_data_loss: Whether messages that are gone before they were read are an error.
        max_offsets: Offsets in one batch of a stream at most.
        include_headers: Whether there is a column `headers`.
        timeout_s: How long brokers may be silent.
        client: Other properties of the client.
        where: The line of user code that reads it.
    """

    servers: str
    subscription: Subscription
    start: Place
    end: Place
    starts_late_at_end: bool = False
    fail_on_data_loss: bool = True
    max_offsets: int = DEFAULT_MAX_OFFSETS
    include_headers: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_MS / 1000
    client: ClientProperties = field(default_factory=lambda: ClientProperties({}, {}))
    where: SourceLocation | None = None

    @property
    def schema(self) -> StructType:
        return kafka_schema(include_headers=self.include_headers)

    @classmethod
    def parse(
        cls, options: Mapping[str, str], *, streaming: bool, where: SourceLocation | None = None
    ) -> Self:
        """Read options as the user gave them; names count without their letter case.

        Raises:
            UnknownSourceOptionError: There is no such option.
            UnsupportedSourceOptionError: It needs Java, or makes no sense for a stream.
            InvalidSourceOptionError: A value does not fit, options exclude each other, or one that
                is needed is missing.
        """
        folded = {name.lower(): value for name, value in options.items()}
        properties = {
            name: value
            for name, value in folded.items()
            if name.startswith(PREFIX) and name != PREFIX + SERVERS
        }
        given = SourceOptions.of(
            {name: value for name, value in options.items() if name.lower() not in properties},
            source=KAFKA,
            known=_OPTIONS,
            refused={**_REFUSED, **dict.fromkeys(_ENDS, _NO_END)} if streaming else _REFUSED,
            where=where,
        )
        strategy = given.text("startingOffsetsByTimestampStrategy") or "error"
        if strategy.lower() not in {"error", LATEST}:
            must_be = "'error' or 'latest'"
            raise given.invalid("startingOffsetsByTimestampStrategy", must_be=must_be)
        timeout_ms = given.whole("kafkaConsumer.pollTimeoutMs", least=1, default=DEFAULT_TIMEOUT_MS)
        prefix = given.text("groupIdPrefix") or "millpond"
        start_side = LATEST if streaming else EARLIEST
        return cls(
            servers=_servers(given),
            subscription=_subscription(given),
            start=_place(given, _STARTS, side=start_side, sides=_sides(streaming=streaming)),
            end=_place(given, _ENDS, side=LATEST, sides={LATEST: LATEST_OFFSET}),
            starts_late_at_end=strategy.lower() == LATEST,
            fail_on_data_loss=given.boolean("failOnDataLoss", default=True),
            max_offsets=given.whole("maxOffsetsPerTrigger", least=1) or DEFAULT_MAX_OFFSETS,
            include_headers=given.boolean("includeHeaders", default=False),
            timeout_s=(timeout_ms or DEFAULT_TIMEOUT_MS) / 1000,
            client=ClientProperties.of({"kafka.group.id": prefix, **properties}, where=where),
            where=where,
        )


def kafka_schema(*, include_headers: bool) -> StructType:
    """The columns of a read of Kafka."""
    from pyspark.sql.types import (
        ArrayType,
        BinaryType,
        IntegerType,
        LongType,
        StringType,
        StructType,
        TimestampType,
    )

    schema = (
        StructType()
        .add("key", BinaryType())
        .add("value", BinaryType())
        .add("topic", StringType())
        .add("partition", IntegerType())
        .add("offset", LongType())
        .add("timestamp", TimestampType())
        .add("timestampType", IntegerType())
    )
    if include_headers:
        header = StructType().add("key", StringType()).add("value", BinaryType())
        schema = schema.add("headers", ArrayType(header))
    return schema


def _servers(given: SourceOptions) -> str:
    names = ("kafka.bootstrap.servers", "bootstrapServers")
    given.only_one(KAFKA, *names)
    text = given.text(names[0]) or given.text(names[1]) or ""
    servers = sorted({server.strip().lower() for server in text.split(",") if server.strip()})
    if not servers:
        raise InvalidSourceOptionError.from_missing(
            KAFKA, names, example="localhost:9092", where=given.where
        )
    return ",".join(servers)


def _subscription(given: SourceOptions) -> Subscription:
    given.only_one(KAFKA, *_SUBSCRIPTIONS)
    pattern = given.text("subscribePattern")
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            must_be = f"a regular expression ({error})"
            raise given.invalid("subscribePattern", must_be=must_be) from None
        return Subscription(pattern=pattern)
    if "assign" in given.given:
        return Subscription(assigned=_assigned(given))
    topics = tuple(
        sorted({topic.strip() for topic in (given.text("subscribe") or "").split(",")} - {""})
    )
    if not topics:
        raise InvalidSourceOptionError.from_missing(
            KAFKA, _SUBSCRIPTIONS, example="subscribe = 'orders,payments'", where=given.where
        )
    return Subscription(topics)


def _assigned(given: SourceOptions) -> dict[str, tuple[int, ...]]:
    must_be = """JSON with partitions by topic, such as '{"orders": [0, 1]}'"""
    found = given.json_object("assign", must_be=must_be) or {}
    for partitions in found.values():
        if not isinstance(partitions, list) or not all(map(_is_partition, partitions)):
            raise given.invalid("assign", must_be=must_be)
    assigned = {topic: tuple(sorted(set(parts))) for topic, parts in sorted(found.items()) if parts}
    if not assigned:
        raise given.invalid("assign", must_be=must_be)
    return assigned


def _is_partition(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 1 << 31


def _sides(*, streaming: bool) -> dict[str, int]:
    """Where a read may start: at the end only where more is to come."""
    sides = {EARLIEST: EARLIEST_OFFSET}
    return {**sides, LATEST: LATEST_OFFSET} if streaming else sides


def _place(
    given: SourceOptions, options: tuple[str, str, str], *, side: str, sides: Mapping[str, int]
) -> Place:
    """The place that the first of three options names: one time, times, or offsets."""
    by_time, by_times, by_offsets = options
    time_ms = given.whole(by_time, least=0)
    if time_ms is not None:
        return Place(side, by_time, time_ms=time_ms)
    must_be = """JSON with times in milliseconds by partition, such as '{"orders": {"0": 1000}}'"""
    times = given.json_object(by_times, must_be=must_be)
    if times is not None:
        return Place(side, by_times, times_ms=_numbers(given, by_times, times, must_be=must_be))
    text = given.text(by_offsets)
    if text is None:
        return Place(side, by_offsets)
    if text.lower() in sides:
        return Place(text.lower(), by_offsets)
    named = " or ".join(f"'{name}'" for name in sides)
    must_be = (
        f"""{named}, or JSON such as '{{"orders": {{"0": 23, "1": {min(sides.values())}}}}}'"""
    )
    numbers = given.json_object(by_offsets, must_be=must_be) or {}
    allowed = frozenset(sides.values())
    offsets = _numbers(given, by_offsets, numbers, must_be=must_be, negative=allowed)
    return Place(side, by_offsets, offsets=offsets)


def _numbers(
    given: SourceOptions,
    option: str,
    found: Mapping[str, Any],
    *,
    must_be: str,
    negative: frozenset[int] = frozenset(),
) -> dict[str, dict[int, int]]:
    numbers: dict[str, dict[int, int]] = {}
    for topic, partitions in found.items():
        if not isinstance(partitions, dict):
            raise given.invalid(option, must_be=must_be)
        numbers[topic] = {}
        for partition, number in partitions.items():
            is_number = isinstance(number, int) and not isinstance(number, bool)
            fits = is_number and (0 <= number <= MAX_LONG or number in negative)
            if not fits or not (partition.isascii() and partition.isdigit()):
                raise given.invalid(option, must_be=must_be)
            numbers[topic][int(partition)] = number
    return numbers
