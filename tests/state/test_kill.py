"""A process killed for real at any moment of a batch loses no state and repeats none."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_killed_at_each_call_of_the_store_every_batch_finds_the_same_rows(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.state.kill_points", str(tmp_path / "flows")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["wrong"] == {}
    assert outcome["moments"] > 40
