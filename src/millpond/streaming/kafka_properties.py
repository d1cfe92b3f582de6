"""The properties of the client of Kafka: options `kafka.*`, in librdkafka's terms.

Spark's users write the names of Kafka's Java client. Those that librdkafka calls otherwise are
translated; those that only Java can follow are refused. Values that are secret never leave here
in a message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from millpond.errors import SourceLocation
from millpond.errors.sources import InvalidSourceOptionError, UnsupportedSourceOptionError
from millpond.redaction import REDACTED, is_secret

PREFIX = "kafka."
SERVERS = "bootstrap.servers"

_OFFSETS = "leave it out: offsets are kept in the flow's checkpoint, and none are committed"
_BYTES = "leave it out: keys and values are BINARY, to be cast or decoded in the query"
_JAVA = "leave it out: it names Java code, and the client is librdkafka"
_PEM = "convert it to PEM and name the file in "
_REFUSED = {
    "auto.offset.reset": "use startingOffsets",
    "enable.auto.commit": _OFFSETS,
    "enable.auto.offset.store": _OFFSETS,
    "enable.partition.eof": "leave it out: the ends of partitions are dealt with",
    "key.deserializer": _BYTES,
    "value.deserializer": _BYTES,
    "key.serializer": _BYTES,
    "value.serializer": _BYTES,
    "ssl.protocol": "leave it out: client and brokers agree on the newest version of TLS",
    "ssl.enabled.protocols": "leave it out: client and brokers agree on the newest version of TLS",
    "ssl.truststore.password": "leave it out: a truststore in PEM has no password",
}
# What has no meaning where partitions are assigned and records are not polled in lots.
_WITHOUT_EFFECT = frozenset(
    {
        "max.poll.records",
        "default.api.timeout.ms",
        "exclude.internal.topics",
        "partition.assignment.strategy",
        "ssl.truststore.type",
        "ssl.keystore.type",
    }
)
_RENAMED = {
    "sasl.mechanism": "sasl.mechanisms",
    "request.timeout.ms": "socket.timeout.ms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_LOGINS = {
    "PlainLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "ScramLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "OAuthBearerLoginModule": {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    },
}


@dataclass(frozen=True)
class ClientProperties:
    """What the client is set up with.

    Attributes:
        values: Properties of librdkafka.
        origins: For each of them, the option that it comes from.
    """

    values: Mapping[str, str] = field(repr=False)
    origins: Mapping[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str], *, where: SourceLocation | None) -> Self:
        """Translate options.

        Args:
            options: Those that begin with `kafka.`, but for the servers; keys in lower case.

        Raises:
            UnsupportedSourceOptionError: An option needs Java, or would undo what is kept.
            InvalidSourceOptionError: A login can't be read.
        """
        given = {name.removeprefix(PREFIX): value.strip() for name, value in options.items()}
        values: dict[str, str] = {}
        origins: dict[str, str] = {}
        for name, value in given.items():
            for translated, text in _translated(name, value, given=given, where=where).items():
                values[translated] = text
                origins[translated] = PREFIX + name
        return cls(values, origins)

    def without_secrets(self, text: str) -> str:
        secrets = {
            value
            for name, value in self.values.items()
            if value and (is_secret(name) or is_secret(self.origins[name]))
        }
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, REDACTED)
        return text


def _translated(
    name: str, value: str, *, given: Mapping[str, str], where: SourceLocation | None
) -> dict[str, str]:
    if name in _REFUSED:
        raise UnsupportedSourceOptionError.from_option(
            PREFIX + name, instead=_REFUSED[name], where=where
        )
    if name.endswith((".class", ".classes", ".class.name", ".providers")):
        raise UnsupportedSourceOptionError.from_option(PREFIX + name, instead=_JAVA, where=where)
    if name in _WITHOUT_EFFECT:
        return {}
    if name == "sasl.jaas.config":
        return _login(value, where=where)
    if name == "ssl.endpoint.identification.algorithm":
        return {name: value.lower() or "none"}
    if name == "ssl.truststore.location":
        return _truststore(value, kind=given.get("ssl.truststore.type", "JKS"), where=where)
    if name == "ssl.keystore.location":
        return _keystore(value, kind=given.get("ssl.keystore.type", "JKS"), where=where)
    return {_RENAMED.get(name, name): value}


def _truststore(path: str, *, kind: str, where: SourceLocation | None) -> dict[str, str]:
    if kind.upper() != "PEM":
        raise UnsupportedSourceOptionError.from_option(
            "kafka.ssl.truststore.location", instead=f"{_PEM}kafka.ssl.ca.location", where=where
        )
    return {"ssl.ca.location": path}


def _keystore(path: str, *, kind: str, where: SourceLocation | None) -> dict[str, str]:
    if kind.upper() == "PEM":
        return {"ssl.certificate.location": path, "ssl.key.location": path}
    if kind.upper() != "PKCS12":
        instead = f"{_PEM}kafka.ssl.certificate.location and kafka.ssl.key.location"
        raise UnsupportedSourceOptionError.from_option(
            "kafka.ssl.keystore.location", instead=instead, where=where
        )
    return {"ssl.keystore.location": path}


def _login(text: str, *, where: SourceLocation | None) -> dict[str, str]:
    """A login as Java's clients have it: a module, a flag, settings."""
    option = "kafka.sasl.jaas.config"
    found = re.fullmatch(
        r"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(.*?);?\s*", text, re.DOTALL
    )
    if found is None:
        raise InvalidSourceOptionError.from_value(
            option,
            REDACTED,
            must_be="a login module, 'required', its settings and a semicolon",
            where=where,
        )
    module = found[1].rpartition(".")[2]
    names = _LOGINS.get(module)
    if names is None:
        instead = "use kafka.sasl.username and kafka.sasl.password, kafka.sasl.kerberos.* or "
        raise UnsupportedSourceOptionError.from_option(
            f"{option} with {module}", instead=f"{instead}kafka.sasl.oauthbearer.*", where=where
        )
    settings = re.findall(r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+))""", found[2])
    values = {
        names[name]: re.sub(r"\\(.)", r"\1", quoted) if quoted else single or plain
        for name, quoted, single, plain in settings
        if name in names
    }
    if module == "OAuthBearerLoginModule":
        values["sasl.oauthbearer.method"] = "oidc"
    return values
