"""The benchmark runs, and every engine in it gives the closed form."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "replace_using.py"


def test_every_engine_is_measured_at_a_thousandth_of_the_size(tmp_path):
    process = subprocess.run(
        [sys.executable, PROGRAM, "--scale", "0.001", "--folder", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    rows = [line for line in process.stdout.splitlines() if line.startswith("| ")]
    engines = {row.split("|")[1].strip() for row in rows}
    assert {"millpond", "millpond, copy-on-write", "delta-rs overwrite by predicate"} <= engines
