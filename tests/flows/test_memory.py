"""Flows side by side share one limit on memory: large batches take turns, small ones don't wait."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from millpond.delta import shared_connection
from millpond.delta.shared_connection import cursor


def staged(folder: Path, *, size_bytes: int) -> tuple[Path, ...]:
    file = folder / f"{size_bytes}.parquet"
    file.write_bytes(bytes(size_bytes))
    return (file,)


@pytest.fixture
def large(tmp_path, monkeypatch) -> tuple[Path, ...]:
    monkeypatch.setattr(shared_connection, "LARGE_BATCH_BYTES", 100)
    return staged(tmp_path, size_bytes=101)


def began(files: tuple[Path, ...]) -> threading.Event:
    """Begin to work on a batch in another thread."""
    event = threading.Event()

    def work() -> None:
        with cursor(files):
            event.set()

    threading.Thread(target=work, daemon=True).start()
    return event


def test_a_large_batch_waits_until_another_is_done(large):
    with ExitStack() as first:
        first.enter_context(cursor(large))
        second = began(large)
        assert not second.wait(0.3)
        first.close()
        assert second.wait(30)


def test_a_small_batch_does_not_wait_for_a_large_one(large, tmp_path):
    with cursor(large):
        assert began(staged(tmp_path, size_bytes=99)).wait(30)


def test_a_batch_that_fails_gives_its_turn_away(large):
    with pytest.raises(ZeroDivisionError), cursor(large):
        _ = 1 / 0
    assert began(large).wait(30)
