"""An engine starts and ends quickly and quietly, and several can live side by side."""

import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing

import pytest

from millpond.engine.embedded import EmbeddedEngine

PROGRAM = """
import threading, time
from millpond.definitions import SqlQuery
from millpond.engine.embedded import EmbeddedEngine
from millpond.errors import MillpondError, SourceLocation

engine = EmbeddedEngine()
query = SqlQuery("SELECT nope FROM range(3)", SourceLocation("a.sql", 1, 1))
try:
    engine.schema(engine.plan(query), None)
except MillpondError as error:
    print(error.error_class)
print(engine.query("SELECT 1 AS one", None).to_pylist(), flush=True)
{end}
print(time.time())
"""


def run(end, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("{end}", end), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=60, check=True
    )
    lines = done.stdout.splitlines()
    return lines, done.stderr, time.time() - float(lines[-1])


def test_a_process_ends_at_once_and_prints_nothing_of_its_own(tmp_path):
    for end in ("engine.close()", "pass", "engine.close(); engine.close()"):
        lines, errors, seconds_to_end = run(end, tmp_path)
        assert lines[:2] == ["UNRESOLVED_COLUMN", "[{'one': 1}]"]
        assert errors == ""
        assert seconds_to_end < 5


def test_a_process_without_a_main_file_has_an_engine_too_and_gets_no_such_file():
    program = PROGRAM.replace("{end}", "print(hasattr(__import__('__main__'), '__file__'))")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[:3] == ["UNRESOLVED_COLUMN", "[{'one': 1}]", "False"]


def test_long_queries_do_not_kill_the_process(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        """
from millpond.engine.embedded import EmbeddedEngine

engine = EmbeddedEngine()
union = " UNION ALL ".join(f"SELECT {number} AS n" for number in range(400))
print(engine.query(f"SELECT count(*) AS n FROM ({union})", None).to_pylist())
choice = " OR ".join(f"id = {number}" for number in range(1500))
print(engine.query(f"SELECT count(*) AS n FROM range(9) WHERE {choice}", None).to_pylist())
engine.close()
""",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.split("\n")[:2]) == (0, ["[{'n': 400}]", "[{'n': 9}]"])


def test_engines_do_not_share_anything():
    first = EmbeddedEngine(configuration={"a": "1"})
    second = EmbeddedEngine(configuration={"a": "2"})
    try:
        assert first.session.conf.get("a") == "1"
        assert second.session.conf.get("a") == "2"
        first.close()
        assert second.query("SELECT 1 AS one", None).to_pylist() == [{"one": 1}]
    finally:
        first.close()
        second.close()


def test_a_second_signal_can_not_come_between_an_interrupt(monkeypatch):
    """It raises in the main thread, which must not be inside of gRPC then."""
    asked = []
    with closing(EmbeddedEngine()) as engine:
        interrupt = engine._sessions.interrupt
        monkeypatch.setattr(
            engine._sessions,
            "interrupt",
            lambda: (asked.append(threading.current_thread()), interrupt()),
        )
        engine.interrupt()
    assert len(asked) == 1
    assert asked[0] is not threading.main_thread()


def test_importing_the_engine_imports_nothing_heavy():
    code = (
        "import sys, millpond.engine.embedded; "
        "print({'pyspark', 'pandas', 'pyarrow', 'pysail', 'sqlglot'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("handler", "outcome"),
    [("signal.SIG_IGN", "went on"), ("signal.default_int_handler", "stopped")],
)
def test_ctrl_c_is_handled_as_before_and_leaves_the_engine_alone(handler, outcome):
    program = textwrap.dedent(f"""
        import os, signal, time
        from millpond.engine.embedded import EmbeddedEngine

        signal.signal(signal.SIGINT, {handler})
        engine, other = EmbeddedEngine(), EmbeddedEngine()
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
        except KeyboardInterrupt:
            print("stopped")
        else:
            print("went on")
        print(engine.query("SELECT 2 AS two", None).to_pylist())
        print(other.query("SELECT 3 AS three", None).to_pylist())
        """)
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [outcome, "[{'two': 2}]", "[{'three': 3}]"]
    assert done.stderr == ""
