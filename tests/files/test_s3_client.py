"""How S3 is found: by options, the environment, and profiles."""

from __future__ import annotations

import pytest

from millpond.errors.files import FilesUnreachableError
from millpond.files.locations import locate
from millpond.files.s3_client import s3_client
from millpond.files.stores import stat, store_for
from tests.files.s3_stub import Objects, s3_stub


@pytest.fixture(autouse=True)
def nothing_around(monkeypatch, tmp_path):
    """An environment that says nothing of S3."""
    for name in (
        *("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"),
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"),
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def bucket():
    found = Objects({"in/a.json": b"{}\n"})
    with s3_stub(found) as endpoint:
        yield found, endpoint


def signature(objects: Objects) -> str:
    """Who asked last, and for which region."""
    return objects.asked[-1][2].get("Authorization", "")


def test_keys_and_region_of_the_environment(monkeypatch, bucket):
    objects, endpoint = bucket
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ours")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    assert stat("s3://b/in/a.json") is not None
    assert "Credential=ours/" in signature(objects)
    assert "/eu-north-1/s3/" in signature(objects)
    assert objects.asked[-1][2]["X-Amz-Security-Token"] == "token"
    assert objects.asked[-1][1] == "/b/in/a.json"


@pytest.mark.parametrize("name", ["default", "supplier"])
def test_keys_region_and_address_of_a_profile(monkeypatch, bucket, tmp_path, name):
    objects, endpoint = bucket
    (tmp_path / "credentials").write_text(
        f"[{name}]\naws_access_key_id = {name}-key\naws_secret_access_key = b\n"
    )
    section = name if name == "default" else f"profile {name}"
    (tmp_path / "config").write_text(
        f"[{section}]\nregion = eu-west-1\nendpoint_url = {endpoint}\n"
    )
    if name != "default":
        monkeypatch.setenv("AWS_PROFILE", name)
    assert stat("s3://b/in/a.json") is not None
    assert f"Credential={name}-key/" in signature(objects)
    assert "/eu-west-1/s3/" in signature(objects)
    assert objects.asked[-1][1] == "/b/in/a.json"


def test_a_profile_may_name_a_program_that_tells_the_keys(bucket, tmp_path):
    objects, endpoint = bucket
    answer = '{"Version": 1, "AccessKeyId": "told", "SecretAccessKey": "b"}'
    (tmp_path / "answer.json").write_text(answer)
    (tmp_path / "config").write_text(
        f"[default]\ncredential_process = cat {tmp_path / 'answer.json'}\n"
        f"endpoint_url = {endpoint}\n"
    )
    assert stat("s3://b/in/a.json") is not None
    assert "Credential=told/" in signature(objects)


def test_a_bucket_for_everybody_needs_no_credentials(monkeypatch, bucket):
    objects, endpoint = bucket
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    assert stat("s3://b/in/a.json") is not None
    assert signature(objects) == ""


def test_options_come_before_the_environment(monkeypatch, bucket):
    objects, endpoint = bucket
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    options = {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-west-2",
        "fs.s3a.access.key": "option",
        "fs.s3a.secret.key": "b",
        "fs.s3a.session.token": "token",
    }
    assert stat("s3://b/in/a.json", options) is not None
    assert "Credential=option/" in signature(objects)
    assert "/us-west-2/s3/" in signature(objects)
    assert objects.asked[-1][2]["X-Amz-Security-Token"] == "token"


@pytest.mark.parametrize(
    ("options", "url"),
    [
        ({}, "https://s3.eu-west-1.amazonaws.com"),
        ({"fs.s3a.endpoint": "store.example:9000"}, "https://store.example:9000"),
        ({"fs.s3a.endpoint": "http://store.example/"}, "http://store.example"),
        (
            {"fs.s3a.endpoint": "store.example", "fs.s3a.connection.ssl.enabled": "False"},
            "http://store.example",
        ),
    ],
)
def test_addresses(monkeypatch, options, url):
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert s3_client(options).meta.endpoint_url == url


@pytest.mark.parametrize(
    ("options", "url"),
    [
        ({}, "https://prices.s3.eu-west-1.amazonaws.com/k"),
        ({"fs.s3a.path.style.access": "true"}, "https://s3.eu-west-1.amazonaws.com/prices/k"),
        ({"fs.s3a.endpoint": "http://x.example"}, "http://x.example/prices/k"),
        (
            {"fs.s3a.endpoint": "http://x.example", "fs.s3a.path.style.access": "false"},
            "http://prices.x.example/k",
        ),
    ],
)
def test_the_bucket_stands_in_the_host_or_in_the_path(monkeypatch, options, url):
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    client = s3_client({"fs.s3a.access.key": "a", "fs.s3a.secret.key": "b", **options})

    class SentError(Exception):
        pass

    def send(request, **_):
        raise SentError(request.url)

    client.meta.events.register("before-send.s3", send)
    with pytest.raises(SentError) as sent:
        client.head_object(Bucket="prices", Key="k")
    assert str(sent.value) == url


@pytest.mark.parametrize("endpoint", ["http://", "http://a b"])
def test_an_address_that_is_none_fails_with_words(monkeypatch, endpoint):
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(FilesUnreachableError, match="can't be read"):
        store_for(locate("s3://b/in", root=None), {})


def test_a_profile_that_does_not_exist_fails_with_words(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(FilesUnreachableError, match="nobody"):
        store_for(locate("s3://b/in", root=None), {})
