"""Whatever fails, dies or loses power at whatever moment: tables hold what the oracle says.

Each seed is a history of its own (`history.py`). A few of them run each time, and one that nobody
has seen. `MILLPOND_SIMULATION_SEEDS=5000` runs so many, `MILLPOND_SIMULATION_SEED=7` that one.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter

import pytest

from tests.simulation.history import Counts, History, SimulationError

SEEDS = int(os.environ.get("MILLPOND_SIMULATION_SEEDS", "24"))
GROUPS = 4


def live(stage, seed, counts):
    history = History(stage, seed, counts)
    try:
        history.run()
    except SimulationError as error:
        replay = f"MILLPOND_SIMULATION_SEED={seed} pytest tests/simulation -k nobody_has_seen"
        story = "\n".join(history.story)
        pytest.fail(f"{error}\n\nReplay it with\n  {replay}\n\n{history.name}:\n{story}")


@pytest.mark.timeout(0)
@pytest.mark.parametrize("group", range(GROUPS))
def test_every_version_holds_what_some_deliveries_come_to(stage, group):
    counts = Counts()
    for seed in range(group, SEEDS, GROUPS):
        live(stage, seed, counts)
    print(counts)  # noqa: T201 - seen with -rP
    assert counts.updates["died"]
    assert counts.injected["power lost"]


def test_so_does_one_seed_that_nobody_has_seen(stage):
    seed = int(os.environ.get("MILLPOND_SIMULATION_SEED", str(secrets.randbelow(2**32))))
    live(stage, seed, Counts())


def test_a_seed_is_the_same_history_each_time(stage):
    """Else a failure could not be replayed."""
    stories = []
    for _ in range(2):
        counts = Counts()
        live(stage, 1, counts)
        stories.append((counts.updates, counts.injected, counts.versions))
    assert stories[0] == stories[1]
    assert stories[0][1] != Counter()
