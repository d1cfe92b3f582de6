"""Topics of Kafka as the source of a stream and of a batch read, against a broker that runs."""

from __future__ import annotations

import itertools
import random
import time
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from millpond.engine.protocol import EmptyInput
from millpond.errors.sources import (
    InvalidSourceOptionError,
    KafkaDataLossError,
    KafkaReadError,
    KafkaStartNotFoundError,
    KafkaTopicNotFoundError,
    KafkaUnreachableError,
)
from millpond.storage import LocalStore
from millpond.streaming import Checkpoint, run_batches
from millpond.streaming.kafka_cluster import KafkaCluster, Partition
from millpond.streaming.kafka_options import KafkaOptions
from millpond.streaming.kafka_rows import Span, write_messages
from millpond.streaming.kafka_source import KafkaSource, kafka_rows
from tests.streaming.kafka_broker import PASSWORD, USER, Broker, free_ports

SETTLE_S = 20.0
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    broker = Broker.start(tmp_path_factory.mktemp("kafka"))
    yield broker
    broker.stop()


@pytest.fixture(scope="module")
def kafka(broker):
    return Kafka(broker)


@pytest.fixture
def topic(request, kafka):
    """The name of a topic with two partitions that no other test knows."""
    name = f"{request.node.originalname}-{next(kafka.numbers)}"
    kafka.create(name, partitions=2)
    return name


class Kafka:
    """What the tests do with the broker, all with Kafka's own client."""

    def __init__(self, broker):
        self.broker = broker
        self.servers = broker.servers
        self.admin = AdminClient({"bootstrap.servers": broker.servers, "log_level": 0})
        self.numbers = itertools.count()
        self.producer = self.writer()

    def create(self, name, *, partitions=1, **config):
        config = {key.replace("_", "."): str(value) for key, value in config.items()}
        done(self.admin.create_topics([NewTopic(name, partitions, 1, config=config)]))

    def send(self, topic, *values, partition=0, producer=None, **fields):
        producer = producer or self.producer
        for value in values:
            producer.produce(topic, str(value).encode(), partition=partition, **fields)
        producer.flush(10)

    def writer(self, **settings):
        """A producer that keeps the order of messages, even where it has to send them again."""
        base = {"bootstrap.servers": self.servers, "enable.idempotence": True, "linger.ms": 0}
        return Producer({**base, "log_level": 0, **settings})

    def transactional(self):
        producer = self.writer(**{"transactional.id": f"writer-{next(self.numbers)}"})
        producer.init_transactions(SETTLE_S)
        return producer

    def remove_messages(self, topic, *, before, partition=0):
        done(self.admin.delete_records([TopicPartition(topic, partition, before)]))

    def delete(self, topic):
        done(self.admin.delete_topics([topic]))
        wait_until(lambda: topic not in self.admin.list_topics(timeout=5).topics)

    def options(self, topic=None, *, streaming=True, **given):
        options = {"bootstrapServers": self.servers, **given}
        if topic is not None:
            options["subscribe"] = topic
        options = {name.replace("__", "."): value for name, value in options.items()}
        return KafkaOptions.parse(options, streaming=streaming)

    def source(self, topic=None, **given):
        return KafkaSource(self.options(topic, **{"startingOffsets": "earliest", **given}))


def done(futures):
    for future in futures.values():
        future.result(timeout=SETTLE_S)


def wait_until(holds):
    deadline = time.monotonic() + SETTLE_S
    while not holds():
        assert time.monotonic() < deadline, "the broker does not get there"
        time.sleep(0.1)


def rows(given):
    """The rows of an input; what is no input of files holds none."""
    if isinstance(given, EmptyInput):
        return []
    found = [row for file in given.files for row in pq.read_table(file).to_pylist()]
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def values(given):
    return [row["value"].decode() for row in rows(given)]


class Flow:
    """A flow that reads one source, update by update, as the runner does."""

    def __init__(self, folder):
        self.folder = folder
        self.committed = []

    def update(self, source):
        """Run one update and give the values of each batch."""
        batches = []

        def apply(batch):
            found = values(batch.input("kafka", folder=self.folder / f"batch-{batch.number}"))
            self.committed.append(batch.number)
            batches.append(found)

        for _ in run_batches(
            checkpoint=Checkpoint(self.folder / "checkpoint", LocalStore()),
            sources={"kafka": source},
            committed=lambda: self.committed[-1] if self.committed else None,
            apply=apply,
        ):
            pass
        return batches


@pytest.fixture
def flow(tmp_path):
    return Flow(tmp_path / "flow")


def test_a_message_has_the_columns_that_it_has_in_spark(kafka, topic, tmp_path):
    at = 1_767_225_600_123
    kafka.send(topic, "v", key=b"k", timestamp=at, headers=[("a", b"1"), ("b", None)])
    kafka.producer.produce(topic, None, partition=1, timestamp=at)
    kafka.producer.flush()
    options = kafka.options(topic, streaming=False, includeHeaders="true")
    found = kafka_rows(options, folder=tmp_path)
    time_of_both = datetime(2026, 1, 1, 0, 0, 0, 123_000, UTC)
    common = {"topic": topic, "offset": 0, "timestamp": time_of_both, "timestampType": 0}
    headers = [{"key": "a", "value": b"1"}, {"key": "b", "value": None}]
    assert rows(found) == [
        {"key": b"k", "value": b"v", "partition": 0, "headers": headers, **common},
        {"key": None, "value": None, "partition": 1, "headers": None, **common},
    ]
    assert found.schema.names == pq.read_schema(found.files[0]).names
    plain = kafka_rows(kafka.options(topic, streaming=False), folder=tmp_path / "plain")
    assert "headers" not in rows(plain)[0]


def test_a_time_that_the_broker_gave_is_told_from_one_of_the_sender(kafka, tmp_path):
    kafka.create("log-append-time", message_timestamp_type="LogAppendTime")
    kafka.send("log-append-time", "v")
    options = kafka.options("log-append-time", streaming=False)
    assert rows(kafka_rows(options, folder=tmp_path))[0]["timestampType"] == 1


def test_each_message_is_read_once_over_updates(kafka, topic, flow):
    kafka.send(topic, 1, 2)
    assert flow.update(kafka.source(topic)) == [["1", "2"]]
    assert flow.update(kafka.source(topic)) == []
    kafka.send(topic, 3)
    kafka.send(topic, 4, partition=1)
    assert flow.update(kafka.source(topic)) == [["3", "4"]]


def test_a_batch_that_was_not_applied_reads_the_same_messages_again(kafka, topic, flow):
    kafka.send(topic, 1, 2)
    flow.update(kafka.source(topic))
    flow.committed.clear()
    kafka.send(topic, 3)
    assert flow.update(kafka.source(topic)) == [["1", "2"], ["3"]]


def test_a_stream_that_starts_at_the_end_records_where_that_was(kafka, topic, flow):
    kafka.send(topic, "before")
    latest = kafka.source(topic, startingOffsets="latest")
    assert latest.starts_midway
    assert flow.update(latest) == [[]]
    kafka.send(topic, "after")
    assert flow.update(kafka.source(topic, startingOffsets="latest")) == [["after"]]


def test_a_batch_takes_as_many_offsets_as_it_may_from_all_partitions(kafka, topic, flow):
    kafka.send(topic, *range(30))
    kafka.send(topic, *range(100, 110), partition=1)
    batches = flow.update(kafka.source(topic, maxOffsetsPerTrigger="8"))
    assert [len(batch) for batch in batches] == [8, 8, 8, 8, 8]
    assert batches[0] == ["0", "1", "2", "3", "4", "5", "100", "101"]
    whole = sorted(int(value) for batch in batches for value in batch)
    assert whole == [*range(30), *range(100, 110)]


def test_a_range_gives_the_same_rows_whenever_it_is_read(kafka, topic, tmp_path):
    kafka.send(topic, *range(10))
    source = kafka.source(topic)
    first = rows(source.input({topic: {"0": 2}}, {topic: {"0": 5}}, folder=tmp_path / "1"))
    kafka.send(topic, *range(10))
    again = rows(source.input({topic: {"0": 2}}, {topic: {"0": 5}}, folder=tmp_path / "2"))
    assert [row["offset"] for row in first] == [2, 3, 4]
    assert first == again


def test_rows_are_written_in_pieces(kafka, topic, tmp_path, monkeypatch):
    monkeypatch.setattr("millpond.streaming.kafka_rows.CHUNK_ROWS", 10)
    monkeypatch.setattr("millpond.streaming.kafka_rows.FILE_BYTES", 30)
    kafka.send(topic, *range(100, 200))
    found = kafka_rows(kafka.options(topic, streaming=False), folder=tmp_path)
    assert [pq.ParquetFile(file).metadata.num_rows for file in found.files] == [10] * 10
    assert values(found) == [str(value) for value in range(100, 200)]


def test_offsets_to_start_at_are_given_for_each_partition(kafka, topic, flow):
    kafka.send(topic, *range(5))
    kafka.send(topic, *range(10, 15), partition=1)
    given = f'{{"{topic}": {{"0": 3, "1": -2}}}}'
    whole = ["3", "4", *map(str, range(10, 15))]
    assert flow.update(kafka.source(topic, startingOffsets=given)) == [whole]


def test_offsets_to_start_at_must_name_the_partitions_that_are_read(kafka, topic):
    given = f'{{"{topic}": {{"0": 3, "7": 1}}}}'
    source = kafka.source(topic, startingOffsets=given)
    with pytest.raises(InvalidSourceOptionError) as caught:
        source.first_offset(source.latest_offset())
    assert f"leaves out {topic}-1 and it names {topic}-7" in str(caught.value)


def test_an_offset_to_start_at_must_be_there(kafka, topic):
    source = kafka.source(topic, startingOffsets=f'{{"{topic}": {{"0": 3, "1": 0}}}}')
    with pytest.raises(KafkaStartNotFoundError, match="offset 3"):
        source.first_offset(source.latest_offset())


def test_a_stream_can_start_at_a_time(kafka, topic, flow):
    for second in range(5):
        kafka.send(topic, second, timestamp=1000 * second + 1)
    kafka.send(topic, 9, partition=1, timestamp=9000)
    assert flow.update(kafka.source(topic, startingTimestamp="2500")) == [["3", "4", "9"]]


def test_a_stream_can_start_at_a_time_of_its_own_in_each_partition(kafka, topic, flow):
    for second in range(1, 5):
        kafka.send(topic, second, timestamp=1000 * second)
        kafka.send(topic, 10 + second, timestamp=1000 * second, partition=1)
    times = f'{{"{topic}": {{"0": 4000, "1": 2000}}}}'
    source = kafka.source(topic, startingOffsetsByTimestamp=times)
    assert flow.update(source) == [["4", "12", "13", "14"]]


def test_a_time_that_no_message_reaches_is_an_error_unless_it_may_mean_the_end(kafka, topic, flow):
    kafka.send(topic, 1, timestamp=5000)
    with pytest.raises(KafkaStartNotFoundError, match="5001 ms"):
        flow.update(kafka.source(topic, startingTimestamp="5001"))
    late = {"startingTimestamp": "5001", "startingOffsetsByTimestampStrategy": "latest"}
    assert flow.update(kafka.source(topic, **late)) == [[]]


def test_a_batch_read_ends_where_it_is_told(kafka, topic, tmp_path):
    for second in range(1, 6):
        kafka.send(topic, second, timestamp=1000 * second)
    ends = {
        "endingOffsets": f'{{"{topic}": {{"0": 2, "1": -1}}}}',
        "endingTimestamp": "3000",
        "endingOffsetsByTimestamp": f'{{"{topic}": {{"0": 3000, "1": 3000}}}}',
    }
    for option, end in ends.items():
        options = kafka.options(topic, streaming=False, **{option: end})
        assert values(kafka_rows(options, folder=tmp_path / option)) == ["1", "2"]
    beyond = kafka.options(
        topic, streaming=False, endingOffsets=f'{{"{topic}": {{"0": 99, "1": 9}}}}'
    )
    assert len(values(kafka_rows(beyond, folder=tmp_path / "beyond"))) == 5


def test_assigned_partitions_alone_are_read(kafka, topic, flow):
    kafka.send(topic, "no")
    kafka.send(topic, "yes", partition=1)
    assert flow.update(kafka.source(assign=f'{{"{topic}": [1]}}')) == [["yes"]]
    with pytest.raises(KafkaTopicNotFoundError, match="no partition 2"):
        kafka.source(assign=f'{{"{topic}": [2]}}').latest_offset()


def test_new_partitions_and_topics_are_read_from_their_beginning(kafka, flow):
    kafka.create("grow-one")
    kafka.send("grow-one", 1)
    source = kafka.source(subscribePattern="grow-.*", startingOffsets="latest")
    assert flow.update(source) == [[]]
    kafka.create("grow-two")
    done(kafka.admin.create_partitions([NewPartitions("grow-one", 2)]))
    wait_until(lambda: len(kafka.admin.list_topics(timeout=5).topics["grow-one"].partitions) == 2)
    # A producer learns of new partitions only now and then.
    fresh = kafka.writer()
    kafka.send("grow-one", 2, partition=1, producer=fresh)
    kafka.send("grow-two", 3, producer=fresh)
    assert flow.update(source) == [["2", "3"]]


def test_a_pattern_leaves_kafkas_own_topics_out(kafka, topic):
    kafka.transactional()
    assert topic in kafka.source(subscribePattern=".*").latest_offset()
    assert not any(name[:2] == "__" for name in kafka.source(subscribePattern=".*").latest_offset())


def test_what_compaction_took_away_is_no_loss(kafka, flow):
    kafka.create(
        "compacted",
        cleanup_policy="compact",
        segment_ms=100,
        min_cleanable_dirty_ratio=0.001,
        max_compaction_lag_ms=100,
    )
    for value in range(5):
        kafka.send("compacted", value, key=b"same")
    time.sleep(0.2)
    kafka.send("compacted", 5, key=b"other")

    def is_compacted():
        time.sleep(0.2)
        kafka.send("compacted", 6, key=b"other")
        return offsets_of("compacted", kafka)[0] > 0

    wait_until(is_compacted)
    offsets = offsets_of("compacted", kafka)
    source = kafka.source("compacted", maxOffsetsPerTrigger="2")
    batches = flow.update(source)
    assert batches[0] == []
    assert sum(map(len, batches)) == len(offsets)


def offsets_of(topic, kafka):
    """The offsets that a partition holds, by a reader that knows nothing of ours."""
    reader = Consumer(
        {"bootstrap.servers": kafka.servers, "group.id": "oracle", "enable.partition.eof": True}
    )
    reader.assign([TopicPartition(topic, 0, 0)])
    found = []
    while (message := reader.poll(SETTLE_S)) is not None and message.error() is None:
        found.append(message.offset())
    reader.close()
    return found


def test_committed_rows_alone_are_read_where_that_is_asked_for(kafka, topic, flow):
    writer = kafka.transactional()
    for value, commits in (("a", True), ("b", False), ("c", True)):
        writer.begin_transaction()
        kafka.send(topic, value, producer=writer)
        if commits:
            writer.commit_transaction()
        else:
            writer.abort_transaction()
    writer.begin_transaction()
    kafka.send(topic, "open", producer=writer)
    kafka.send(topic, "behind")
    committed = {"kafka.isolation.level": "read_committed"}
    assert flow.update(kafka.source(topic, **committed)) == [["a", "c"]]
    assert flow.update(kafka.source(topic, **committed)) == []
    writer.commit_transaction()
    assert flow.update(kafka.source(topic, **committed)) == [["open", "behind"]]


def test_a_range_without_a_message_ends_all_the_same(kafka, topic, flow):
    writer = kafka.transactional()
    writer.begin_transaction()
    kafka.send(topic, *range(3), producer=writer)
    writer.abort_transaction()
    source = kafka.source(topic, kafka__isolation__level="read_committed", maxOffsetsPerTrigger="2")
    assert flow.update(source) == [[], []]


def test_aborted_rows_are_read_unless_told_otherwise_as_in_spark(kafka, topic, flow):
    writer = kafka.transactional()
    writer.begin_transaction()
    kafka.send(topic, "a", producer=writer)
    writer.abort_transaction()
    assert flow.update(kafka.source(topic)) == [["a"]]


def test_messages_that_are_gone_before_they_were_read_are_an_error(kafka, topic, flow):
    kafka.send(topic, 0, 1)
    flow.update(kafka.source(topic))
    kafka.send(topic, 2, 3, 4)
    kafka.remove_messages(topic, before=4)
    with pytest.raises(KafkaDataLossError, match=f"2 to 3 of {topic}-0"):
        flow.update(kafka.source(topic))
    assert flow.update(kafka.source(topic, failOnDataLoss="false")) == [["4"]]


def test_messages_that_are_gone_before_a_batch_runs_again_are_an_error(kafka, topic, flow):
    kafka.send(topic, 0, 1, 2)
    flow.update(kafka.source(topic))
    flow.committed.clear()
    kafka.remove_messages(topic, before=2)
    with pytest.raises(KafkaDataLossError, match="0 to 1"):
        flow.update(kafka.source(topic))
    assert flow.update(kafka.source(topic, failOnDataLoss="false")) == [["2"]]


@pytest.mark.parametrize("fails", [True, False])
def test_messages_that_go_while_they_are_read_are_an_error(kafka, topic, tmp_path, fails):
    """The beginning was asked for just before: the range still has what is gone."""
    kafka.send(topic, 0, 1, 2)
    kafka.remove_messages(topic, before=2)
    options = kafka.options(topic, failOnDataLoss=str(fails).lower())
    spans = {Partition(topic, 0): Span(0, 3)}
    with KafkaCluster(options) as cluster:
        if fails:
            with pytest.raises(KafkaDataLossError, match="0 to 1"):
                write_messages(cluster, spans, folder=tmp_path)
            return
        [file] = write_messages(cluster, spans, folder=tmp_path)
    assert [row["value"] for row in pq.read_table(file).to_pylist()] == [b"2"]


def test_a_topic_that_ends_before_the_range_is_an_error(kafka, topic, tmp_path):
    kafka.send(topic, 0)
    start, end = {topic: {"0": 0}}, {topic: {"0": 3}}
    with pytest.raises(KafkaDataLossError, match="up to offset 3 and ends at 1"):
        kafka.source(topic).input(start, end, folder=tmp_path)
    lenient = kafka.source(topic, failOnDataLoss="false")
    assert values(lenient.input(start, end, folder=tmp_path)) == ["0"]


def test_a_topic_that_was_made_anew_is_an_error_or_read_anew(kafka, topic, flow):
    kafka.send(topic, 0, 1, 2)
    flow.update(kafka.source(topic))
    kafka.delete(topic)
    kafka.create(topic, partitions=2)
    kafka.send(topic, "new", producer=kafka.writer())
    with pytest.raises(KafkaDataLossError, match="up to offset 3 and ends at 1"):
        flow.update(kafka.source(topic))
    lenient = kafka.source(topic, failOnDataLoss="false")
    assert flow.update(lenient) == [["new"]]
    assert flow.update(lenient) == []


def test_a_topic_that_is_gone_is_an_error_or_gives_no_more(kafka, flow):
    kafka.create("leaving-one")
    kafka.create("leaving-two")
    kafka.send("leaving-one", 1)
    flow.update(kafka.source(subscribePattern="leaving-.*"))
    kafka.delete("leaving-one")
    with pytest.raises(KafkaDataLossError, match="leaving-one-0"):
        flow.update(kafka.source(subscribePattern="leaving-.*"))
    kafka.send("leaving-two", 2)
    lenient = kafka.source(subscribePattern="leaving-.*", failOnDataLoss="false")
    assert flow.update(lenient) == [["2"]]
    # A batch that read the topic when it was there can't run again as it was.
    start, end = {"leaving-one": {"0": 0}}, {"leaving-one": {"0": 1}}
    with pytest.raises(KafkaDataLossError, match="leaving-one-0"):
        kafka.source(subscribePattern="leaving-.*").input(start, end, folder=flow.folder)
    assert values(lenient.input(start, end, folder=flow.folder)) == []


def test_an_unknown_topic_is_an_error_and_is_not_created(kafka, topic):
    with pytest.raises(KafkaTopicNotFoundError) as caught:
        kafka.source(f"{topic}s").latest_offset()
    assert caught.value.hint == f"did you mean {topic}?"
    assert f"{topic}s" not in kafka.admin.list_topics(timeout=5).topics


def test_no_group_commits_offsets(kafka, topic, flow):
    kafka.send(topic, 1)
    flow.update(kafka.source(topic, kafka__group__id="watched"))
    groups = kafka.admin.list_consumer_groups().result(timeout=SETTLE_S).valid
    assert "watched" not in {group.group_id for group in groups}


def test_brokers_that_do_not_answer_are_named_within_the_time_allowed():
    [port] = free_ports(1)
    servers = f"127.0.0.1:{port},localhost:{port}"
    options = KafkaOptions.parse(
        {"bootstrapServers": servers, "subscribe": "a", "kafkaConsumer.pollTimeoutMs": "1500"},
        streaming=True,
    )
    began = time.monotonic()
    with pytest.raises(KafkaUnreachableError, match="refused") as caught:
        KafkaSource(options).latest_offset()
    assert time.monotonic() - began < 6
    assert servers in str(caught.value)


def test_brokers_that_go_while_messages_are_read_are_an_error(tmp_path):
    (tmp_path / "broker").mkdir()
    broker = Broker.start(tmp_path / "broker")
    kafka = Kafka(broker)
    kafka.create("orders")
    kafka.send("orders", 1)
    options = kafka.options("orders", kafkaConsumer__pollTimeoutMs="1500")
    with KafkaCluster(options) as cluster:
        assert cluster.latest(cluster.partitions()) == {Partition("orders", 0): 1}
        broker.stop()
        spans = {Partition("orders", 0): Span(0, 2)}
        began = time.monotonic()
        with pytest.raises(KafkaUnreachableError, match=broker.servers):
            write_messages(cluster, spans, folder=tmp_path)
    assert time.monotonic() - began < 8


def login(kafka, topic, password, **given):
    return KafkaSource(
        KafkaOptions.parse(
            {
                "bootstrapServers": kafka.broker.login_servers,
                "subscribe": topic,
                "startingOffsets": "earliest",
                "kafka.security.protocol": "SASL_PLAINTEXT",
                "kafka.sasl.mechanism": "PLAIN",
                "kafka.sasl.jaas.config": f'{JAAS} required username="{USER}" '
                f'password="{password}";',
                **given,
            },
            streaming=True,
        )
    )


def test_a_login_is_passed_on(kafka, topic, flow):
    kafka.send(topic, 1)
    assert flow.update(login(kafka, topic, PASSWORD)) == [["1"]]


def test_a_login_that_is_refused_is_an_error_without_the_password(kafka, topic):
    with pytest.raises(KafkaUnreachableError, match="refuses the login") as caught:
        login(kafka, topic, "not-the-word").latest_offset()
    assert "not-the-word" not in str(caught.value)


def test_a_topic_that_may_not_be_read_is_an_error(kafka, topic, flow):
    kafka.send(topic, 1)
    denied = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        f"User:{USER}",
        "*",
        AclOperation.READ,
        AclPermissionType.DENY,
    )
    allowed = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        f"User:{USER}",
        "*",
        AclOperation.DESCRIBE,
        AclPermissionType.ALLOW,
    )
    done(kafka.admin.create_acls([denied, allowed]))
    with pytest.raises(KafkaReadError, match=f"messages of {topic}-0"):
        flow.update(login(kafka, topic, PASSWORD))


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_each_committed_message_is_read_once(kafka, flow, seed):
    """Writers that commit and abort, new partitions and topics, batches that run again."""
    chance = random.Random(seed)
    prefix = f"history-{seed}-"
    partitions: dict[str, int] = {}
    sent, applied = [], []
    writers = [kafka.writer(), kafka.transactional()]

    def source():
        limit = str(chance.randint(1, 30))
        return kafka.source(
            subscribePattern=prefix + ".*",
            maxOffsetsPerTrigger=limit,
            kafka__isolation__level="read_committed",
        )

    def write():
        plain, transactional = writers
        topic = chance.choice(list(partitions))
        partition = chance.randrange(partitions[topic])
        values = [f"{len(sent)}-{number}" for number in range(chance.randint(1, 20))]
        kind = chance.choice(["plain", "commit", "abort"])
        if kind == "plain":
            kafka.send(topic, *values, partition=partition, producer=plain)
        else:
            transactional.begin_transaction()
            kafka.send(topic, *values, partition=partition, producer=transactional)
            getattr(transactional, f"{kind}_transaction")()
        sent.extend([] if kind == "abort" else values)

    for step in range(25):
        what = chance.choice(["write", "write", "write", "update", "crash", "topic"])
        if (what == "topic" and len(partitions) < 3) or not partitions:
            name = f"{prefix}{step}"
            partitions[name] = chance.randint(1, 3)
            kafka.create(name, partitions=partitions[name])
        elif what == "write":
            write()
        elif what == "update":
            applied += flow.update(source())
        elif what == "crash" and len(flow.committed) > 1:
            # The last batch was planned, and its commit is lost.
            flow.committed.pop()
            applied.pop()
    applied += flow.update(source())
    assert sorted(value for batch in applied for value in batch) == sorted(sent)
