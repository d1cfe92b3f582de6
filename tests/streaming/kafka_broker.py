"""A broker of Kafka of its own for tests: the real one, as scripts/jars.sh fetched it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

JARS = Path(__file__).parents[2] / ".build" / "kafka" / "jars"
CLUSTER_ID = "MillpondTestsKafkaQ3Q"
USER, PASSWORD = "reader", "s3cret-word"
START_S = 60.0

_JAVA = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Nothing outlives the tests: when they are gone, however they ended, so is the input of the shell.
_SHELL = '"$@" & broker=$!; read -r _; kill $broker; wait $broker'
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{control}
controller.listener.names=CONTROLLER
listeners=OPEN://127.0.0.1:{open},LOGIN://127.0.0.1:{login},CONTROLLER://127.0.0.1:{control}
advertised.listeners=OPEN://127.0.0.1:{open},LOGIN://127.0.0.1:{login}
listener.security.protocol.map=OPEN:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=OPEN
sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config={module} required user_{user}="{password}";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
super.users=User:ANONYMOUS
log.dirs={data}
auto.create.topics.enable=true
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
log.cleaner.backoff.ms=100
log.initial.task.delay.ms=100
"""


@dataclass(frozen=True)
class Broker:
    """A broker that runs.

    Attributes:
        servers: Where it listens to anyone.
        login_servers: Where it wants `USER` and `PASSWORD`, by SASL PLAIN.
    """

    servers: str
    login_servers: str
    _process: subprocess.Popen

    @classmethod
    def start(cls, folder: Path) -> Broker:
        if not JARS.is_dir():
            raise RuntimeError("the broker is missing: run sh scripts/jars.sh kafka")
        ports = dict(zip(("open", "login", "control"), free_ports(3), strict=True))
        settings = folder / "server.properties"
        settings.write_text(
            _SETTINGS.format(
                **ports,
                data=folder / "data",
                module="org.apache.kafka.common.security.plain.PlainLoginModule",
                user=USER,
                password=PASSWORD,
            )
        )
        java = [_java(), *_JAVA, "-cp", f"{JARS}/*"]
        prepare = [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", settings]
        subprocess.run(prepare, check=True, capture_output=True)
        with (folder / "broker.log").open("wb") as log:
            process = subprocess.Popen(
                ["sh", "-c", _SHELL, "sh", *java, "kafka.Kafka", settings],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        broker = cls(f"127.0.0.1:{ports['open']}", f"127.0.0.1:{ports['login']}", process)
        if not _answers(broker.servers):
            broker.stop()
            raise RuntimeError(f"the broker does not start: {(folder / 'broker.log').read_text()}")
        return broker

    def stop(self) -> None:
        self._process.stdin.close()
        self._process.wait(timeout=30)


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for bound in sockets:
        bound.bind(("127.0.0.1", 0))
    ports = [bound.getsockname()[1] for bound in sockets]
    for bound in sockets:
        bound.close()
    return ports


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        raise RuntimeError("the broker needs Java 17 or newer")
    return java


def _answers(servers: str) -> bool:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        try:
            if admin.list_topics(timeout=1).brokers:
                return True
        except KafkaException:
            time.sleep(0.1)
    return False
