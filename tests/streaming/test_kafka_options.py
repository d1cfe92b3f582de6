"""Options of a read of Kafka: names, values and what the client is set up with."""

from __future__ import annotations

import sys

import pytest

from millpond.errors import SourceLocation
from millpond.errors.sources import (
    InvalidSourceOptionError,
    KafkaPackageMissingError,
    UnknownSourceOptionError,
    UnsupportedSourceOptionError,
)
from millpond.streaming.kafka_options import EARLIEST, LATEST, KafkaOptions, Place, Subscription
from millpond.streaming.kafka_source import KafkaSource

WHERE = SourceLocation("flow.py", 7)
BASE = {"bootstrapservers": "one:9092", "subscribe": "orders"}
JAAS = "org.apache.kafka.common.security"


def parse(*, streaming=True, **options):
    given = {name.replace("__", "."): value for name, value in options.items()}
    return KafkaOptions.parse({**BASE, **given}, streaming=streaming, where=WHERE)


def properties(**options):
    return {
        name: value for name, value in parse(**options).client.values.items() if name != "group.id"
    }


def test_a_stream_starts_at_the_end_and_a_batch_read_at_the_beginning():
    assert parse().start == Place(LATEST, "startingOffsets")
    assert parse(streaming=False).start == Place(EARLIEST, "startingOffsets")
    assert parse(streaming=False).end == Place(LATEST, "endingOffsets")


def test_servers_and_topics_are_the_same_in_any_order_and_spelling():
    one = KafkaOptions.parse(
        {"kafka.bootstrap.servers": "B:1, a:2", "subscribe": "y, x"}, streaming=True
    )
    other = KafkaOptions.parse(
        {"bootstrapServers": "a:2,b:1", "subscribe": "x,y,x"}, streaming=True
    )
    assert KafkaSource(one).identity == KafkaSource(other).identity == "kafka topics x,y"


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("subscribepattern", "or.*", Subscription(pattern="or.*")),
        ("assign", '{"b": [2, 0, 2], "a": [1]}', Subscription(assigned={"a": (1,), "b": (0, 2)})),
    ],
)
def test_other_ways_to_name_topics(option, value, expected):
    options = {"bootstrapservers": "one", option: value}
    found = KafkaOptions.parse(options, streaming=True).subscription
    assert found == expected
    assert str(found) != str(Subscription(("orders",)))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("startingoffsets", "middle"),
        ("startingoffsets", '{"orders": {"0": -3}}'),
        ("startingoffsets", '{"orders": {"x": 1}}'),
        ("startingoffsets", '{"orders": [1]}'),
        ("startingoffsets", "{"),
        ("startingtimestamp", "yesterday"),
        ("startingoffsetsbytimestamp", '{"orders": {"0": -1}}'),
        ("startingoffsetsbytimestampstrategy", "guess"),
        ("failondataloss", "maybe"),
        ("maxoffsetspertrigger", "0"),
        ("includeheaders", "1"),
        ("kafkaconsumer.polltimeoutms", "0"),
        ("kafka.sasl.jaas.config", "nonsense"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(option, value):
    with pytest.raises(InvalidSourceOptionError) as caught:
        KafkaOptions.parse({**BASE, option: value}, streaming=True, where=WHERE)
    assert option in str(caught.value).lower()
    assert caught.value.where == WHERE


@pytest.mark.parametrize("value", ["latest", '{"orders": {"0": -1}}'])
def test_a_batch_read_can_not_start_at_the_end(value):
    with pytest.raises(InvalidSourceOptionError, match="startingOffsets"):
        parse(streaming=False, startingoffsets=value)


@pytest.mark.parametrize("value", ["earliest", '{"orders": {"0": -2}}'])
def test_a_batch_read_can_not_end_at_the_beginning(value):
    with pytest.raises(InvalidSourceOptionError, match="endingOffsets"):
        parse(streaming=False, endingoffsets=value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "orders"}, "kafka.bootstrap.servers or bootstrapServers"),
        ({"bootstrapservers": "one"}, "subscribe or subscribePattern or assign"),
        ({**BASE, "subscribe": " , "}, "subscribe or subscribePattern or assign"),
        ({**BASE, "assign": '{"a": [0]}'}, "only one of the options subscribe, assign"),
        ({**BASE, "kafka.bootstrap.servers": "two"}, "only one of the options kafka.bootstrap"),
        ({"bootstrapservers": "one", "subscribepattern": "("}, "subscribePattern"),
        ({"bootstrapservers": "one", "assign": '{"a": [-1]}'}, "assign"),
        ({"bootstrapservers": "one", "assign": '{"a": 1}'}, "assign"),
        ({"bootstrapservers": "one", "assign": "{}"}, "assign"),
    ],
)
def test_servers_and_topics_must_be_named_once(options, message):
    with pytest.raises(InvalidSourceOptionError, match=message):
        KafkaOptions.parse(options, streaming=True)


def test_a_misspelt_option_is_refused_with_the_one_meant():
    with pytest.raises(UnknownSourceOptionError) as caught:
        parse(startingofsets="earliest")
    assert caught.value.hint == "did you mean startingOffsets?"
    assert caught.value.where == WHERE


@pytest.mark.parametrize(
    "option",
    [
        "endingoffsets",
        "endingtimestamp",
        "servicecredential",
        "kafka.auto.offset.reset",
        "kafka.enable.auto.commit",
        "kafka.value.deserializer",
        "kafka.interceptor.classes",
        "kafka.sasl.client.callback.handler.class",
        "kafka.ssl.truststore.location",
        "kafka.ssl.keystore.location",
    ],
)
def test_what_needs_java_or_makes_no_sense_is_refused_with_what_to_do(option):
    with pytest.raises(UnsupportedSourceOptionError) as caught:
        KafkaOptions.parse({**BASE, option: "x"}, streaming=True, where=WHERE)
    assert option in str(caught.value).lower()
    assert caught.value.hint


def test_options_without_effect_here_are_accepted():
    given = ("minpartitions", "minoffsetspertrigger", "maxtriggerdelay", "fetchoffset.numretries")
    assert parse(**dict.fromkeys(given, "5")) == parse()
    assert properties(kafka__max__poll__records="5") == {}


def test_the_group_is_named_after_its_prefix_unless_it_is_named():
    assert parse().client.values["group.id"] == "millpond"
    assert parse(groupidprefix="team").client.values["group.id"] == "team"
    named = parse(groupidprefix="team", kafka__group__id="ours")
    assert named.client.values["group.id"] == "ours"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"kafka__client__id": "me"}, {"client.id": "me"}),
        ({"kafka__request__timeout__ms": "5"}, {"socket.timeout.ms": "5"}),
        ({"kafka__sasl__mechanism": "PLAIN"}, {"sasl.mechanisms": "PLAIN"}),
        (
            {"kafka__ssl__endpoint__identification__algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
        (
            {"kafka__ssl__truststore__location": "/a", "kafka__ssl__truststore__type": "PEM"},
            {"ssl.ca.location": "/a"},
        ),
        (
            {"kafka__ssl__keystore__location": "/a", "kafka__ssl__keystore__type": "PKCS12"},
            {"ssl.keystore.location": "/a"},
        ),
        (
            {"kafka__ssl__keystore__location": "/a", "kafka__ssl__keystore__type": "PEM"},
            {"ssl.certificate.location": "/a", "ssl.key.location": "/a"},
        ),
        (
            {
                "kafka__sasl__jaas__config": f"kafkashaded.{JAAS}.plain.PlainLoginModule required "
                'username="me" password="a \\"b\\" c";'
            },
            {"sasl.username": "me", "sasl.password": 'a "b" c'},
        ),
        (
            {
                "kafka__sasl__jaas__config": f"{JAAS}.scram.ScramLoginModule required "
                "username='me' password=abc;"
            },
            {"sasl.username": "me", "sasl.password": "abc"},
        ),
        (
            {
                "kafka__sasl__jaas__config": f"{JAAS}.oauthbearer.OAuthBearerLoginModule required "
                'clientId="me" clientSecret="abc" scope="all";'
            },
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "me",
                "sasl.oauthbearer.client.secret": "abc",
                "sasl.oauthbearer.scope": "all",
            },
        ),
    ],
)
def test_properties_of_javas_client_are_translated(given, expected):
    assert properties(**given) == expected


def test_another_login_module_is_refused_without_its_settings():
    login = 'com.sun.security.auth.module.Krb5LoginModule required keyTab="hidden-word";'
    with pytest.raises(UnsupportedSourceOptionError, match="Krb5LoginModule") as caught:
        parse(kafka__sasl__jaas__config=login)
    assert "hidden-word" not in str(caught.value)


def test_secrets_are_not_shown():
    login = f'{JAAS}.plain.PlainLoginModule required username="me" password="hidden-word";'
    options = parse(**{"kafka.sasl.jaas.config": login, "kafka.ssl.key.password": "other-word"})
    assert "-word" not in repr(options)
    assert (
        options.client.without_secrets("a hidden-word b other-word") == "a [REDACTED] b [REDACTED]"
    )


@pytest.mark.parametrize(("value", "names"), [("false", 7), ("true", 8)])
def test_headers_come_when_asked_for(value, names):
    options = parse(includeheaders=value)
    assert options.schema.names[:7] == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
    ]
    assert len(options.schema.names) == names
    assert KafkaSource(options).columns() == options.schema.jsonValue()


def test_a_property_that_the_client_does_not_know_is_named_as_it_was_written():
    source = KafkaSource(parse(kafka__no__such__thing="x"))
    with pytest.raises(UnknownSourceOptionError, match=r"kafka\.no\.such\.thing") as caught:
        source.latest_offset()
    assert caught.value.where == WHERE


def test_a_value_that_the_client_refuses_is_an_error_of_the_option():
    source = KafkaSource(parse(kafka__socket__timeout__ms="soon"))
    with pytest.raises(InvalidSourceOptionError, match=r"socket\.timeout\.ms"):
        source.latest_offset()


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(KafkaPackageMissingError) as caught:
        KafkaSource(parse()).latest_offset()
    assert "pip install 'millpond[kafka]'" in caught.value.hint
    assert caught.value.where == WHERE
