"""Time is counted once, to the innermost phase of the thread that spends it."""

import threading
import time
from contextvars import copy_context

import pytest

from millpond.profiling import Profile, measured, phase


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on by as much as one says."""
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def wait(seconds):
        now[0] += seconds

    return wait


def seconds(profile):
    return {key: (spent.seconds, spent.times) for key, spent in profile.spent.items()}


def test_a_phase_within_another_takes_its_time_from_it(clock):
    profile = Profile()
    with profile.taken():
        for _ in range(2):
            with phase("outer"):
                clock(1)
                with phase("inner"):
                    clock(10)
                clock(2)
        clock(1000)
    assert seconds(profile) == {(None, "outer"): (6, 2), (None, "inner"): (20, 2)}


def test_phases_within_a_flow_are_the_flow_s(clock):
    profile = Profile()
    with profile.taken(), phase("all", flow="f"):
        with phase("commit"):
            clock(3)
        measured("on a server", 2.5, times=4)
        clock(5)
    assert seconds(profile) == {
        ("f", "all"): (2.5, 1),
        ("f", "commit"): (3, 1),
        ("f", "on a server"): (2.5, 4),
    }


def test_time_before_an_error_counts(clock):
    profile = Profile()

    @phase("read")
    def fail():
        clock(4)
        raise FileNotFoundError

    with profile.taken(), pytest.raises(FileNotFoundError):
        fail()
    assert seconds(profile) == {(None, "read"): (4, 1)}


def test_threads_that_run_in_a_copy_of_the_context_are_profiled():
    profile = Profile()

    def work(flow):
        with phase("work", flow=flow), phase("part"):
            pass

    with profile.taken():
        threads = [
            threading.Thread(target=copy_context().run, args=(work, flow)) for flow in ("a", "b")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(profile.spent) == {(f, name) for f in ("a", "b") for name in ("work", "part")}


def test_nothing_is_counted_where_no_profile_is_taken():
    profile = Profile()
    with profile.taken():
        pass
    with phase("after"):
        measured("elsewhere", 1)
    assert profile.spent == {}
