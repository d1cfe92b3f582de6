"""Sail would close a session that nobody uses for a while; an update may need it again."""

import time
from contextlib import closing

from millpond.engine.embedded import EmbeddedEngine


def test_a_session_lasts_however_long_it_rests(monkeypatch):
    monkeypatch.setenv("SAIL_SPARK__SESSION_TIMEOUT_SECS", "1")
    with closing(EmbeddedEngine()) as engine:
        assert engine.session.range(3).schema.names == ["id"]
        time.sleep(3)
        assert engine.session.range(3).schema.names == ["id"]
