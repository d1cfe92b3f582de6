"""Errors of streams that are neither tables nor files: `rate`, and topics of Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from millpond.errors.base import MillpondError, SourceLocation
from millpond.errors.streaming import FULL_REFRESH
from millpond.errors.suggestion import did_you_mean, shortened


class UnknownSourceOptionError(MillpondError, ValueError):
    """A read of Kafka or of a rate source has an option that does not exist."""

    error_class = "SOURCE_OPTION_UNKNOWN"
    sqlstate = "42616"

    @classmethod
    def from_option(
        cls, source: str, option: str, *, known: Iterable[str], where: SourceLocation | None
    ) -> Self:
        known = sorted(known)
        meant = did_you_mean(option, known)
        hint = f"did you mean {meant}?" if meant else f"the options are {', '.join(known)}"
        return cls(f"A read of {source} has no option {option!r}.", hint=hint, where=where)

    @classmethod
    def from_property(cls, option: str, *, reason: str, where: SourceLocation | None) -> Self:
        return cls(
            f"The client of Kafka does not know the property behind the option {option}: {reason}.",
            hint="options that begin with 'kafka.' are properties of librdkafka or of Kafka's own "
            "consumer; check the spelling",
            where=where,
        )


class InvalidSourceOptionError(MillpondError, ValueError):
    """An option of a read of Kafka or of a rate source has a value that it can't have."""

    error_class = "SOURCE_OPTION_INVALID"
    sqlstate = "42616"

    @classmethod
    def from_value(
        cls, option: str, value: str, *, must_be: str, where: SourceLocation | None
    ) -> Self:
        return cls(
            f"{value!r} is not a value for the option {option}.",
            hint=f"it must be {must_be}",
            where=where,
        )

    @classmethod
    def from_missing(
        cls, source: str, options: Sequence[str], *, example: str, where: SourceLocation | None
    ) -> Self:
        return cls(
            f"A read of {source} needs the option {' or '.join(options)}.",
            hint=f"for example {example}",
            where=where,
        )

    @classmethod
    def from_exclusive(
        cls, source: str, options: Sequence[str], *, where: SourceLocation | None
    ) -> Self:
        return cls(
            f"A read of {source} can have only one of the options {', '.join(options)}.",
            hint="keep one of them",
            where=where,
        )

    @classmethod
    def from_partitions(
        cls,
        option: str,
        *,
        missing: Sequence[str],
        unknown: Sequence[str],
        where: SourceLocation | None,
    ) -> Self:
        parts = []
        if missing:
            parts.append(f"it leaves out {shortened(missing)}")
        if unknown:
            parts.append(f"it names {shortened(unknown)}, which the read does not cover")
        return cls(
            f"The option {option} must name each partition that is read: {' and '.join(parts)}.",
            hint="add or remove those partitions; -2 stands for the earliest offset, -1 for the "
            "latest",
            where=where,
        )

    @classmethod
    def from_client(cls, *, reason: str, where: SourceLocation | None) -> Self:
        return cls(
            f"The client of Kafka refuses its properties: {reason}.",
            hint="correct the option of that name, written as 'kafka.' and the property",
            where=where,
        )


class UnsupportedSourceOptionError(MillpondError, NotImplementedError):
    """A read of Kafka or of a rate source has an option of Spark's that millpond does not offer."""

    error_class = "SOURCE_OPTION_UNSUPPORTED"
    sqlstate = "0A000"

    @classmethod
    def from_option(cls, option: str, *, instead: str, where: SourceLocation | None) -> Self:
        return cls(f"The option {option} is not supported.", hint=instead, where=where)


class SourceNeedsStreamingError(MillpondError, NotImplementedError):
    """A source without an end is read as if it had one."""

    error_class = "SOURCE_NEEDS_STREAMING"
    sqlstate = "0A000"

    @classmethod
    def from_format(cls, source: str, *, where: SourceLocation | None) -> Self:
        return cls(
            f"{source} makes rows without end, and can't be read as a table.",
            hint="read it as a stream, with spark.readStream",
            where=where,
        )


class KafkaPackageMissingError(MillpondError, ImportError):
    """A pipeline reads Kafka, and the package that talks to it is not installed."""

    error_class = "KAFKA_PACKAGE_MISSING"
    sqlstate = "58004"

    @classmethod
    def from_import(cls, *, reason: str, where: SourceLocation | None = None) -> Self:
        return cls(
            f"Reading Kafka needs the package confluent-kafka, which can't be loaded: {reason}.",
            hint="install it with: pip install 'millpond[kafka]'",
            where=where,
        )


class KafkaUnreachableError(MillpondError, ConnectionError):
    """No broker of Kafka answers, or the brokers refuse the login."""

    error_class = "KAFKA_UNREACHABLE"
    sqlstate = "08001"

    @classmethod
    def from_silence(cls, servers: str, *, seconds: float, reason: str) -> Self:
        return cls(
            f"Kafka at {servers} gave no answer within {seconds:g} s: {reason}.",
            hint="check that the brokers run, that kafka.bootstrap.servers names them, and that "
            "the kafka.security.protocol is theirs",
        )

    @classmethod
    def from_login(cls, servers: str, *, reason: str) -> Self:
        return cls(
            f"Kafka at {servers} refuses the login: {reason}.",
            hint="check the options kafka.sasl.* and kafka.ssl.*",
        )


class KafkaReadError(MillpondError, RuntimeError):
    """Kafka answers with an error: a topic may not be read, or a broker fails."""

    error_class = "KAFKA_READ_FAILED"
    sqlstate = "58000"

    @classmethod
    def from_reason(cls, servers: str, subject: str, *, reason: str) -> Self:
        return cls(
            f"Kafka at {servers} can't give {subject}: {reason}.",
            hint="no row of the batch was applied; see that the topic may be read, then run the "
            "update again",
        )


class KafkaTopicNotFoundError(MillpondError, LookupError):
    """A read of Kafka names a topic, or a partition, that does not exist."""

    error_class = "KAFKA_TOPIC_NOT_FOUND"
    sqlstate = "42704"

    @classmethod
    def from_topic(
        cls, topic: str, servers: str, *, known: Iterable[str], where: SourceLocation | None
    ) -> Self:
        known = sorted(known)
        meant = did_you_mean(topic, known)
        if meant:
            hint = f"did you mean {meant}?"
        elif known:
            hint = f"the topics are {shortened(known)}"
        else:
            hint = "there are no topics yet, or none that this login may see"
        return cls(f"Kafka at {servers} has no topic {topic!r}.", hint=hint, where=where)

    @classmethod
    def from_partition(
        cls, topic: str, partition: int, *, count: int, where: SourceLocation | None
    ) -> Self:
        return cls(
            f"The topic {topic!r} has no partition {partition}.",
            hint=f"it has the partitions 0 to {count - 1}",
            where=where,
        )


class KafkaStartNotFoundError(MillpondError, LookupError):
    """A read of Kafka is told to start at an offset or a time that a partition has not got."""

    error_class = "KAFKA_START_NOT_FOUND"
    sqlstate = "22003"

    @classmethod
    def from_offset(
        cls,
        partition: str,
        offset: int,
        *,
        earliest: int,
        latest: int,
        where: SourceLocation | None,
    ) -> Self:
        return cls(
            f"The read can't start at offset {offset} of {partition}, which holds {earliest} up to "
            f"{latest}.",
            hint="name an offset between those in startingOffsets, or -2 for the earliest and -1 "
            "for the latest",
            where=where,
        )

    @classmethod
    def from_time(cls, partition: str, time_ms: int, *, where: SourceLocation | None) -> Self:
        return cls(
            f"{partition} holds no message from {time_ms} ms after 1970 on, where the read is told "
            "to start.",
            hint="choose an earlier time, or set startingOffsetsByTimestampStrategy to 'latest' "
            "to start at the end of such a partition",
            where=where,
        )


class KafkaDataLossError(MillpondError, RuntimeError):
    """Messages that a stream has still to read are gone from Kafka."""

    error_class = "KAFKA_DATA_LOSS"
    sqlstate = "58030"

    _HINT = (
        "set the option failOnDataLoss to false to go on with what is there, or run "
        f"{FULL_REFRESH} to begin anew; keep messages longer (retention.ms) than updates are apart"
    )

    @classmethod
    def from_expired(cls, partition: str, *, wanted: int, earliest: int) -> Self:
        return cls(
            f"The messages {wanted} to {earliest - 1} of {partition} are gone before they were "
            f"read: it begins at offset {earliest} now.",
            hint=cls._HINT,
        )

    @classmethod
    def from_shorter(cls, partition: str, *, wanted: int, latest: int) -> Self:
        return cls(
            f"{partition} was read up to offset {wanted} and ends at {latest} now: the topic was "
            "made anew, or has lost messages.",
            hint=cls._HINT,
        )

    @classmethod
    def from_removed(cls, partitions: Sequence[str]) -> Self:
        return cls(
            f"The stream has read {shortened(partitions)}, which Kafka has no longer.",
            hint=cls._HINT,
        )
