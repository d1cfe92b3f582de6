"""Killed at a moment that nothing but chance decides, an update loses and doubles nothing.

One kill falls each time. `MILLPOND_RANDOM_KILLS=500 pytest tests/faults -k random_kills -rP` is
as many as one likes; `MILLPOND_RANDOM_KILLS_SEED=7` begins with the history of that seed.
"""

from __future__ import annotations

import os
import secrets

import pytest

from tests.faults.random_kills import KILLS_OF_ONE, Counts, live

KILLS = int(os.environ.get("MILLPOND_RANDOM_KILLS", "1"))


@pytest.mark.timeout(0)
def test_random_kills_lose_and_double_nothing(tmp_path, warm):
    first = int(os.environ.get("MILLPOND_RANDOM_KILLS_SEED", str(secrets.randbelow(2**32))))
    counts = Counts()
    for number in range(-(-KILLS // KILLS_OF_ONE)):
        seed = first + number
        left = KILLS - number * KILLS_OF_ONE
        replay = f"MILLPOND_RANDOM_KILLS={KILLS_OF_ONE} MILLPOND_RANDOM_KILLS_SEED={seed}"
        # Seen with -rP, and where it fails.
        print(f"seed {seed}; again: {replay} pytest tests/faults -k random_kills")  # noqa: T201 - to replay it
        live(tmp_path / str(number), seed, min(left, KILLS_OF_ONE), counts, warm)
        print(counts, flush=True)  # noqa: T201 - the figures
    assert counts.kills.total() == KILLS
