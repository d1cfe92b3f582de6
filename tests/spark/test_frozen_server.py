"""A server that takes what it is sent and never answers, as a frozen machine does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field

import pytest

from millpond.engine.connect import engine as connect_engine
from millpond.engine.spark import engine as spark_engine
from millpond.engine.spark import server as server_module
from millpond.errors.spark import SparkConnectionLostError
from tests.spark.server import SparkServer
from tests.spark.test_server_errors import engine_at


@dataclass
class Passage:
    """Passes on what comes to a port of its own to another one, until it is shut."""

    port: int
    listening: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    sockets: list[socket.socket] = field(default_factory=list)
    is_shut: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self.listening.getsockname()[1]}"

    def open(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for opened in (self.listening, *self.sockets):
            with suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
            opened.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self.listening.accept()
                far = socket.create_connection(("127.0.0.1", self.port))
                self.sockets += [near, far]
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not self.is_shut.is_set():
                    target.sendall(data)


@pytest.fixture
def passage(spark_server: SparkServer) -> Iterator[Passage]:
    with closing(Passage(spark_server.port)) as passage:
        passage.open()
        yield passage


@pytest.mark.timeout(60)
def test_a_server_that_answers_no_more_keeps_nobody_from_stopping(
    passage: Passage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect_engine, "INTERRUPT_S", 0.1)
    monkeypatch.setattr(spark_engine, "RELEASE_S", 0.1)
    engine = engine_at(passage.url)
    passage.is_shut.set()
    engine.interrupt()
    engine.close()


@pytest.mark.timeout(120)
def test_a_server_that_answers_no_more_ends_what_waits_for_it(
    passage: Passage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "SILENCE_MS", 1000)
    monkeypatch.setattr(server_module, "SIGN_OF_LIFE_MS", 1000)
    with closing(engine_at(passage.url)) as engine:
        engine.rows("SELECT 1")
        engine.client().set_retry_policies([])
        passage.is_shut.set()
        with pytest.raises(SparkConnectionLostError, match=passage.url):
            engine.rows("SELECT 1")
        passage.close()
