"""A signal stops the program wherever it comes."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import pytest

from millpond.cli.interrupts import Stopped, StopSignals, stoppable
from millpond.interruptible import register


class Something:
    pass


def killed_in_callback(_reference):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.01)  # the handler runs here, and Python swallows what it raises


class KilledInDestructor:
    def __del__(self):
        killed_in_callback(None)


@pytest.mark.parametrize("where", ["callback", "destructor"])
def test_a_signal_is_not_lost_where_python_swallows_exceptions(where):
    signals = StopSignals()
    with stoppable(signals), pytest.raises(Stopped) as stopped:  # noqa: PT012 - it comes later
        if where == "callback":
            thing = Something()
            reference = weakref.ref(thing, killed_in_callback)
            del thing
            assert reference() is None
        else:
            KilledInDestructor()
        time.sleep(5)
    assert stopped.value.args == (signal.SIGTERM,)
    assert signals.received == signal.SIGTERM


class Waiting:
    def __init__(self):
        self.interrupted = threading.Event()
        register(self)

    def interrupt(self):
        self.interrupted.set()


def test_what_the_main_thread_waits_for_is_interrupted_and_nothing_that_it_opens_to_stop():
    elsewhere = []
    thread = threading.Thread(target=lambda: elsewhere.append(Waiting()))
    thread.start()
    thread.join()
    waiting = Waiting()
    with stoppable(StopSignals()):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        except Stopped:
            later = Waiting()
            # As long as libraries in C keep what was raised to themselves.
            for _ in range(3):
                assert waiting.interrupted.wait(5)
                waiting.interrupted.clear()
    assert not later.interrupted.is_set()
    assert not elsewhere[0].interrupted.is_set()


def test_ctrl_c_amid_the_imports_ends_the_program_without_a_traceback():
    program = """
        import os, signal, sys

        class Interrupting:
            def find_spec(self, name, *_):
                if name == "click":
                    os.kill(os.getpid(), signal.SIGINT)

        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.meta_path.insert(0, Interrupting())
        from millpond.__main__ import main
        main()
        """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, "")


@pytest.mark.parametrize("place", ["__enter__", "__exit__"])
def test_a_signal_amid_the_handling_of_signals_itself_ends_the_program_likewise(place):
    program = f"""
        import os, signal, sys
        from millpond.cli import main as program
        whole = program.stoppable

        class Interrupted:
            def __init__(self, signals):
                self.around = whole(signals)
            def __enter__(self):
                self.around.__enter__()
                "{place}" == "__enter__" and os.kill(os.getpid(), signal.SIGINT)
            def __exit__(self, *error):
                "{place}" == "__exit__" and os.kill(os.getpid(), signal.SIGINT)
                return self.around.__exit__(*error)

        program.stoppable = Interrupted
        program.main(["--version"])
        """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGINT, "stopped\n")


def test_a_signal_amid_a_query_of_duckdb_stops_the_program_and_is_no_bug(tmp_path):
    program = """
        import os, signal, threading
        from millpond import project
        from millpond.cli import main as program
        from millpond.delta import connect

        def query(*_):
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            with connect() as connection:
                connection.execute("SELECT sum(hash(range)) FROM range(100_000_000_000)")

        project.init_project = query
        program.main(["init", "here"])
        """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGINT, "stopped\n")


@pytest.mark.parametrize(
    "code",
    ["found = sys._getframe()", "class ExtensionFileLoader:\n  def load(self): return called()"],
)
def test_a_signal_amid_an_import_waits_where_it_would_leave_something_broken(code):
    names = {"sys": sys, "called": sys._getframe, "found": None}
    exec(compile(code, "<frozen importlib._bootstrap>", "exec"), names)  # noqa: S102 - as Python's
    if names["found"] is None:
        names["called"] = within_library
        names["found"] = names["ExtensionFileLoader"]().load()
    signals = StopSignals()
    signals.handle(signal.SIGINT, names["found"])
    assert signals.received == signal.SIGINT
    with pytest.raises(Stopped):
        signals.nudged(signal.SIGURG, sys._getframe())


def within_library():
    return sys._getframe()


def test_ctrl_c_changes_nothing_where_whoever_starts_the_program_ignores_it(tmp_path):
    """As a shell script does with what it starts in the background."""
    ignoring = "trap '' INT; exec \"$@\""
    command = ["sh", "-c", ignoring, "sh", sys.executable, "-m", "millpond", "query", "SELECT 7"]
    subprocess.run([*command[4:7], "init", "shop"], check=True, cwd=tmp_path)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path / "shop"
    ) as started:
        time.sleep(0.2)
        while started.poll() is None:
            started.send_signal(signal.SIGINT)
            time.sleep(0.01)
        out, errors = started.communicate()
    assert (started.returncode, errors) == (0, "")
    assert "7" in out.split()
