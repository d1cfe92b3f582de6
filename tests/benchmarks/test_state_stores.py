"""The benchmark runs, and every store in it finds the same rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "state_stores.py"


@pytest.mark.parametrize("suite", ["distinct", "join"])
def test_every_store_is_measured_at_a_thousandth_of_the_size(tmp_path, suite):
    process = subprocess.run(
        [sys.executable, PROGRAM, "--scale", "0.001", "--suite", suite, "--folder", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    rows = [line for line in process.stdout.splitlines() if line.startswith("| ")]
    stores = {row.split("|")[1].strip() for row in rows[1:]}
    assert stores == {"parquet", "duckdb", "duckdb-indexed", "duckdb-copied", "sqlite"}
