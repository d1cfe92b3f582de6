"""A query of DuckDB's can be ended from outside, and is known by it."""

import threading

import duckdb
import pytest

from millpond.delta import connect, was_interrupted
from millpond.delta.shared_connection import cursor
from millpond.interruptible import of_main_thread

ENDLESS = "SELECT sum(hash(range)) FROM range(100_000_000_000)"


@pytest.mark.parametrize("opened", [connect, cursor])
def test_a_query_of_the_main_thread_is_ended_by_others(opened):
    ended = threading.Event()
    with opened() as connection:
        (ours,) = [opened for opened in of_main_thread() if opened is connection]

        def interrupt():
            while not ended.wait(0.1):
                ours.interrupt()

        interrupting = threading.Thread(target=interrupt)
        interrupting.start()
        try:
            with pytest.raises(duckdb.InterruptException) as caught:
                connection.execute(ENDLESS)
        finally:
            ended.set()
            interrupting.join()
    assert was_interrupted(caught.value)


@pytest.mark.parametrize(
    ("error", "expected"),
    [(RuntimeError("Query interrupted"), True), (RuntimeError("No"), False), (OSError(), False)],
)
def test_only_an_interruption_is_one(error, expected):
    assert was_interrupted(error) is expected
