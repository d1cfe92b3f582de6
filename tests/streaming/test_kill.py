"""A process killed for real at any moment of an update loses no row and repeats none."""

import json
import subprocess
import sys
from pathlib import Path

from tests.streaming.toy_flow import append

ROOT = Path(__file__).parents[2]


def test_killed_at_each_call_of_the_store_every_row_comes_once(table, tmp_path):
    for number in range(5):
        append(table, [number])
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.streaming.kill_points",
            str(table),
            str(tmp_path / "flows"),
            "[0, 1, 2, 3, 4]",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["wrong"] == {}
    assert outcome["moments"] > 20
