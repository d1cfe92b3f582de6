"""A connection to the brokers of Kafka: which partitions there are, and how far they reach.

Every question has an answer or an error within the time that the options allow.
"""

from __future__ import annotations

import logging
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from millpond.errors.sources import (
    InvalidSourceOptionError,
    KafkaPackageMissingError,
    KafkaReadError,
    KafkaTopicNotFoundError,
    KafkaUnreachableError,
    UnknownSourceOptionError,
)
from millpond.streaming.kafka_options import EARLIEST_OFFSET, LATEST_OFFSET, KafkaOptions
from millpond.streaming.kafka_properties import SERVERS

A = TypeVar("A")

# How long the client waits inside one call, so that an interrupt is noticed.
CALL_S = 1.0
PAUSE_S = 0.1
INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
# Errors, by the client's names, that go away once the brokers have found each other.
PASSING = frozenset(
    {
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "NOT_LEADER_OR_FOLLOWER",
        "REQUEST_TIMED_OUT",
        "BROKER_NOT_AVAILABLE",
        "_TRANSPORT",
        "_TIMED_OUT",
        "_ALL_BROKERS_DOWN",
        "_RESOLVE",
        "_WAIT_COORD",
        "_WAIT_CACHE",
    }
)

_LOG = logging.getLogger("millpond.kafka")
_LOG.addHandler(logging.NullHandler())


class Partition(NamedTuple):
    """One partition of a topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


class _NotReadyError(Exception):
    """The brokers are still finding out; asking again helps."""


class KafkaCluster:
    """An open connection, to be used in a `with` block and by one thread."""

    def __init__(self, options: KafkaOptions) -> None:
        """Set up the client; contacts no broker yet.

        Raises:
            KafkaPackageMissingError: The client's package is not installed.
            UnknownSourceOptionError: There is no property of that name.
            InvalidSourceOptionError: The client refuses the value of a property.
        """
        try:
            import confluent_kafka
        except ImportError as error:
            raise KafkaPackageMissingError.from_import(
                reason=str(error), where=options.where
            ) from error
        self.options = options
        self._errors: deque[Any] = deque(maxlen=20)
        properties = {
            "fetch.wait.max.ms": "100",
            # How long it pauses once enough is queued; by its own default, for whole seconds.
            "fetch.queue.backoff.ms": "20",
            # What Kafka's own consumer does unless told otherwise, and so does Spark.
            "isolation.level": "read_uncommitted",
            **options.client.values,
            SERVERS: options.servers,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "allow.auto.create.topics": False,
            "auto.offset.reset": "error",
            "error_cb": self._errors.append,
        }
        self._exception = confluent_kafka.KafkaException
        self._place = confluent_kafka.TopicPartition
        try:
            self.consumer = confluent_kafka.Consumer(properties, logger=_LOG)
        except confluent_kafka.KafkaException as error:
            raise self._refused_property(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.consumer.close()

    def partitions(self) -> list[Partition]:
        """What the subscription covers now, in order.

        Raises:
            KafkaTopicNotFoundError: A topic or partition that is named does not exist.
            MillpondError: The brokers do not answer, or with an error.
        """
        topics = self._topics()
        wanted = self.options.subscription
        if wanted.pattern is not None:
            pattern = re.compile(wanted.pattern)
            names = [name for name in topics if pattern.fullmatch(name) and name not in INTERNAL]
            return self._found(topics, names)
        if not wanted.assigned:
            return self._found(topics, wanted.topics)
        found = set(self._found(topics, wanted.assigned))
        assigned = [Partition(t, n) for t, numbers in wanted.assigned.items() for n in numbers]
        for partition in assigned:
            if partition not in found:
                raise KafkaTopicNotFoundError.from_partition(
                    *partition, count=len(topics[partition.topic]), where=self.options.where
                )
        return assigned

    def existing(self, partitions: Iterable[Partition]) -> list[Partition]:
        """Those of some partitions that there are."""
        topics = self._topics()
        return [part for part in partitions if part.number in topics.get(part.topic, ())]

    def earliest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return self._offsets(dict.fromkeys(partitions, EARLIEST_OFFSET))

    def latest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Up to where messages may be read: before the first open transaction, where it counts."""
        return self._offsets(dict.fromkeys(partitions, LATEST_OFFSET))

    def at_times(self, times_ms: Mapping[Partition, int]) -> dict[Partition, int | None]:
        """The first offsets of messages not before some times, `None` where there is none."""
        found = self._offsets(times_ms)
        return {part: offset if offset >= 0 else None for part, offset in found.items()}

    def place(self, partition: Partition, offset: int = 0) -> Any:
        """A place in the client's own terms."""
        return self._place(partition.topic, partition.number, offset)

    def watermarks(self, partition: Partition) -> tuple[int, int]:
        """The first offset of a partition and the one after its last; does not poll."""
        try:
            low, high = self.consumer.get_watermark_offsets(
                self.place(partition), timeout=self.options.timeout_s
            )
        except self._exception as error:
            raise self.failure(f"the offsets of {partition}", error.args[0]) from None
        return low, high

    def check_answers(self) -> None:
        """Raise unless a broker answers; does not poll."""
        try:
            self.consumer.list_topics(timeout=self.options.timeout_s)
        except self._exception as error:
            raise self.silence(reason=error.args[0].str()) from None

    def is_end(self, error: Any) -> bool:
        """Whether what comes in place of a message says that there are no more for now."""
        return bool(error.name() == "_PARTITION_EOF")

    def is_out_of_range(self, error: Any) -> bool:
        """Whether a partition has not got the offset that it is to be read from."""
        return error.name() in {"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"}

    def note(self, error: Any) -> None:
        """Keep an error that concerns no partition, for when no answer comes."""
        self._errors.append(error)

    def silence(self, *, reason: str = "no broker answers") -> KafkaUnreachableError:
        """The error for brokers that did not answer in time."""
        heard = [error.str() for error in self._errors if error.name() != "_ALL_BROKERS_DOWN"]
        return KafkaUnreachableError.from_silence(
            self.options.servers,
            seconds=self.options.timeout_s,
            reason=self._clean(heard[-1] if heard else reason),
        )

    def raise_if_hopeless(self) -> None:
        """Raise what the client has noticed and can't get over by trying again."""
        for error in self._errors:
            if error.name() in {"_AUTHENTICATION", "_SSL"}:
                raise KafkaUnreachableError.from_login(
                    self.options.servers, reason=self._clean(error.str())
                )

    def failure(self, subject: str, error: Any) -> KafkaReadError:
        return KafkaReadError.from_reason(
            self.options.servers, subject, reason=self._clean(error.str())
        )

    def _topics(self) -> dict[str, tuple[int, ...]]:
        """All topics that the login may see. Asking for one by name could create it."""
        return self._answered("its topics", self._list_topics)

    def _list_topics(self, timeout_s: float) -> dict[str, tuple[int, ...]]:
        wanted = self.options.subscription
        named = {*wanted.topics, *wanted.assigned}
        topics: dict[str, tuple[int, ...]] = {}
        for name, topic in self.consumer.list_topics(timeout=timeout_s).topics.items():
            if topic.error is None:
                topics[name] = tuple(sorted(topic.partitions))
            elif name in named:
                self._raise_unless_passing(topic.error, f"the topic {name}")
        return topics

    def _found(
        self, topics: Mapping[str, tuple[int, ...]], names: Iterable[str]
    ) -> list[Partition]:
        for name in names:
            if name not in topics:
                raise KafkaTopicNotFoundError.from_topic(
                    name,
                    self.options.servers,
                    known=set(topics) - INTERNAL,
                    where=self.options.where,
                )
        return [Partition(name, number) for name in sorted(names) for number in topics[name]]

    def _offsets(self, times: Mapping[Partition, int]) -> dict[Partition, int]:
        if not times:
            return {}
        places = [self.place(partition, time_ms) for partition, time_ms in times.items()]

        def ask(timeout_s: float) -> dict[Partition, int]:
            found: dict[Partition, int] = {}
            for place in self.consumer.offsets_for_times(places, timeout=timeout_s):
                partition = Partition(place.topic, place.partition)
                if place.error is not None:
                    self._raise_unless_passing(place.error, f"the offsets of {partition}")
                found[partition] = place.offset
            return found

        return self._answered("the offsets of its partitions", ask)

    def _raise_unless_passing(self, error: Any, subject: str) -> None:
        if not self.is_passing(error):
            raise self.failure(subject, error)
        raise _NotReadyError(error.str())

    def is_passing(self, error: Any) -> bool:
        """Whether an error goes away by itself."""
        return error.name() in PASSING or error.retriable()

    def _answered(self, subject: str, ask: Callable[[float], A]) -> A:
        """Ask until there is an answer, an error that stays, or no time left."""
        deadline = time.monotonic() + self.options.timeout_s
        reason = "no broker answers"
        while True:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise self.silence(reason=reason)
            try:
                return ask(min(left_s, CALL_S))
            except _NotReadyError as error:
                reason = str(error)
            except self._exception as error:
                if not self.is_passing(error.args[0]):
                    raise self.failure(subject, error.args[0]) from None
                reason = error.args[0].str()
            # The client hands out what it noticed only when it is polled.
            self.consumer.poll(0)
            self.raise_if_hopeless()
            time.sleep(min(PAUSE_S, max(left_s, 0)))

    def _refused_property(self, error: Exception) -> Exception:
        reason = self._clean(error.args[0].str())
        found = re.search(r'No such configuration property: "([^"]*)"', reason)
        if found is None:
            return InvalidSourceOptionError.from_client(reason=reason, where=self.options.where)
        option = self.options.client.origins.get(found[1], found[1])
        return UnknownSourceOptionError.from_property(
            option, reason=reason, where=self.options.where
        )

    def _clean(self, text: str) -> str:
        return self.options.client.without_secrets(text)
