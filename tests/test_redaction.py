"""Secrets never reach what is shown or recorded."""

import pytest

from millpond.errors.engine_start import EngineConfigurationError
from millpond.errors.options import InvalidOptionError
from millpond.redaction import REDACTED, Redactor, is_secret, without_credentials

JAAS = 'org.x.PlainLoginModule required username="mill" password="hunter2 and more";'


@pytest.mark.parametrize(
    "key",
    [
        "db.password",
        "API_TOKEN",
        "fs.secret",
        "storage.account.Key",
        "aws.credentials",
        "fs.s3a.secret.key",
        "fs.s3a.access.key",
        "fs.azure.account.key.mill.blob.core.windows.net",
        "spark.hadoop.fs.gs.key",
        "kafka.sasl.jaas.config",
        "kafka.ssl.key.pem",
        "kafka.ssl.keystore.key",
        "spark.ssl.keyPassword",
        "connectionString",
    ],
)
def test_keys_of_secrets_are_known(key):
    assert is_secret(key)


@pytest.mark.parametrize(
    "key",
    ["fs.s3a.endpoint", "key_column", "spark.sql.keyed", "millpond.engine", "keys", "tokyo.region"],
)
def test_other_keys_are_not_taken_for_secrets(key):
    assert not is_secret(key)


def test_the_longest_secret_is_hidden_whole():
    redactor = Redactor({"a.token": "abcd", "b.token": "abcdefgh"})
    assert redactor.text("it is abcdefgh") == "it is [REDACTED]"


@pytest.mark.parametrize("value", ["", "1", "abc", "true", "FALSE", "None"])
def test_a_value_too_common_to_be_a_secret_hides_nothing(value):
    assert Redactor({"use.token": value}).text("true FALSE abc 1 None") == "true FALSE abc 1 None"


def test_text_that_is_no_unicode_is_written_out():
    assert Redactor().text("file \udcff.csv") == "file \\udcff.csv"


def test_a_secret_is_hidden_in_every_text_of_a_value():
    redactor = Redactor({"db.password": "hunter2", "region": "north"})
    value = {"a": ["hunter2", {"b": "from north as hunter2"}], "c": 1}
    assert redactor.value(value) == {"a": [REDACTED, {"b": f"from north as {REDACTED}"}], "c": 1}


@pytest.mark.parametrize(
    ("key", "value", "secrets"),
    [
        ("millpond.engine", "sc://spark:15002/;use_ssl=true;token=ab%2Bcd", ["ab%2Bcd", "ab+cd"]),
        ("source.url", "https://mill:hunter2@files.example/a", ["hunter2"]),
        ("source.url", "https://files.example/a?sv=1&sig=c2lnbmF0dXJl", ["c2lnbmF0dXJl"]),
        ("kafka.sasl.jaas.config", JAAS, ["hunter2 and more"]),
    ],
)
def test_a_secret_within_a_value_is_hidden_wherever_it_turns_up(key, value, secrets):
    redactor = Redactor({key: value})
    for secret in secrets:
        assert secret not in redactor.text(f"refused: {secret}, given {value}")
    assert not any(secret in redactor.configuration({key: value})[key] for secret in secrets)


def test_secrets_of_variables_are_hidden(monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://spark/;token=from-a-variable")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another+one")
    assert Redactor().text("from-a-variable another+one") == f"{REDACTED} {REDACTED}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at sc://spark/;token=abc;user_id=me", "at sc://spark/;token=[REDACTED];user_id=me"),
        ("Parameter 'token=a=b' is", "Parameter 'token=[REDACTED]' is"),
        ("s3://AKIA:shh@bucket/x", "s3://AKIA:[REDACTED]@bucket/x"),
        (
            "read_kafka(`kafka.sasl.password` => 'it''s', n => 1)",
            "read_kafka(`kafka.sasl.password` => '[REDACTED]', n => 1)",
        ),
        ("WITH ('s3.secret.key' = 'x')", "WITH ('s3.secret.key' = '[REDACTED]')"),
        (
            f""".option("kafka.sasl.jaas.config", '{JAAS}')""",
            """.option("kafka.sasl.jaas.config", '[REDACTED]')""",
        ),
        ("configuration:\n  db.password: [hunter2", "configuration:\n  db.password: [REDACTED]"),
    ],
)
def test_secrets_are_hidden_where_addresses_and_options_have_them(text, shown):
    assert without_credentials(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "SELECT token, 'x' FROM t WHERE token = 'y'",
        '{"name":"token","type":"string","secret":null}',
        "2024-01-01 10:00 at https://spark.apache.org:443/docs",
        "/data/tokens/a.csv:12:3",
        "the secret of the mill is patience",
    ],
)
def test_other_texts_stay_as_they_are(text):
    assert without_credentials(text) == text


def test_errors_about_settings_do_not_show_secrets():
    error = EngineConfigurationError.of("x.password", "hunter2", "hunter2 is too short")
    assert "hunter2" not in str(error)
    error = InvalidOptionError.from_value(
        "millpond.engine", "sc://a b/;token=hunter2", expected="an address", where=None
    )
    assert "hunter2" not in str(error)
    assert "sc://a b/;token=[REDACTED]" in str(error)
    error = EngineConfigurationError.of("a.region", "north", "north is unknown")
    assert "a.region = 'north': north is unknown" in str(error)
