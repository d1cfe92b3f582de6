"""The fuzzer's command runs, sees what fails, and reads it again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "fuzz.py"
# What the command runs with in place of the check of a spec, to see that it can fail.
BROKEN = """
import runpy, sys
import millpond.sql
def fails(text, **others):
    if "STREAMING" in text:
        raise RecursionError("too deep")
    return millpond.definitions.Pipeline(), []
millpond.sql.parse_file = fails
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def fuzz(*arguments, before=()):
    return subprocess.run(
        [sys.executable, *before, SCRIPT, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": ""},
    )


@pytest.mark.parametrize("part", ["sql", "spec"])
def test_a_short_run_finds_nothing_and_says_how_much_it_tried(part, tmp_path):
    done = fuzz(part, "--seconds", "1", "--failures", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "inputs tried" in done.stdout
    assert "0 different failures" in done.stdout


def test_what_fails_is_kept_once_and_fails_again(tmp_path):
    broken = ["-c", BROKEN]
    done = fuzz("sql", "--seconds", "1", "--failures", tmp_path, before=broken)
    assert done.returncode == 1
    (kept,) = tmp_path.iterdir()
    assert "RecursionError: too deep" in done.stdout
    assert fuzz("sql", "--replay", kept, before=broken).returncode == 1
    assert fuzz("sql", "--replay", kept).stdout == "it does not fail\n"
