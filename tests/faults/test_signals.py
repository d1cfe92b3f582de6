"""Whoever is told to stop stops cleanly: with the documented code, in words, leaving no process.

The first comes while a flow runs, all others at random moments;
`MILLPOND_SIGNALS=100 pytest tests/faults -k signals` sends so many.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

import pytest

from millpond.events import EventLog
from tests.faults.subject import Subject

STOPS = int(os.environ.get("MILLPOND_SIGNALS", "1"))
CODES = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGHUP: 129}
STOPPING = "Stopping. What is being committed is finished. Ctrl-C again stops at once.\n"


@pytest.fixture
def heeded():
    """Signals are heeded by what is run, even where who runs the tests ignores them, as `nohup`."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in CODES}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.timeout(0)
def test_signals_at_any_moment_stop_an_update_and_cost_no_row(tmp_path, draw, warm):
    subject = Subject.made(tmp_path / "pipeline", draw.randrange(2**32), maxFilesPerTrigger="1")
    subject.deliver(4)
    began_s = time.monotonic()
    subject.check_complete(warm.run(subject.folder.root))
    whole_s = time.monotonic() - began_s
    for stop_number in range(STOPS):
        is_first = stop_number == 0
        subject.deliver(4)
        number = draw.choice(list(CODES))
        # Here and there another comes while the first is being followed.
        second_s = None if is_first else draw.choice([None, None, 0, 0.05, 0.5])

        def stop(pid, number=number, second_s=second_s):
            os.kill(pid, number)
            if second_s is not None:
                time.sleep(second_s)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)

        ended = warm.disturbed(
            subject.folder.root,
            after_s=0 if is_first else draw.uniform(0, whole_s),
            disturb=stop,
            # Before it says anything, a signal may end it as it ends any program.
            once_said="bronze: running" if is_first else "Update",
        )
        codes = {CODES[number]} | (set() if is_first else {0})
        codes |= set() if second_s is None else {143}
        assert ended.code in codes, (number, second_s, ended)
        assert ended.err in {"", STOPPING, "stopped\n"}, ended
        subject.check()
        if ended.code == CODES[number] and second_s is None and ended.update is not None:
            assert _last_state(subject, ended.update) == "CANCELED"
    subject.check_complete(warm.run(subject.folder.root))


@pytest.mark.usefixtures("heeded")
def test_ctrl_c_amid_a_batch_is_followed_by_the_command_itself(tmp_path, warm):
    subject = Subject.made(tmp_path / "pipeline", 1, maxFilesPerTrigger="1")
    subject.deliver(8)
    run = subject.start()
    assert run.process.stdout is not None
    said = ""
    while "silver: running" not in said:
        said += run.process.stdout.readline()
    run.process.send_signal(signal.SIGINT)
    ended = run.ended()
    assert (ended.code, ended.err) == (CODES[signal.SIGINT], STOPPING)
    assert ended.out.splitlines()[-1].startswith("Update canceled in ")
    subject.check()
    subject.check_complete(warm.run(subject.folder.root))


def _last_state(subject, update):
    events = [
        event
        for event in EventLog(subject.layout.events).read()
        if event.origin.update_id.startswith(update)
    ]
    return events[-1].details["update_progress"]["state"]
