"""Nobody but this process can use the embedded engine, as long as it lives."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from pysail.spark import SparkConnectServer

from millpond.engine.embedded import EmbeddedEngine, door
from millpond.engine.embedded.server import Server
from millpond.errors.engine_start import EngineStartError

STRANGER = Path(__file__).with_name("stranger.py")
NOBODY = 65534
OWN = -1
# Only root can be somebody else.
USERS = {"same-user": OWN} | ({"nobody": NOBODY} if os.getuid() == 0 else {})


@contextmanager
def strangers(user, *, count=1):
    """Let programs of a user try to get in; gives what they could do, once it is left."""
    command = [sys.executable, STRANGER, str(user)]
    pipe = subprocess.PIPE
    running = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(count)]
    results = []
    try:
        for each in running:
            assert each.stdout.readline() == "ready\n"
        yield results
        for each in running:
            out, _ = each.communicate(timeout=60)
            results.append(json.loads(out))
            assert each.returncode == 0
    finally:
        for each in running:
            each.kill()
            each.wait()
            each.stdin.close()
            each.stdout.close()


def attempts(results, port):
    """How often which end an attempt at a port had."""
    total = {}
    for result in results:
        for outcome, times in result["ports"].get(str(port), {}).items():
            total[outcome] = total.get(outcome, 0) + times
    return total


def open_files():
    return len(list(Path("/dev/fd").iterdir()))


def run(engine):
    return engine.query("SELECT sum(id) AS n FROM range(10)", None).to_pylist()


def test_a_server_of_sail_lets_everybody_in(monkeypatch):
    """What the rules below would see, were there no door."""
    monkeypatch.setenv("RUST_LOG", "off")
    server = SparkConnectServer("127.0.0.1", 0)
    with strangers(OWN) as results:
        server.start(background=True)
        port = server.listening_address[1]
        time.sleep(3)
    server.stop()
    assert attempts(results, port).get("let in", 0) > 0


@pytest.mark.parametrize("user", USERS.values(), ids=USERS)
def test_nobody_gets_in_while_an_engine_starts_runs_and_ends(user, monkeypatch):
    close = door.close_door
    delays = [0, 1.0, 0, 1.0]

    def late(address):
        """Leave the port open for so long that it is found."""
        time.sleep(delays[len(ports)])
        return close(address)

    monkeypatch.setattr("millpond.engine.embedded.server.close_door", late)
    ports = []
    with strangers(user, count=2) as results:
        for _ in delays:
            with closing(EmbeddedEngine()) as engine:
                ports.append(engine._server._address[1])
                for _ in range(3):
                    assert run(engine) == [{"n": 45}]
                    time.sleep(0.2)
    seen = [attempts(results, port) for port in ports]
    # Those who come before the port is closed are refused a session, the others a connection.
    assert all(outcomes.keys() <= {"INTERNAL", "UNAVAILABLE"} for outcomes in seen)
    assert seen[1].keys() == seen[3].keys() == {"INTERNAL", "UNAVAILABLE"}
    assert {result["user"] for result in results} == {user if user >= 0 else os.getuid()}


def test_the_port_is_closed_and_has_one_connection_however_many_sessions_there_are():
    with closing(EmbeddedEngine()) as engine:
        address = engine._server._address
        for number in range(3):
            engine.client({"spark.own": str(number)})
            assert run(engine) == [{"n": 45}]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=5)
        accepted = [here for _, here, _ in door._connections() if here == address]
        assert len(accepted) == 1
        assert door.strangers(address) == []


def test_queries_of_many_threads_share_the_connection():
    with closing(EmbeddedEngine()) as engine:
        found = []
        threads = [threading.Thread(target=lambda: found.append(run(engine))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [[{"n": 45}]] * 8


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])  # noqa: S104 - it must not be had
@pytest.mark.parametrize("option", [socket.SO_REUSEADDR, socket.SO_REUSEPORT])
def test_nobody_can_listen_in_the_place_of_an_engine(host, option):
    with closing(EmbeddedEngine()) as engine:
        port = engine._server._address[1]
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, option, 1)
            with pytest.raises(OSError, match="in use"):
                _listen(other, (host, port))


def _listen(other, address):
    other.bind(address)
    other.listen()


def test_connections_of_others_are_ended_before_a_session_can_be_opened(monkeypatch):
    """Connections that were made in the moment that the port was open."""
    program = (
        "import socket, sys\n"
        "there = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "print('connected', flush=True)\n"
        "while there.recv(100): pass\n"
        "print('ended', flush=True)\n"
    )
    visitors = []
    close = door.close_door

    def visited(address):
        command = [sys.executable, "-c", program, str(address[1])]
        visitor = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        visitors.append(visitor)
        assert visitor.stdout.readline() == "connected\n"
        deadline = time.monotonic() + 10
        while not door.strangers(address) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert door.strangers(address)
        return close(address)

    monkeypatch.setattr("millpond.engine.embedded.server.close_door", visited)
    with closing(EmbeddedEngine()) as engine:
        (visitor,) = visitors
        out, _ = visitor.communicate(timeout=10)
        assert out == "ended\n"
        assert run(engine) == [{"n": 45}]


def test_no_engine_starts_where_sessions_can_be_opened_too_early(monkeypatch):
    monkeypatch.setenv("SAIL_RUNTIME__TEMPORARY_FILES__MAX_SIZE", "0")
    with pytest.raises(EngineStartError, match="opens sessions before its port is closed"):
        Server()


def test_no_engine_starts_where_its_port_can_not_be_closed(monkeypatch, tmp_path):
    monkeypatch.setattr(door, "_DESCRIPTORS", str(tmp_path))
    with pytest.raises(EngineStartError, match="can't be closed to others: none of the open files"):
        Server()


def test_where_a_port_can_not_be_bound_twice_strangers_wait_for_an_answer_in_vain(monkeypatch):
    """What is done on other systems than Linux."""
    monkeypatch.setattr(door, "sys", SimpleNamespace(platform="darwin"))
    with closing(EmbeddedEngine()) as engine:
        address = engine._server._address
        with socket.create_connection(address, timeout=5) as stranger:
            stranger.sendall(
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
            )
            stranger.settimeout(0.5)
            with pytest.raises(TimeoutError):
                stranger.recv(100)
            assert run(engine) == [{"n": 45}]
            assert door.strangers(address) == []


def test_an_engine_leaves_no_file_and_no_folder_behind(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    EmbeddedEngine().close()
    before = open_files()
    for _ in range(3):
        with closing(EmbeddedEngine()) as engine:
            run(engine)
            (folder,) = tmp_path.iterdir()
            assert folder.stat().st_mode & 0o777 == 0o700
    assert open_files() <= before + 1
    # That of the process stays, with nothing in it.
    (scratch,) = tmp_path.iterdir()
    assert list(scratch.iterdir()) == []


def test_a_folder_for_temporary_files_with_a_long_name_will_do(monkeypatch, tmp_path):
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with closing(EmbeddedEngine()) as engine:
        assert run(engine) == [{"n": 45}]


def test_a_proxy_for_the_network_is_not_asked(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("grpc_proxy", "http://127.0.0.1:9")
    with closing(EmbeddedEngine()) as engine:
        assert run(engine) == [{"n": 45}]


def test_a_broken_connection_fails_at_once_and_is_not_made_again():
    engine = EmbeddedEngine()
    try:
        address = engine._server._address
        for descriptor, here, _ in list(door._connections()):
            if here == address:
                with socket.socket(fileno=os.dup(descriptor)) as connection:
                    connection.shutdown(socket.SHUT_RDWR)
        start = time.monotonic()
        with pytest.raises(Exception, match=r"(?i)connect|socket|unavailable"):
            run(engine)
        assert time.monotonic() - start < 10
    finally:
        with suppress(Exception):
            engine.close()
